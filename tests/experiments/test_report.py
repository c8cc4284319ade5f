"""Tables, charts and pages: what a reader sees, and that the page stands alone."""

import csv
import io
import json
import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from shortlist.experiments import paper
from shortlist.experiments.report import (
    Figure,
    Remark,
    Report,
    Section,
    Table,
    Value,
    folder,
)
from shortlist.experiments.report.folder import page
from shortlist.experiments.report.prose import is_strong, to_html, to_plain
from shortlist.experiments.report.terminal import show, show_table
from shortlist.plots.charts import Chart, Series, have_matplotlib, inline_svg
from tests.browser import CHROMIUM, look_at

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Balanced(HTMLParser):
    """Checks that tags nest, and collects ids, links and what would need the network."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.references, self.external = [], [], [], []
        self.text, self.links = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        self._look(tag, attributes)

    def handle_startendtag(self, tag, attributes):
        self._look(tag, attributes)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        self.text.append(data)
        self.external += re.findall(r"url\(\s*['\"]?(https?:[^)]*)", data)
        self.external += re.findall(r"@import[^;]*", data)

    def _look(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href", "action", "srcset", "data"):
                if value.startswith("#"):
                    self.references.append(value[1:])
                elif tag == "a":
                    self.links.append(value)  # followed only by a reader
                elif not value.startswith("data:"):
                    self.external.append(value)
            self.references += re.findall(r"url\(#([^)]*)\)", value or "")


def parsed(text: str) -> Balanced:
    reader = Balanced()
    reader.feed(text)
    reader.close()
    assert reader.open == [], "tags left open"
    assert len(set(reader.ids)) == len(reader.ids), "ids occur twice"
    assert set(reader.references) <= set(reader.ids), "references without a target"
    assert reader.external == [], "the page needs the network"
    return reader


def a_table(**options) -> Table:
    return Table(
        "accuracy",
        "Top-k accuracy <%>.",
        ["Method", "Top-1", "Top-3"],
        [
            ["SVM & co", Value(75.04, 75.3), Value(91.2, 90.3, best=True, paper_best=True)],
            ["softmax", Value(76.5, 76.5, best=True, spread=1.25), Value(float("nan"))],
        ],
        **{"tolerance": 0.7, **options},
    )


def a_chart(**options) -> Chart:
    x = [1.0, 10.0, 100.0]
    series = [Series("one <1>", x, [1.0, 0.1, 0.001], markers=True), Series("two", x, [2, 1, 3], 1)]
    return Chart("x", "y", series, title="A & B", **options)


@dataclass(frozen=True)
class Timing:
    seconds: float


def a_report(**options) -> Report:
    section = Section(
        "demo",
        "A demonstration",
        ["Words with **strong** ones & `code <b>`."],
        tables=[a_table(), Table("more", "More", ["A"], [["x"]], fold=True)],
        figures=[
            Figure(
                "chart", "Two & two", "A *chart*.", [a_chart(x_scale="log"), a_chart(y_scale="log")]
            )
        ],
        headlines=[("96%", "of something")],
        remarks=[Remark("A <topic>", "See [figure](#demo-chart).")],
        protocol=["Carefully."],
        result=Timing(np.float64(1.5)),
    )
    return Report("A report", [section], {"Machine": "this <one>"}, **options)


def test_page_is_balanced_and_needs_no_network():
    reader = parsed(page(a_report(skipped=[("aloi", "no data")]), {}))
    text = " ".join(reader.text)
    for expected in ("A demonstration", "75.0", "90.3", "+0.9", "of something", "this <one>"):
        assert expected in text
    assert "aloi" in text
    assert "Top-k accuracy <%>." in text
    assert "A <topic>" in text
    assert "<script" not in page(a_report(), {})


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def test_hostile_text_stays_text_wherever_it_stands():
    chart = Chart(HOSTILE, HOSTILE, [Series(HOSTILE, [0, 1], [0, 1])] * 2, title=HOSTILE)
    link = "[press](javascript:alert(3))"
    section = Section(
        "s",
        HOSTILE,
        [HOSTILE, link],
        tables=[Table("t", HOSTILE, [HOSTILE], [[HOSTILE]], HOSTILE, [HOSTILE, link])],
        figures=[Figure("f", HOSTILE, HOSTILE, [chart])],
        headlines=[(HOSTILE, HOSTILE)],
        remarks=[Remark(HOSTILE, HOSTILE), Remark("`" + HOSTILE + "`", link)],
        protocol=[HOSTILE],
    )
    report = Report(HOSTILE, [section], {HOSTILE: HOSTILE}, skipped=[(HOSTILE, HOSTILE)])
    pictures = {"s-f": [inline_svg(chart, "s-f-0")]} if have_matplotlib() else {}
    text = page(report, pictures)
    reader = parsed(text)
    assert "<script" not in text
    assert "<img" not in text
    assert not any("javascript" in link for link in reader.links)
    assert " ".join(reader.text).count(HOSTILE) >= 14


def test_figures_and_tables_are_numbered_under_headings():
    report = a_report()
    other = Section("other", "Another", [], tables=[a_table()], figures=report.sections[0].figures)
    text = page(Report("Both", [*report.sections, other], {}), {})
    headings = re.findall(r"<h3>(.*?)</h3>", text)
    assert headings == [
        *("Table 1. Top-k accuracy &lt;%&gt;.", "Figure 1. Two &amp; two"),
        *("Differences and remarks", "Table 2. More"),
        *("Table 3. Top-k accuracy &lt;%&gt;.", "Figure 2. Two &amp; two"),
    ]


def test_a_quick_report_says_so_before_its_first_number():
    report = a_report()
    quick = replace(report, environment={**report.environment, "Note": "A quick <one>."})
    text = page(quick, {})
    assert 0 < text.find('<p class="caution">A quick &lt;one&gt;.</p>') < text.find("<h1>")
    assert 'class="caution"' not in page(report, {})


def test_remarks_are_a_table():
    text = page(a_report(), {})
    assert re.search(
        r'<tr><th scope="row">A &lt;topic&gt;</th><td>See <a href="#demo-chart">', text
    )


def test_pages_with_several_sections_have_contents():
    report = a_report()
    other = Section("other", "Another", ["Text."])
    text = page(Report("Both", [*report.sections, other], {}), {})
    parsed(text)
    assert '<a href="#other">Another</a>' in text


def test_best_cells_are_bold_and_far_ones_marked():
    text = page(a_report(), {})
    assert text.count('class="number best"') == 2
    assert '<span class="paper"><strong>90.3</strong></span>' in text
    assert '<span class="difference far">+0.9</span>' in text
    assert '<span class="difference">−0.3</span>' in text
    assert '<span class="difference">0.0</span>' in text
    assert '<span class="spread">±1.2</span>' in text
    assert "±: standard error." in text


def test_terminal_shows_ours_the_papers_and_the_difference():
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=False)
    show(a_report().sections[0], console)
    text = console.export_text()
    assert re.search(r"SVM & co\s+75.0\s+75.3\s+−0.3\s+91.2\s+90.3\s+\+0.9", text)
    assert "–" in text
    assert "More" not in text


def wide_table():
    values = [Value(76.54, 75.3, spread=12.5), Value(88.88, 90.3), Value(92.9, 93.1)]
    columns = ["Method", *(f"Top-{k}" for k in (1, 3, 5))]
    rows = [["truncated top-10 Ent", *values], ["SVM", *values]]
    return Table("wide", "Wide", columns, rows)


@pytest.mark.parametrize("width", [50, 60, 80, 100])
def test_no_number_is_cut_short_however_narrow_the_terminal(width):
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=False)
    show_table(wide_table(), console)
    text = console.export_text()
    assert "…" not in text
    for number in ("76.5", "±12.5", "75.3", "+1.2", "88.9", "90.3", "−1.4", "92.9", "−0.2"):
        assert text.count(number) == 2, number
    assert max(map(len, text.splitlines())) <= width


def test_signed_numbers_say_so():
    value = Value(-0.061, digits=2, signed=True)
    assert [value.text(number) for number in (-0.061, 0.004, 2.0)] == ["−0.06", "0.00", "+2.00"]


def test_strong_cells_are_bold_on_a_terminal():
    file = io.StringIO()
    console = Console(width=60, file=file, force_terminal=True, color_system="standard")
    rows = [["softmax", "**yes**"], ["SVM", "no"]]
    show_table(Table("t", "T", ["Loss", "Found"], rows), console)
    assert re.search(r"\x1b\[1m *yes", file.getvalue())
    assert not re.search(r"\x1b\[1m *no", file.getvalue())


def test_relations_are_not_broken_over_lines():
    assert to_html("open for k > 1 and C = 10, a < b") == (
        "open for k\u00a0&gt;\u00a01 and C\u00a0=\u00a010, a &lt; b"
    )


def test_csv_has_a_column_for_each_number():
    rows = list(csv.DictReader(io.StringIO(folder.table_csv(a_table()))))
    assert rows[0] == {
        "Method": "SVM & co",
        "Top-1": "75.040",
        "Top-1 standard error": "",
        "Top-1 paper": "75.300",
        "Top-1 difference": "-0.260",
        "Top-3": "91.200",
        "Top-3 paper": "90.300",
        "Top-3 difference": "0.900",
    }
    assert rows[1]["Top-3"] == ""
    assert rows[1]["Top-1 standard error"] == "1.250"


def test_rows_must_fit_their_columns():
    with pytest.raises(ValueError, match="a row has 1 cells for 2 columns"):
        Table("t", "T", ["a", "b"], [["x"]])


def test_files_are_written_and_say_the_same(tmp_path):
    pytest.importorskip("matplotlib")
    written = folder.write(a_report(), tmp_path / "new" / "folder")
    names = {path.name for path in written}
    assert names == {
        "report.html",
        "results.json",
        "demo-accuracy.csv",
        "demo-more.csv",
        "demo-chart.png",
        "demo-chart.svg",
    }
    # Whatever the page links to is there, but for the paper.
    links = set(parsed(written[0].read_text(encoding="utf-8")).links)
    assert links == (names - {"report.html"}) | {paper.LINK}
    assert written[0].name == "report.html"
    data = json.loads((tmp_path / "new/folder/results.json").read_text(encoding="utf-8"))
    section = data["sections"]["demo"]
    assert section["result"] == {"seconds": 1.5}
    assert section["remarks"] == {"A <topic>": "See figure."}
    assert section["figures"]["chart"][0]["series"][0]["x"] == [1.0, 10.0, 100.0]
    assert section["tables"]["accuracy"][0]["Top-1"]["ours"] == 75.04
    assert section["tables"]["accuracy"][1]["Top-3"]["ours"] is None
    png = (tmp_path / "new/folder/demo-chart.png").read_bytes()
    assert png.startswith(b"\x89PNG")


def test_without_matplotlib_the_page_and_tables_are_still_written(tmp_path, monkeypatch):
    monkeypatch.setattr(folder.charts, "have_matplotlib", lambda: False)
    names = {path.name for path in folder.write(a_report(), tmp_path)}
    assert names == {"report.html", "results.json", "demo-accuracy.csv", "demo-more.csv"}
    reader = parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "A demonstration" in " ".join(reader.text)


def test_markdown():
    text = r"a **b** *c* `x < *y*` [d](#e) 2\*3\*4 <script>"
    assert to_html(text) == (
        "a <strong>b</strong> <em>c</em> <code>x &lt; *y*</code> "
        '<a href="#e">d</a> 2*3*4 &lt;script&gt;'
    )
    assert to_plain(text) == "a b c x < *y* d 2*3*4 <script>"
    assert [is_strong(text) for text in ("**yes**", "**a** b", "no", "")] == [True] + [False] * 3
    assert to_html("[x](javascript:alert(1)) [y](https://a.org)") == (
        '[x](javascript:alert(1)) <a href="https://a.org">y</a>'
    )


def test_p_values_are_shown_and_stored():
    found = Value(-1.234, spread=0.5, p_value=0.0321, digits=2, signed=True)
    table = Table("t", "T", ["Method", "Top-1"], [["SVM", found]])
    assert "p = 0.032" in page(Report("R", [Section("s", "S", [], [table])], {}), {})
    assert folder.table_csv(table).splitlines() == [
        "Method,Top-1,Top-1 standard error,Top-1 p",
        "SVM,-1.2340,0.5000,0.0321",
    ]
    assert Value(1.0, p_value=1e-7).p_text == "p < 0.001"


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_page_fits_its_window_in_a_browser(tmp_path):
    page, *_ = folder.write(a_report(), tmp_path)
    widths = (390, 1400)
    for width, view in zip(widths, look_at([(page, w) for w in widths], tmp_path), strict=True):
        assert view.title == a_report().title
        assert view.width <= width
        assert view.pictures == (2 if have_matplotlib() else 0)


def test_prose_has_paragraphs_and_no_unknown_variables():
    from jinja2 import UndefinedError

    from shortlist.experiments.report.prose import Prose

    prose = Prose("losses")
    (text,) = prose.paragraphs("section", k=3)
    assert prose.section("losses", {"k": 3}).title == "The losses, along a line"
    assert "there a top-3 loss may rest" in text
    with pytest.raises(UndefinedError, match="'k' is undefined"):
        prose.paragraphs("section")
    protocol = Prose("convergence").paragraphs("protocol", C=0.5)
    assert protocol[0].startswith("C = 0.5, no intercept")
    assert len(protocol) == 3
    assert not any("\n" in each or "  " in each for each in protocol)


def test_parts_take_their_words_from_a_template():
    from shortlist.experiments.calibrated import Verdict, Verdicts
    from shortlist.experiments.report.prose import Prose
    from shortlist.experiments.table2 import DrawTask
    from shortlist.experiments.training_curves import WORDS

    class OneRun(SimpleNamespace):
        def items(self):
            return ()

    verdicts = Verdicts(2, (Verdict("Ours", "open", True, "yes: none of 7", 7, None),))
    table = Prose("calibration").written_table("verdicts", {"verdicts": verdicts})
    assert (table.name, table.title) == ("verdicts", "Is the loss top-2 calibrated?")
    assert (table.caption, table.notes) == ("", ["**Bold**: what the paper leaves open."])
    assert table.columns == ["Loss", "Paper", "Found", "Evidence"]
    assert table.rows == [["Ours", "open", "**yes**", "none of 7"]]
    # Where a condition stands before a note, the note is still a paragraph of its own.
    task, tied = DrawTask("lr-multi", 0, 0, 200, 3), {"svm-multi": 1, "lr-multi": 0}
    for several in (None, [96.0]):
        facts = {"task": task, "draws": 2, "several": several, "tied": tied}
        circle = Prose("circle").table("accuracy", ["A"], [["x"]], facts)
        assert circle.caption.startswith("Table 2 of the paper")
        assert [note[0] for note in circle.notes] == ["†"]
    # A row without words begins a group.
    levels = WORDS | {"levels": (1e-2, 1e-4), "losses": {"a": "A", "b": "B"}}
    training = SimpleNamespace(seconds_to=lambda values, level: None, gaps=list)
    runs = {each: OneRun(shortlist=training) for each in levels["losses"]}
    result = SimpleNamespace(name="letter", runs=runs)
    times = Prose("convergence").written_table("times", {**levels, "result": result})
    assert times.columns == ["Loss and solver", "1e-2", "1e-4"]
    assert [row[0] for row in times.rows] == ["A, Shortlist: gap", "B, Shortlist: gap"]
    assert list(times.groups) == [0, 1]
    (remark,) = Prose("table3").remarks("differences", {"far": [], "tolerance": 0.7})
    assert (remark.topic, remark.text[:12]) == ("Differences", "Every number")
    facts = {"n_classes": (3, 4, 5), "checked": 7, "contradicted": []}
    facts |= {"calibrated": [], "not_calibrated": []}
    section = Prose("calibration").section("name", facts, tables=[table])
    assert section.title.startswith("Top-k calibration:")
    assert section.headlines[0] == ("7", "distributions checked")
    assert "over 3, 4 and 5 classes" in section.protocol[0]


def test_every_text_of_a_template_is_used():
    import re
    from pathlib import Path

    from shortlist import experiments

    folder = Path(experiments.__file__).parent
    sources = [path.read_text(encoding="utf-8") for path in folder.glob("*.py")]
    templates = list(folder.glob("report/assets/*.md.j2"))
    for template in templates:
        name = template.name.removesuffix(".md.j2")
        (source,) = (source for source in sources if f'Prose("{name}")' in source)
        text = template.read_text(encoding="utf-8")
        blocks = set(re.findall(r"{% block (\w+) %}", text))
        # Prose.section asks for these itself.
        named = {*re.findall(r'"(\w+)"', source), "section", "headlines", "protocol", "remarks"}
        assert blocks <= named
        called = re.findall(
            r'PROSE(?:\.(?:paragraphs|remarks|table|written_table|figure))?\(\s*"(\w+)"', source
        )
        assert blocks >= set(called)
    assert {path.name for path in templates} == {
        f"{name}.md.j2" for source in sources for name in re.findall(r'Prose\("(\w+)"\)', source)
    }
