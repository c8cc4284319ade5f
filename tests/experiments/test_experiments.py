"""Every experiment in its quick version: sections, files, pages; and what runs them."""

import json

import numpy as np
import pytest
from rich.console import Console

from shortlist.datasets import DataError
from shortlist.experiments import EXPERIMENTS, MissingData, paper, registry, run
from shortlist.experiments.comparison import Dataset
from shortlist.experiments.parts import read_parts
from shortlist.experiments.registry import Experiment, names
from shortlist.experiments.report import Section, Value
from shortlist.plots import charts
from tests.experiments.conftest import clusters
from tests.experiments.test_report import parsed


def quick(name, folder, **options):
    outcome = run(name, folder, quick=True, jobs=1, **options)
    reader = parsed(outcome.page.read_text(encoding="utf-8"))
    assert all((folder / link).exists() for link in reader.links if "://" not in link)
    assert all(path.stat().st_size > 0 for path in outcome.files)
    json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return outcome


@pytest.fixture
def draw_nothing(monkeypatch):
    """To leave pictures out, as without matplotlib: drawing them takes two thirds of the time."""
    return lambda: monkeypatch.setattr(charts, "have_matplotlib", lambda: False)


def test_names():
    assert names() == (
        *("circle", "letter", "caltech101", "news20", "aloi", "features"),
        *("glyphs", "languages", "countries"),
        *("convergence", "lambert", "losses", "calibration", "finetune", "all"),
    )


def test_letter_in_short_goes_on_from_stored_units(tmp_path, draw_nothing):
    methods = ["lr-multi", "smooth-topk-svm:1", "topk-svm:5", "trunc-ent:3"]
    outcome = quick("letter", tmp_path, methods=methods)
    (section,) = outcome.report.sections
    accuracy, against_softmax, against_best, training = section.tables
    assert len(against_softmax.rows) == len(against_best.rows) == 4
    assert [row[0] for row in accuracy.rows] == [paper.display_name(m) for m in sorted_as(methods)]
    for row in accuracy.rows:
        assert all(isinstance(cell, Value) and 0 < cell.ours <= 100 for cell in row[1:])
    assert any(cell.best for row in accuracy.rows for cell in row[1:])
    assert len(training.rows) == 4
    assert {figure.name for figure in section.figures} == {"gains", "regularisation", "descent"}
    stored = {path: path.stat().st_mtime_ns for path in (tmp_path / "units").iterdir()}
    assert len(stored) == 5  # four paths and one descent
    draw_nothing()
    again = quick("letter", tmp_path, methods=methods)
    assert again.report.sections[0].tables[0].rows == accuracy.rows
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "units").iterdir()} == stored


def sorted_as(methods):
    return [method for method in paper.methods("letter") if method in methods]


def test_other_parameters_are_computed_anew(tmp_path, draw_nothing):
    draw_nothing()
    run("letter", tmp_path, quick=True, jobs=1, methods=["lr-multi"])
    run("letter", tmp_path, quick=True, jobs=1, methods=["lr-multi"], seed=1)
    run("letter", tmp_path, quick=True, jobs=1, methods=["lr-multi"], tol=1e-2)
    assert len(list((tmp_path / "units").iterdir())) == 3


def test_circle(tmp_path):
    outcome = quick("circle", tmp_path)
    (section,) = outcome.report.sections
    (table,) = section.tables
    assert len(table.rows) == 10  # the paper's nine and the truncated loss from several starts
    assert all(cell.spread is not None for row in table.rows for cell in row[1:])
    assert (tmp_path / "circle-rings.png").exists()
    assert section.remarks[0].topic == "One draw says little"


def test_convergence(tmp_path):
    outcome = quick("convergence", tmp_path, limit=0.05)
    (section,) = outcome.report.sections
    gap, accuracy = section.figures[0].panels
    for series in gap.series:
        assert series.y[-1] <= 1e-4 * (1 + 1e-9)
        assert all(a <= b for a, b in zip(series.x, series.x[1:], strict=False))
    assert all(0 <= value <= 100 for series in accuracy.series for value in series.y)
    against = section.figures[1].panels[0]
    assert [series.name for series in against.series] == ["Shortlist", "FISTA", "L-BFGS"]
    assert all(value > 0 for series in against.series for value in series.y)
    times = section.tables[0]
    assert times.columns == ["Loss and solver", "1e-2", "1e-3", "1e-4", "1e-5"]
    assert times.groups == [0, 4, 6]  # the smooth losses have two baselines
    assert times.rows[4][0] == "multiclass SVM, Shortlist: gap"
    assert all(float(cell) > 0 for cell in times.rows[4][1:4])


def test_lambert(tmp_path):
    outcome = quick("lambert", tmp_path)
    (section,) = outcome.report.sections
    assert section.result.double.units < 4
    assert section.result.single.units < 4
    left, right = section.figures[0].panels
    for chart in (left, right):
        curve = chart.series[0]
        # V is the solution of x + log x = t.
        assert np.asarray(curve.y) + np.log(curve.y) == pytest.approx(np.asarray(curve.x), abs=1e-9)


