"""Charts of reports: what is drawn, what is marked, and colours that follow the page."""

import re

import numpy as np
import pytest

from shortlist.plots import PALETTE
from shortlist.plots.charts import (
    Chart,
    Picture,
    Series,
    draw_panels,
    inline_svg,
    picture_file,
)

pytest.importorskip("matplotlib")


def a_chart(**options):
    x = [1.0, 10.0, 100.0]
    series = [Series("one", x, [1.0, 0.1, 0.001], markers=True), Series("two", x, [2, 1, 3], 1)]
    return Chart("steps", "gap", series, title="A & B", **options)


def drawn(chart):
    (ax,) = draw_panels([chart]).axes
    return ax


def curves(ax):
    return [line for line in ax.lines if not line.get_label().startswith("_")]


def test_curves_are_drawn_as_given():
    ax = drawn(a_chart(x_scale="log", y_scale="log", levels=[(0.5, "half")]))
    one, two = curves(ax)
    assert one.get_xydata().tolist() == [[1.0, 1.0], [10.0, 0.1], [100.0, 0.001]]
    assert [one.get_color(), two.get_color()] == list(PALETTE[:2])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("steps", "gap", "A & B")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    assert [text.get_text() for text in ax.texts] == ["half"]


def test_zero_has_its_place_on_a_symlog_axis():
    ax = drawn(Chart("steps", "y", [Series("s", [0, 1, 10, 100], [1, 2, 3, 4])], x_scale="symlog"))
    positions = ax.transData.transform([(x, 1.0) for x in (0, 1, 10, 100)])[:, 0]
    gaps = np.diff(positions)
    assert ax.get_window_extent().x0 < positions[0]
    assert (gaps > 0).all()
    # Beyond one a decade takes the same room.
    assert gaps[1] == pytest.approx(gaps[2])
    ax.figure.canvas.draw()
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert {"0", "1", "10", "100"} <= set(labels)


@pytest.mark.parametrize("top", [3.0, 40.0, 1e5])
def test_labels_of_a_logarithmic_axis_do_not_touch_each_other(top):
    ax = drawn(Chart("x", "y", [Series("s", [1.0, top], [1, 2])], x_scale="log"))
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    labels = [
        text.get_window_extent()
        for text in ax.get_xticklabels(which="both")
        if text.get_text() and low <= text.get_position()[0] <= high
    ]
    assert len(labels) >= 2
    assert not any(one.overlaps(other) for i, one in enumerate(labels) for other in labels[:i])


def test_points_beyond_the_limits_are_marked_at_the_edge():
    chart = Chart(
        "x",
        "y",
        [Series("s", [1, 2, 3, 4], [-9.0, 0.0, 9.0, float("nan")], color=2)],
        y_limits=(-1.0, 1.0),
    )
    assert chart.is_clipped
    ax = drawn(chart)
    marks = {line.get_marker(): line for line in ax.lines if line.get_marker() in "v^"}
    assert marks["v"].get_xydata().tolist() == [[1.0, -1.0]]
    assert marks["^"].get_xydata().tolist() == [[3.0, 1.0]]
    assert marks["v"].get_color() == PALETTE[2]
    assert not marks["v"].get_clip_on()
    assert not Chart("x", "y", chart.series, y_limits=(-10, 10)).is_clipped
    assert not Chart("x", "y", chart.series).is_clipped


def test_panels_lie_side_by_side_and_do_not_overlap():
    for n in (1, 2, 3, 4, 5):
        figure = draw_panels([a_chart()] * n)
        figure.canvas.draw()
        boxes = [
            ax.get_tightbbox().transformed(figure.transFigure.inverted()) for ax in figure.axes
        ]
        assert len(boxes) == n
        for box in boxes:
            assert box.x0 >= -0.01
            assert box.y0 >= -0.01
            assert max(box.x1, box.y1) <= 1.01
        for i, one in enumerate(boxes):
            assert not any(one.overlaps(other) for other in boxes[:i])


@pytest.mark.parametrize("names", [["k = 1"] * 4, ["a rather long name of a curve"] * 7])
def test_a_legend_of_any_length_stays_within_the_picture(names):
    chart = Chart("x", "y", [Series(name, [0, 1], [0, 1]) for name in names])
    figure = draw_panels([chart])
    figure.canvas.draw()
    legend = figure.axes[0].get_legend().get_window_extent()
    assert legend.x0 >= 0
    assert legend.y0 >= 0
    assert legend.x1 <= figure.bbox.x1
    assert legend.y1 < figure.axes[0].get_window_extent().y0


def test_inline_pictures_take_the_pages_colours():
    def paint(ax):
        ax.plot([0, 1], [0, 1], color=PALETTE[3])

    picture = Picture(paint, "A <line>", (3.0, 3.0))
    for panel in (a_chart(levels=[(1.0, "one")]), picture):
        text = inline_svg(panel, "s-f-0")
        assert not re.search(r"#[0-9a-fA-F]{6}", text), "a colour that does not follow the page"
        assert "currentColor" in text
        assert 'role="img"' in text
    assert "var(--c0)" in inline_svg(a_chart(), "a")
    assert "var(--c3)" in text
    assert 'aria-label="A &lt;line&gt;"' in text


def test_ids_are_those_of_the_picture_alone():
    one, two = (inline_svg(a_chart(), name) for name in ("one", "two"))
    ids = [set(re.findall(r'\bid="([^"]*)"', text)) for text in (one, two)]
    assert not ids[0] & ids[1]
    for text, known in zip((one, two), ids, strict=True):
        references = re.findall(r'(?:xlink:href="|url\()#([^")]*)', text)
        assert references
        assert set(references) <= known


def test_the_chart_in_words():
    assert a_chart().alternative == "A & B: gap against steps; curves: one, two"


def test_equal_pictures_are_equal_files():
    for kind in ("png", "svg"):
        first, second = (picture_file(draw_panels([a_chart()]), kind) for _ in range(2))
        assert first == second
    assert picture_file(draw_panels([a_chart()]), "png").startswith(b"\x89PNG")
