"""How to add an experiment: what it computes, what it shows, an entry in the registry. Three steps.

The tutorial's experiment counts how many letters a shortlist needs when it is a guess.
"""

import json
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from shortlist.datasets import load_letter
from shortlist.experiments import EXPERIMENTS, Experiment, run
from shortlist.experiments.report import Figure, Section, Table, Value
from shortlist.experiments.units import Context, Task, Unit
from shortlist.plots.charts import Chart, Series


# 1. What is computed: parameters and result are plain data, so that both can be stored.
@dataclass(frozen=True)
class Coverage:
    """The share of test examples whose label is among the k most frequent, for each k."""

    shares: tuple[float, ...]


@dataclass(frozen=True)
class GuessingTask(Task):
    """Guess the labels that are most frequent in the training part."""

    max_k: int

    def run(self, payload: None = None) -> Coverage:
        letter = load_letter()
        ranked = np.argsort(-np.bincount(letter.y_train), kind="stable")[: self.max_k]
        hits = np.bincount(letter.y_test)[ranked].cumsum() / len(letter.y_test)
        return Coverage(tuple(hits.tolist()))


# 2. What is shown: a section of tables and figures. How they look is not its business.
def guessing(context: Context, *, max_k: int = 10) -> Section:
    unit = Unit("guessing", GuessingTask(max_k))
    (found,) = context.compute("guessing", [unit])
    ks = range(1, max_k + 1)
    rows = [[str(k), Value(100 * share)] for k, share in zip(ks, found.shares, strict=True)]
    curve = Series("guessing", list(ks), [100 * share for share in found.shares])
    return Section(
        name="guessing",
        title="Guessing on Letter",
        paragraphs=["Shortlists of the letters that are most frequent."],
        tables=[Table("accuracy", "Accuracy", ["k", "Top-k, %"], rows)],
        figures=[
            Figure("curve", "Against k", "The classes are even.", [Chart("k", "Top-k, %", [curve])])
        ],
        result=found,
    )


# 3. The entry. In the package it is a row of experiments.csv, with "module:function" as its home.
class Guessing(Experiment):
    def function(self):
        return guessing


ENTRY = Guessing("guessing", "no table", "How far guessing gets.", home="")


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "guessing", ENTRY)


def test_it_runs_like_the_others(registered, tmp_path):
    outcome = run("guessing", tmp_path, max_k=5, jobs=1)
    assert outcome.page.is_file()
    data = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    shares = data["sections"]["guessing"]["result"]["shares"]
    letter = load_letter()
    commonest = np.bincount(letter.y_train).argmax()
    assert shares[0] == pytest.approx((letter.y_test == commonest).mean())
    assert len(shares) == 5
    assert (tmp_path / "guessing-accuracy.csv").read_text(encoding="utf-8").startswith("k,")


def test_what_is_stored_is_not_computed_again(registered, tmp_path, monkeypatch):
    first = run("guessing", tmp_path, max_k=3, jobs=1).report.sections[0].result

    def refuse(self, payload=None) -> Coverage:
        sys.exit("computed again")

    monkeypatch.setattr(GuessingTask, "run", refuse)
    assert run("guessing", tmp_path, max_k=3, jobs=1).report.sections[0].result == first
    with pytest.raises(SystemExit, match="computed again"):
        run("guessing", tmp_path, max_k=4, jobs=1)


def test_it_has_its_options(registered, tmp_path):
    assert ENTRY.options() == {"max_k": 10}
    with pytest.raises(TypeError, match="it has max_k"):
        run("guessing", tmp_path, length=3)
