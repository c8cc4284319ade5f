"""The documentation: its examples print what it shows, its pages are linked, and it builds."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.browser import CHROMIUM, look_at
from tests.markdown_examples import examples_in, run_page

DOCS = Path(__file__).parent.parent / "docs"
GALLERY = sorted((DOCS.parent / "examples").glob("*.py"))
# Written by the build.
MADE = {"_build", "gallery"}
PAGES = sorted(
    path
    for suffix in ("*.md", "*.rst")
    for path in DOCS.rglob(suffix)
    if MADE.isdisjoint(path.relative_to(DOCS).parts)
)
WITH_EXAMPLES = [
    page for page in PAGES if page.suffix == ".md" and examples_in(page.read_text(encoding="utf-8"))
]
_TOCTREE = {
    ".md": re.compile(r"^```\{toctree\}\n(.*?)^```", re.M | re.S),
    ".rst": re.compile(r"^\.\. toctree::\n((?:[ \t]+.*\n|\n)*)", re.M),
}
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_ROLE = re.compile(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`|:doc:`(?:[^`<]*<)?([^`>]+)>?`")
_INCLUDE = re.compile(r"(?:\{(?:literal)?include\}|\.\. (?:literal)?include::)\s*(\S+)")


def name_of(page):
    return str(page.relative_to(DOCS))


def find_page(name, beside):
    """The page a toctree or a {doc} means, or None. A page of the gallery is made of a script."""
    base = DOCS / name.lstrip("/") if name.startswith("/") else beside.parent / name
    if base.parent == DOCS / "gallery":
        source = "README.txt" if base.name == "index" else f"{base.name}.py"
        script = DOCS.parent / "examples" / source
        return script if script.is_file() else None
    for suffix in (".md", ".rst"):
        path = base.parent / (base.name + suffix)
        if path.is_file():
            return path.resolve()
    return None


def listed_in(page):
    """The names in a page's toctrees."""
    text = page.read_text(encoding="utf-8")
    for body in _TOCTREE[page.suffix].findall(text):
        for line in map(str.strip, body.splitlines()):
            if line and not line.startswith(":"):
                yield line


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_print_what_the_page_shows(page, tmp_path, monkeypatch):
    if page.name == "torch.md":
        pytest.importorskip("torch")
    if page.name == "onnx.md":
        pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    assert run_page(page) == []


def test_there_are_examples_to_run():
    assert len(WITH_EXAMPLES) >= 10


def test_every_page_is_in_a_table_of_contents():
    reached, ahead = set(), [(DOCS / "index.md").resolve()]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        for name in listed_in(page):
            found = find_page(name, page)
            assert found is not None, f"{name_of(page)} lists {name}, which does not exist"
            if found.is_relative_to(DOCS):
                ahead.append(found)
    assert sorted(map(name_of, reached)) == sorted(name_of(page.resolve()) for page in PAGES)


@pytest.mark.parametrize(
    "page",
    [*PAGES, DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"],
    ids=lambda page: page.name,
)
def test_links_between_files_lead_somewhere(page):
    text = re.sub(r"^```(?!\{).*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for role in _ROLE.findall(text):
        name = "".join(role)
        assert find_page(name, page) is not None, f"no page {name}"
    for target in [*_LINK.findall(text), *_INCLUDE.findall(text)]:
        file = target.partition("#")[0]
        if file and "://" not in file and not file.startswith("mailto:"):
            beside = page.parent / file
            assert beside.exists() or find_page(file, page), f"{target} does not exist"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_fractions_are_written_with_braces(page):
    # TeX reads \frac12 as one half; what makes MathML of it does not.
    assert re.findall(r"\\[td]?frac[^{]", page.read_text(encoding="utf-8")) == []


def test_scripts_of_the_gallery_have_a_title_and_a_picture():
    assert len(GALLERY) == 10
    for script in GALLERY:
        text = script.read_text(encoding="utf-8")
        compile(text, script, "exec")
        assert re.match(r'"""\n\S.*\n===+\n\n\S', text), script.name
        assert text.count("plt.show()") == 1, script.name


needs_sphinx = pytest.mark.skipif(
    not all(map(find_spec, ("sphinx", "furo", "myst_parser", "sphinx_gallery", "matplotlib"))),
    reason="building needs the packages of the docs group",
)


def build(folder, *options):
    command = [sys.executable, str(DOCS / "build.py"), "--quiet", *options, str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return folder


@needs_sphinx
def test_the_documentation_builds_without_a_warning_and_opens_in_a_browser(tmp_path):
    html = build(tmp_path / "html", "--fast")
    for page in PAGES:
        assert (html / name_of(page)).with_suffix(".html").is_file()
    if CHROMIUM is None:
        return
    views = [
        (html / f"{name}.html", width)
        for name in ("index", "engine", "benchmarks", "gallery/index", "api/plots")
        for width in (390, 1280)
    ]
    for (page, width), view in zip(views, look_at(views, tmp_path), strict=True):
        assert "Shortlist" in view.title
        assert view.width <= width, page.name
        assert view.broken_images == 0, page.name


@needs_sphinx
@pytest.mark.slow
def test_the_gallery_runs(tmp_path):
    html = build(tmp_path / "html")
    for script in GALLERY:
        assert list((html / "_images").glob(f"sphx_glr_{script.stem}_0*.png")), script.name