def test_losses(tmp_path):
    (section,) = quick("losses", tmp_path).report.sections
    (figure,) = section.figures
    curves = {series.name: series for chart in figure.panels for series in chart.series}
    t = np.asarray(curves["softmax"].x)
    others = np.exp([3.0, 1.0, 0.5, 0.0, -0.5, -1.0, -1.5, -2.0, -2.5]).sum()
    assert np.asarray(curves["softmax"].y) == pytest.approx(np.log(np.exp(t) + others) - t)
    assert np.asarray(curves["multiclass SVM"].y) == pytest.approx(np.maximum(0, 4 - t))
    assert len(section.tables[0].rows) == 9
    with pytest.raises(ValueError, match="k must lie between 2 and 9"):
        run("losses", tmp_path, k=1)


def test_calibration_contradicts_no_answer_of_the_paper(tmp_path):
    (section,) = quick("calibration", tmp_path).report.sections
    texts = [remark.text for remark in section.remarks]
    assert "No answer of the paper is contradicted by the search." in texts
    first, second = section.tables
    answers = {row[0]: row[2] for row in first.rows}
    assert answers["Softmax"] == "yes"
    assert answers["Multiclass SVM"] == "no"
    assert any(row[1] == "open" for row in second.rows)


@pytest.fixture(params=["with validation part", "without"])
def data_file(request, tmp_path):
    arrays = {}
    parts = (
        ["train", "val", "test"] if request.param == "with validation part" else ["train", "test"]
    )
    for seed, part in enumerate(parts):
        arrays[f"X_{part}"], arrays[f"y_{part}"] = clusters(180, seed=seed)
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    return path


def test_caltech_from_a_file(data_file, tmp_path):
    outcome = quick("caltech101", tmp_path, data=data_file, methods=["lr-multi", "lr-ova"])
    (section,) = outcome.report.sections
    assert len(section.tables[0].rows) == 2
    assert "12 classes and 6 features" in section.paragraphs[0]


def test_libsvm_files_for_training_and_test(tmp_path):
    from shortlist.datasets import write_libsvm

    for part, seed in (("train", 0), ("test", 1)):
        X, y = clusters(150, seed=seed)
        write_libsvm(tmp_path / part, X, y)
    outcome = quick(
        "news20",
        tmp_path / "out",
        data=tmp_path / "train",
        test_data=tmp_path / "test",
        methods=["lr-multi"],
    )
    assert "150 training and 150 test examples" in outcome.report.sections[0].paragraphs[0]
    # One file with everything is halved, class by class.
    halved = quick("aloi", tmp_path / "aloi", data=tmp_path / "train", methods=["lr-multi"])
    assert "75 training and 75 test examples" in halved.report.sections[0].paragraphs[0]


def test_a_stand_in_has_the_table_without_the_papers_numbers(tmp_path, monkeypatch):
    from shortlist.datasets import DataSplits, LabeledData, standins

    def three_parts(random_state):
        parts = (LabeledData(*clusters(180, seed=random_state + i)) for i in range(3))
        return DataSplits("glyphs", *parts)

    monkeypatch.setattr(standins, "load_glyphs", three_parts)
    (section,) = quick("glyphs", tmp_path, methods=["lr-multi", "topk-svm:5"]).report.sections
    assert section.title.startswith("Glyphs")
    assert "stands in for ALOI" in section.paragraphs[0]
    assert [row[0] for row in section.tables[0].rows] == ["LR-Multi", "top-5 SVM"]
    cells = [cell for row in section.tables[0].rows for cell in row[1:]]
    assert all(0 < cell.ours <= 100 and cell.paper is None for cell in cells)
    assert section.remarks == []


def folder_of_features(folder, names):
    """Three parts of frozen features; ``names`` are those of features and labels."""
    folder.mkdir()
    for seed, part in enumerate(["train", "test", "val"]):
        X, y = clusters(180, seed=seed)
        np.save(folder / names[0].format(part), X)
        np.save(folder / names[1].format(part), y)
    return folder


@pytest.mark.parametrize(
    ("names", "drawn"), [(("{}.npy", "{}.labels.npy"), True), (("X_{}.npy", "y_{}.npy"), False)]
)
def test_features_of_a_folder_beside_the_papers_numbers(tmp_path, draw_nothing, names, drawn):
    if not drawn:  # the pictures of both are the same
        draw_nothing()
    folder = folder_of_features(tmp_path / "in", names)
    options = {"data": folder, "methods": ["lr-multi"]}
    (section,) = quick("features", tmp_path / "out", dataset="flowers", **options).report.sections
    assert section.title.startswith("Flowers")
    assert "180 training, 180 validation and 180 test" in section.paragraphs[0]
    (row,) = section.tables[0].rows
    assert [cell.paper for cell in row[1:]] == list(paper.TABLE_3["flowers"]["lr-multi"])
    (own,) = quick("features", tmp_path / "out", dataset="mine", **options).report.sections
    assert own.name == "mine"
    # The same units: a name changes no number.
    assert [c.ours for c in own.tables[0].rows[0][1:]] == [c.ours for c in row[1:]]
    assert all(cell.paper is None for cell in own.tables[0].rows[0][1:])


