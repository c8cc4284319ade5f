"""cv, info, bench, reproduce and features: what they print is what the library computes."""

import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shortlist
from shortlist import TopKClassifierCV
from tests.cli.schema import check


def test_cv_is_the_library_search(command, files):
    args = ["--Cs", "0.1:10:3", "--ks", "1,2", "-v", 3, "-k", 2]
    ended = command("cv", files / "data.svm", *args, "-o", "m", "--json", "-q")
    assert (ended.code, ended.err) == (0, "")
    told = json.loads(ended.out)
    search = TopKClassifierCV(
        k=2, Cs=[0.1, 1.0, 10.0], ks=(1, 2), cv=3, max_extensions=0, random_state=0
    ).fit(files.X, files.y)
    np.testing.assert_allclose(told["table"]["C"], [0.1, 1.0, 10.0])
    for k in (1, 2):
        np.testing.assert_allclose(
            told["table"][f"mean_top{k}"], search.cv_results_[f"mean_top{k}"]
        )
        assert told["chosen"][f"top-{k}"]["C"] == pytest.approx(search.C_[k])
    saved = shortlist.load("m")
    np.testing.assert_array_equal(saved.predict_topk(files.X), search.predict_topk(files.X))


def test_cv_measures_the_usual_lengths_below_the_number_of_classes(command, files):
    args = ["--Cs", 1, "--extend", 1, "-v", 2, "-k", 2, "--json", "-q"]
    ended = command("cv", files / "data.svm", *args)
    assert ended.code == 0
    assert "no model is chosen" not in ended.err
    told = json.loads(ended.out)
    assert list(told["chosen"]) == ["top-1", "top-2", "top-3"]
    assert {0.1, 1.0, 10.0} >= set(told["table"]["C"]) > {1.0}


def test_cv_options_are_those_of_the_library(command, files):
    args = ["--Cs", "0.01,1,100", "--ks", 1, "--patience", 1, "--refine", 1, "--shots", 3]
    ended = command("cv", files / "data.svm", *args, "--repeats", 2, "--json", "-q")
    assert (ended.code, ended.err) == (0, "")
    search = TopKClassifierCV(
        Cs=[0.01, 1.0, 100.0],
        ks=(1,),
        patience=1,
        refine=1,
        shots=3,
        repeats=2,
        max_extensions=0,
        random_state=0,
    ).fit(files.X, files.y)
    told = json.loads(ended.out)["table"]
    np.testing.assert_allclose(told["C"], search.cv_results_["C"])
    np.testing.assert_allclose(told["mean_top1"], search.cv_results_["mean_top1"])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--shots", 2, "-v", 3], "-v and --shots both say what to train on"),
        (["--repeats", 2], "--repeats goes with --shots"),
        (["--shots", 200], "--shots 200 asks for more examples than class 0 has"),
        (["--patience", 0], "--patience must be an integer, 1 or larger"),
    ],
)
def test_cv_refuses(command, files, args, words):
    ended = command("cv", files / "data.svm", *args)
    assert ended.code == 2
    assert words in ended.err


def test_cv_table_marks_the_chosen_and_the_models_evaluate(command, files):
    args = ["--Cs", "0.01,1", "--ks", "1,2", "--val", files / "data.svm", "--also", "entropy:2"]
    ended = command("cv", files / "data.svm", *args, "-o", "m", "-q")
    assert ended.code == 0
    assert ended.out.count("*") == 2  # one for each k
    assert "entropy, k=1" in ended.out
    assert "entropy, k=2" in ended.out
    saved = shortlist.load("m")
    evaluated = json.loads(command("evaluate", "m", files / "data.svm", "--json").out)
    curve = evaluated["accuracy"]["test"]
    for k in (1, 2):
        own = saved.estimators_[k].predict_topk(files.X, k=k)
        assert curve[f"top-{k}"] == pytest.approx((own == files.y[:, None]).any(axis=1).mean())
    shown = command("info", "m").out
    assert f"C={saved.C_[2]:.4g}" in shown.split("top-2")[1]


def test_info_of_a_model(command, files, model):
    loaded = shortlist.load(model)
    facts = json.loads(command("info", model, "--json").out)
    assert facts["estimator"] == "TopKClassifier"
    assert facts["meta"]["params"]["k"] == 2
    assert facts["meta"]["result"]["primal"] == loaded.result_.primal
    shown = command("info", model)
    assert (shown.code, shown.err) == (0, "")
    assert "converged" in shown.out
    assert "\n\nParameters\n" in shown.out
    assert "F64 4 x 5" in shown.out


def test_info_of_a_pipeline_which_the_command_does_not_use(command, files):
    pipeline = make_pipeline(StandardScaler(), shortlist.TopKClassifier(C=0.1, random_state=0))
    shortlist.save(pipeline.fit(files.X, files.y), "m")
    shown = command("info", "m").out
    assert shown.split()[shown.split().index("standardscaler") + 1] == "StandardScaler"
    assert "converged" in shown
    assert "train with --scale" in command("predict", "m", files / "data.svm").err


