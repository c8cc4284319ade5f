"""Tables, charts and pages: what a reader sees, and that the page stands alone."""

import csv
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from shortlist.experiments.comparison import mark_best
from shortlist.experiments.report import (
    Chart,
    Column,
    Figure,
    Report,
    Section,
    Series,
    Table,
    Value,
    axes,
    files,
)
from shortlist.experiments.report.markdown import to_html, to_plain
from shortlist.experiments.report.page import page
from shortlist.experiments.report.svg import chart_svg
from shortlist.experiments.report.terminal import show, show_table

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Balanced(HTMLParser):
    """Checks that tags nest, and collects ids, references and what would need the network."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.references, self.external = [], [], [], []
        self.text = []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        self._look(attributes)

    def handle_startendtag(self, tag, attributes):
        self._look(attributes)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        self.text.append(data)
        self.external += re.findall(r"url\(\s*['\"]?(https?:[^)]*)", data)
        self.external += re.findall(r"@import[^;]*", data)

    def _look(self, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href", "action", "srcset", "data"):
                if value.startswith("#"):
                    self.references.append(value[1:])
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
        [Column("Method", numeric=False), Column("Top-1"), Column("Top-3")],
        [
            ["SVM & co", Value(75.04, 75.3), Value(91.2, 90.3, best=True, paper_best=True)],
            ["softmax", Value(76.5, 76.5, best=True, deviation=1.25), Value(float("nan"))],
        ],
        **{"tolerance": 0.7, **options},
    )


def a_chart(**options) -> Chart:
    x = [1.0, 10.0, 100.0]
    series = [Series("one <1>", x, [1.0, 0.1, 0.001], markers=True), Series("two", x, [2, 1, 3], 1)]
    return Chart("x", "y", series, title="A & B", **options)


def a_report(**options) -> Report:
    section = Section(
        "demo",
        "A demonstration",
        ["Words with **strong** ones & `code <b>`."],
        tables=[a_table(), Table("more", "More", [Column("A")], [["x"]], fold=True)],
        figures=[Figure("chart", "A *chart*.", [a_chart(x_log=True), a_chart(y_log=True)])],
        headlines=[("96%", "of something")],
        remarks=["See [figure](#demo-chart)."],
        protocol=["Carefully."],
        data={"seconds": np.float64(1.5)},
    )
    return Report("A report", [section], {"Machine": "this <one>"}, **options)


def test_page_is_balanced_and_needs_no_network():
    reader = parsed(page(a_report(skipped=[("aloi", "no data")]), {}))
    text = " ".join(reader.text)
    for expected in ("A demonstration", "75.0", "90.3", "+0.9", "of something", "this <one>"):
        assert expected in text
    assert "aloi" in text


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
    assert "± 1.2" in text


def test_terminal_shows_ours_the_papers_and_the_difference():
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=False)
    show(a_report().sections[0], console)
    text = console.export_text()
    assert re.search(r"SVM & co\s+75.0\s+75.3\s+−0.3\s+91.2\s+90.3\s+\+0.9", text)
    assert "–" in text
    assert "More" not in text


def wide_table():
    values = [Value(76.54, 75.3, deviation=12.5), Value(88.88, 90.3), Value(92.9, 93.1)]
    columns = [Column("Method", numeric=False), *(Column(f"Top-{k}") for k in (1, 3, 5))]
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


def test_the_largest_number_of_a_column_is_the_best_as_printed():
    rows = mark_best(
        [
            ["one", Value(75.04), Value(float("nan"))],
            ["two", Value(74.96, best=True), Value(3.0)],
            ["three", Value(74.94, best=True), "–"],
        ]
    )
    flags = [[cell.best for cell in row[1:] if isinstance(cell, Value)] for row in rows]
    assert flags == [[True, False], [True, True], [False]]


def test_signed_numbers_say_so():
    value = Value(-0.061, digits=2, signed=True)
    assert [value.text(number) for number in (-0.061, 0.004, 2.0)] == ["−0.06", "0.00", "+2.00"]


def test_strong_cells_are_bold_on_a_terminal():
    file = io.StringIO()
    console = Console(width=60, file=file, force_terminal=True, color_system="standard")
    rows = [["softmax", "**yes**"], ["SVM", "no"]]
    show_table(Table("t", "T", [Column("Loss"), Column("Found")], rows), console)
    assert re.search(r"\x1b\[1m *yes", file.getvalue())
    assert not re.search(r"\x1b\[1m *no", file.getvalue())


def test_relations_are_not_broken_over_lines():
    assert to_html("open for k > 1 and C = 10, a < b") == (
        "open for k\u00a0&gt;\u00a01 and C\u00a0=\u00a010, a &lt; b"
    )


def test_csv_has_a_column_for_each_number():
    rows = list(csv.DictReader(io.StringIO(files.table_csv(a_table()))))
    assert rows[0] == {
        "Method": "SVM & co",
        "Top-1": "75.040",
        "Top-1 deviation": "",
        "Top-1 paper": "75.300",
        "Top-1 difference": "-0.260",
        "Top-3": "91.200",
        "Top-3 paper": "90.300",
        "Top-3 difference": "0.900",
    }
    assert rows[1]["Top-3"] == ""
    assert rows[1]["Top-1 deviation"] == "1.250"


def test_rows_must_fit_their_columns():
    with pytest.raises(ValueError, match="a row has 1 cells for 2 columns"):
        Table("t", "T", [Column("a"), Column("b")], [["x"]])


def test_files_are_written_and_say_the_same(tmp_path):
    pytest.importorskip("matplotlib")
    written = files.write(a_report(), tmp_path / "new" / "folder")
    names = {path.name for path in written}
    assert names == {
        "report.html",
        "results.json",
        "demo-accuracy.csv",
        "demo-more.csv",
        "demo-chart.png",
        "demo-chart.svg",
    }
    assert written[0].name == "report.html"
    parsed(written[0].read_text(encoding="utf-8"))
    data = json.loads((tmp_path / "new/folder/results.json").read_text(encoding="utf-8"))
    section = data["sections"]["demo"]
    assert section["seconds"] == 1.5
    assert section["tables"]["accuracy"][0]["Top-1"]["ours"] == 75.04
    assert section["tables"]["accuracy"][1]["Top-3"]["ours"] is None
    png = (tmp_path / "new/folder/demo-chart.png").read_bytes()
    assert png.startswith(b"\x89PNG")


def test_without_matplotlib_the_page_and_tables_are_still_written(tmp_path, monkeypatch):
    monkeypatch.setattr(files.pictures, "have_matplotlib", lambda: False)
    names = {path.name for path in files.write(a_report(), tmp_path)}
    assert names == {"report.html", "results.json", "demo-accuracy.csv", "demo-more.csv"}
    reader = parsed((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "A demonstration" in " ".join(reader.text)


def test_pictures_of_matplotlib_take_the_pages_colour(tmp_path):
    pytest.importorskip("matplotlib")

    def draw():
        from matplotlib.figure import Figure as Canvas

        canvas = Canvas()
        canvas.subplots().plot([0, 1], [0, 1], label="line")
        return canvas

    section = Section(
        "s", "S", [], figures=[Figure("one", "1", draw=draw), Figure("two", "2", draw=draw)]
    )
    files.write(Report("R", [section], {}), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    parsed(text)
    assert text.count('<svg class="picture"') == 2
    assert "#000000" not in text
    assert "currentColor" in text


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "values", [[0.001, 5.0], [3.0], [1e-12, 1e12], [90.1, 90.2], [float("nan"), 2.0], []]
)
def test_scales_map_their_range_and_have_ticks_within(values, log):
    low, high = axes.limits(values, log, 0.05)
    assert low < high
    finite = [v for v in values if np.isfinite(v)]
    assert all(low <= v <= high for v in finite)
    scale = axes.Scale(low, high, 10.0, 110.0, log)
    assert scale(low) == pytest.approx(10.0)
    assert scale(high) == pytest.approx(110.0)
    ticks = scale.ticks(6)
    assert 1 <= len(ticks) <= 14
    positions = [scale(value) for value, _ in ticks]
    assert positions == sorted(positions)
    assert all(10 - 1e-6 <= p <= 110 + 1e-6 for p in positions)
    labels = [label for _, label in ticks]
    assert len(set(labels)) == len(labels)


def test_ticks_read_well():
    assert [t for _, t in axes.Scale(0, 10, 0, 1).ticks(5)] == ["0", "2", "4", "6", "8", "10"]
    assert [t for _, t in axes.Scale(-0.5, 0.5, 0, 1).ticks(4)] == [
        "−0.50",
        "−0.25",
        "0.00",
        "0.25",
        "0.50",
    ]
    assert [t for _, t in axes.Scale(1e-4, 10, 0, 1, True).ticks(6)] == [
        "10⁻⁴",
        "10⁻³",
        "10⁻²",
        "10⁻¹",
        "1",
        "10",
    ]
    assert [t for _, t in axes.Scale(1, 10, 0, 1).ticks(6, whole=True)] == [
        "2",
        "4",
        "6",
        "8",
        "10",
    ]


def test_chart_leaves_out_what_is_not_finite():
    nan = float("nan")
    chart = Chart("x", "y", [Series("s", [1, 2, 3], [1.0, nan, 3.0])])
    text = chart_svg(chart, "c")
    assert "nan" not in text
    assert 'data-x="1 3"' in text


def test_long_curves_are_thinned_but_keep_their_ends():
    n = 10_000
    chart = Chart("x", "y", [Series("s", list(range(n)), [0.0] * n)])
    xs = re.search(r'data-x="([^"]*)"', chart_svg(chart, "c"))[1].split()
    assert len(xs) <= 242
    assert (xs[0], xs[-1]) == ("0", "9999")


def test_markdown():
    text = "a **b** *c* `x < *y*` [d](#e) 2*3*4 <script>"
    assert to_html(text) == (
        "a <strong>b</strong> <em>c</em> <code>x &lt; *y*</code> "
        '<a href="#e">d</a> 2*3*4 &lt;script&gt;'
    )
    assert to_plain(text) == "a b c x < *y* d 2*3*4 <script>"


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_page_renders_in_a_browser(tmp_path):
    files.write(a_report(), tmp_path)
    shot = tmp_path / "shot.png"
    subprocess.run(
        [
            "chromium",
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=400,800",
            f"--screenshot={shot}",
            f"file://{tmp_path / 'report.html'}",
        ],
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert shot.read_bytes().startswith(b"\x89PNG")