def test_features_can_be_scaled(tmp_path):
    data = folder_of_features(tmp_path / "in", ("{}.npy", "{}.labels.npy"))
    parts = read_parts(data, seed=0, scale="l2")
    for X in (parts.X_train, parts.X_val, parts.X_test):
        assert np.linalg.norm(X, axis=1) == pytest.approx(1, rel=1e-5)


def test_features_need_labels_and_a_test_part(tmp_path):
    folder = folder_of_features(tmp_path / "in", ("{}.npy", "{}.labels.npy"))
    (folder / "test.labels.npy").unlink()
    with pytest.raises(DataError, match=r"put them into test\.labels\.npy"):
        run("features", tmp_path / "out", data=folder)
    (folder / "test.npy").unlink()
    with pytest.raises(DataError, match="no part 'test', only train, val"):
        run("features", tmp_path / "out", data=folder)
    with pytest.raises(MissingData, match="features needs its data: give a folder"):
        run("features", tmp_path / "out")
    with pytest.raises(MissingData, match="flowers needs its data: give a folder"):
        run("features", tmp_path / "out", dataset="flowers", download=True)
    with pytest.raises(ValueError, match="scale goes with data from files"):
        run("letter", tmp_path / "out", scale="l2")


def test_rows_and_columns_go_with_the_number_of_classes():
    ten = Dataset.named("mine").with_classes(10)
    assert ten.ks == (1, 3, 5)
    assert "topk-svm:5" in ten.methods
    assert "topk-svm:10" not in ten.methods
    assert ten.with_classes(11) == ten
    assert Dataset.named("letter").with_classes(26) == Dataset.named("letter")


@pytest.mark.parametrize("name", ["caltech101", "news20", "aloi"])
def test_missing_data_is_said_with_what_to_do(name, tmp_path):
    with pytest.raises(MissingData, match=f"{name} needs its data: give"):
        run(name, tmp_path)


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match="experiment must be one of circle, letter"):
        run("mnist", tmp_path)
    with pytest.raises(ValueError, match="jobs must be a positive integer"):
        run("letter", tmp_path, jobs=0)
    with pytest.raises(TypeError, match="letter has no option 'depth'; it has methods, tol"):
        run("letter", tmp_path, depth=3)
    with pytest.raises(ValueError, match="methods must be some of svm-ova"):
        run("letter", tmp_path, methods=["knn"])
    with pytest.raises(ValueError, match="got 'knn'"):
        run("letter", tmp_path, methods="lr-multi,knn")
    with pytest.raises(ValueError, match="circle takes no data"):
        run("circle", tmp_path, data="x.npz")
    with pytest.raises(ValueError, match="which experiment each file is for"):
        run("all", tmp_path, data="x.npz")
    with pytest.raises(ValueError, match="data names mnist; data is taken by caltech101"):
        run("all", tmp_path, data={"mnist": "x.npz"})
    with pytest.raises(TypeError, match="all takes no options"):
        run("all", tmp_path, draws=3)


def _fine(context):
    return Section("fine", "Fine", ["Done."], headlines=[("1", "thing")])


def _lacking(context):
    raise MissingData("lacking needs its data: give it")


@pytest.fixture
def few_experiments(monkeypatch):
    few = {name: Experiment(name, "Table", "…", "") for name in ("fine", "lacking")}
    functions = {"fine": _fine, "lacking": _lacking}
    monkeypatch.setattr(registry, "EXPERIMENTS", few)
    monkeypatch.setattr(Experiment, "function", lambda self: functions[self.name])


def test_all_leaves_out_what_lacks_its_data_and_says_so(tmp_path, few_experiments):
    console = Console(record=True, width=80, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    outcome = run("all", tmp_path, console=console)
    assert [section.name for section in outcome.report.sections] == ["fine"]
    assert outcome.report.skipped == [("lacking", "lacking needs its data: give it")]
    text = outcome.page.read_text(encoding="utf-8")
    parsed(text)
    assert "lacking needs its data" in text
    assert "Fine" in console.export_text()


def test_interruption_tells_where_the_results_are(tmp_path, monkeypatch):
    def interrupted(context):
        raise KeyboardInterrupt

    monkeypatch.setattr(Experiment, "function", lambda self: interrupted)
    import io

    progress = Console(file=io.StringIO(), width=200)
    with pytest.raises(KeyboardInterrupt):
        run("circle", tmp_path, progress=progress)
    assert "the same command goes on there" in progress.file.getvalue()


def test_every_experiment_names_a_function_that_exists():
    for experiment in EXPERIMENTS.values():
        if experiment.name == "finetune":
            pytest.importorskip("torch")
        options = experiment.options()
        assert "context" not in options
        assert experiment.summary
        assert experiment.shows
