"""Families of a search: each has its rows of the table, whatever parameters it differs in."""

import numpy as np
from sklearn.datasets import make_classification

import shortlist
from shortlist import TopKClassifierCV


def test_rows_of_families_and_choices():
    X, y = make_classification(120, 8, n_informative=6, n_classes=4, random_state=0)
    search = TopKClassifierCV(losses=["hinge", "entropy"], Cs=[0.01, 0.1], ks=(1, 2), cv=2)
    search.fit(X, y)
    rows = search.rows_by_family()
    assert list(rows) == [0, 1]
    table = search.cv_results_
    for number, mine in rows.items():
        family = search.families_[number]
        assert set(table["loss"][mine]) == {family["loss"]} == {["hinge", "entropy"][number]}
        assert set(table["k"][mine]) == {family["k"]} == {1}
    assert sorted(row for mine in rows.values() for row in mine) == list(range(len(table["C"])))
    for k in (1, 2):
        row = search.chosen_row(k)
        assert (table["loss"][row], table["C"][row]) == (search.losses_[k]["loss"], search.C_[k])
        assert table[f"mean_top{k}"][row] == table[f"mean_top{k}"].max()


def test_families_that_differ_in_class_weights_alone_are_two(tmp_path):
    """Each has its rows, and what is told of the choice is the chosen one's."""
    X, y = make_classification(
        300, 6, n_informative=4, n_classes=3, weights=[0.8, 0.15, 0.05], random_state=1
    )
    families = [{"class_weight": None}, {"class_weight": "balanced"}]
    # Balanced weights in training are best by balanced accuracy: the second family is chosen.
    search = TopKClassifierCV(
        losses=families, Cs=[0.1, 1.0], ks=(1, 2), cv=3, max_extensions=0, random_state=0
    ).set_params(scoring="balanced_accuracy")
    search.fit(X, y)
    alone = [
        TopKClassifierCV(Cs=[0.1, 1.0], ks=(1, 2), cv=3, max_extensions=0, random_state=0, **family)
        .set_params(scoring="balanced_accuracy")
        .fit(X, y)
        for family in families
    ]
    table = search.cv_results_
    assert table["family"].tolist() == [0, 0, 1, 1]
    rows = search.rows_by_family()
    assert {number: mine.tolist() for number, mine in rows.items()} == {0: [0, 1], 1: [2, 3]}
    for one, mine in zip(alone, rows.values(), strict=True):
        np.testing.assert_allclose(table["mean_score"][mine], one.cv_results_["mean_score"])
    shortlist.save(search, tmp_path / "m")
    for told in (search, shortlist.load(tmp_path / "m")):
        for k in (1, 2):
            row = told.chosen_row(k)
            assert row == table["mean_score"].argmax() >= 2
            assert told.losses_[k]["class_weight"] == "balanced"
            assert told.estimators_[k].class_weight == "balanced"
        text = told.summary()
        assert text.index("class_weight=None") < text.index("class_weight=balanced")
        assert text.index("*") > text.index("class_weight=balanced")
