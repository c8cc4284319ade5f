"""Some hundred damaged files of each format, and edited models. See tests/fuzz for longer runs."""

import warnings

import pytest

from shortlist import persistence
from tests.fuzz.models import Models
from tests.fuzz.readers import Readers, _formats
from tests.fuzz.runner import run

pytest.importorskip("resource")

CASES_PER_FORMAT = 100
MODEL_CASES = 400


def test_damaged_data_files():
    """In a process of its own: a crash must not end the suite."""
    kinds = len(_formats())
    report = run("readers", CASES_PER_FORMAT * kinds, seed=1)
    assert report.failures == []
    # Both ends are met in every format: nothing is refused, or read, whatever is in it.
    for kind, counts in report.outcomes.items():
        assert counts["refused"] > 0, kind
    assert len([c for c in report.outcomes.values() if c["accepted"]]) >= kinds - 2


def test_edited_model_files():
    report = run("models", MODEL_CASES, seed=1)
    assert report.failures == []
    for kind, counts in report.outcomes.items():
        assert counts["refused"] > 0, kind
        assert counts["accepted"] > 0, kind


@pytest.mark.filterwarnings("ignore")
def test_the_fuzzer_of_models_finds_what_is_not_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(persistence, "check_state", lambda *args: None)
    cases = Models(1, tmp_path)
    outcomes = [cases.run(number)[1] for number in range(150)]
    assert any(outcome.startswith("loads, then") for outcome in outcomes)


def test_the_fuzzer_of_readers_finds_what_is_not_caught(tmp_path, monkeypatch):
    from contextlib import nullcontext

    monkeypatch.setattr("shortlist.datasets.npy.parser_errors", lambda message, path: nullcontext())
    cases = Readers(1, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = [cases.run(number)[1] for number in range(200)]
    assert any(outcome.startswith("raises") for outcome in outcomes)