@pytest.mark.parametrize("option", ["-o", "--labels"])
def test_features_do_not_replace_their_inputs(command, option):
    np.save("images.npy", np.zeros((2, 3, 4, 4)))
    other = [] if option == "-o" else ["-o", "features.npy"]
    ended = command("features", "net.pt", "images.npy", option, "images.npy", *other)
    assert ended.code == 2
    assert f"{option} images.npy: is also an input, and would be lost" in ended.err


def test_info_of_the_installation(command):
    facts = json.loads(command("info", "--json").out)
    assert facts["shortlist"] == shortlist.__version__
    assert facts["numpy"] == np.__version__


def test_bench_compares_equal_objectives(command, files):
    args = ["--losses", "softmax", "--repeat", 1, "--json", "-q"]
    ended = command("bench", files / "data.svm", *args)
    assert (ended.code, ended.err) == (0, "")
    own, *rivals = check("bench", ended.out)["contests"]["softmax"]
    assert own["solver"] == "shortlist"
    assert own["ratio"] == 1.0
    assert len(rivals) == 2
    for rival in rivals:
        assert rival["reached"]
        assert rival["objective"] == pytest.approx(own["objective"], rel=2e-3)
        assert rival["ratio"] == pytest.approx(rival["seconds"] / own["seconds"])


def test_bench_gives_up_on_a_rival_that_does_not_get_there(files, monkeypatch):
    from shortlist.cli import bench

    monkeypatch.setattr(bench, "_MAX_EFFORT", 4)

    class Stuck:
        def fit(self, X, y):
            return self

    entry = bench._rival("stuck", lambda _: Stuck(), 0, 0, lambda _: 2.0, 1.0, 1, 1.0)
    assert not entry.reached
    assert entry.objective == 2.0


def test_reproduce_hands_everything_on(command, monkeypatch):
    from shortlist.experiments import registry

    given = {}

    def pretended(name, output, **options):
        given.update(options, name=name, output=output)
        return registry.Outcome(None, "page.html", ("page.html", "table.csv"))

    monkeypatch.setattr(registry, "run", pretended)
    ended = command(
        *["reproduce", "caltech101", "--data", "c.mat", "--seed", 3, "-j", 1, "--quick"],
        *["--output", "there", "--set", "tol=0.01", "--set", "methods=('a',)", "--json"],
    )
    assert check("reproduce", ended.out) == {
        "command": "reproduce",
        "page": "page.html",
        "files": ["page.html", "table.csv"],
    }
    assert given["name"] == "caltech101"
    assert given["output"] == "there"
    assert (given["data"], given["seed"], given["jobs"]) == ("c.mat", 3, 1)
    assert given["quick"] is True
    assert (given["tol"], given["methods"]) == (0.01, ("a",))
    assert given["console"] is None
    command("reproduce", "all", "--data", "caltech101=c.mat", "--data", "aloi=a", "-q")
    assert given["data"] == {"caltech101": "c.mat", "aloi": "a"}
    assert given["output"] == "results/all"
    assert given["progress"] is None
    command("reproduce", "features", "flowers", "vgg16", "-q")
    assert (given["name"], given["dataset"], given["data"]) == ("features", "flowers", "vgg16")
    assert given["output"] == "results/flowers"


def test_reproduce_lists_the_experiments(command):
    from shortlist.experiments import EXPERIMENTS

    ended = command("reproduce")
    assert ended.code == 0
    for name in EXPERIMENTS:
        assert f" {name} " in ended.out
    assert f"{', '.join(EXPERIMENTS)}, or all" in " ".join(
        command("reproduce", "--help").out.replace("│", " ").split()
    )


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nosuch"], "must be one of circle, letter"),
        (["caltech101"], "--data FILE"),
        (["letter", "--set", "nosuch=1"], "--set: letter has no option 'nosuch'"),
        (["letter", "--set", "nosuch"], "--set must be NAME=VALUE"),
        (["all", "--data", "c.mat"], "NAME=FILE"),
        (["aloi", "--data", "a", "--data", "b"], "one file"),
        (["letter", "flowers", "vgg16"], "only features does"),
        (["features", "flowers"], "give a folder with train.npy"),
    ],
)
def test_reproduce_refuses(command, tmp_path, args, words):
    ended = command("reproduce", *args, "-o", "out")
    assert ended.code == 2
    assert words in ended.err
    assert ended.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_features_then_train(command, files, tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    torch.jit.trace(torch.nn.Linear(5, 3).double(), torch.zeros(1, 5).double()).save("net.pt")
    options = ["-o", "f.npy", "--dtype", "float64", "--json", "-q"]
    ended = command("features", "net.pt", files / "X.npy", *options)
    assert ended.code == 0
    told = check("features", ended.out)
    assert (told["n_samples"], told["n_features"], told["labels"]) == (120, 3, None)
    assert (
        command("train", "f.npy", "--labels", files / "y.npy", "-o", "m", "-k", 2, "-q").code == 0
    )
    assert shortlist.load("m").coef_.shape == (4, 3)
    refused = command("features", "net.pt", "nowhere", "-o", "g.npy")
    assert (refused.code, refused.err) == (2, "shortlist: nowhere: no such folder\n")
    assert not (tmp_path / "g.npy").exists()
