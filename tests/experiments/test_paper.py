"""The paper's tables: complete, consistent, and equal to a second, independent transcription."""

import hashlib

import pytest

from shortlist.experiments import paper

TABLE_3_SETS = tuple(paper.TABLE_3)


def test_every_data_set_has_the_papers_rows():
    topk = ("topk-svm", "smooth-topk-svm", "topk-ent", "trunc-ent")
    for dataset in TABLE_3_SETS:
        expected = {"svm-multi", "lr-multi", "smooth-topk-svm:1"}
        large = dataset in ("sun397", "places205", "ilsvrc2012")
        if not large:
            expected |= {"svm-ova", "lr-ova"}
        for k in paper.ks(dataset)[1:]:
            expected |= {
                f"{family}:{k}" for family in topk if not (large and family == "trunc-ent")
            }
        assert set(paper.methods(dataset)) == expected
        for method in expected:
            assert len(paper.TABLE_3[dataset][method]) == len(paper.ks(dataset))


def test_circle_has_nine_methods():
    assert len(paper.methods("circle")) == 9
    assert paper.accuracy("circle", "trunc-ent:2", 2) == 96.1
    assert paper.accuracy("circle", "lr-multi", 2) == 81.7


@pytest.mark.parametrize("dataset", paper.datasets())
def test_accuracy_grows_with_k(dataset):
    for method in paper.methods(dataset):
        row = [paper.accuracy(dataset, method, k) for k in paper.ks(dataset)]
        assert row == sorted(row)
        assert all(0 < value < 100 for value in row)
        assert all(round(value, 1) == value for value in row)


def test_transcription_equals_the_second_one():
    # The hash was taken from a transcription made by parsing the paper's source.
    text = repr([(d, m, paper.TABLE_3[d][m]) for d in TABLE_3_SETS for m in paper.methods(d)])
    assert (
        hashlib.sha256(text.encode()).hexdigest()
        == "c18a9b928fe757197995b214770af480e49750615c28c5dc8331eba71c047519"
    )


# Numbers printed in bold in the paper, one for each data set and several ks.
@pytest.mark.parametrize(
    ("dataset", "k", "bold"),
    [
        ("circle", 1, {"smooth-topk-svm:1"}),
        ("circle", 2, {"trunc-ent:2"}),
        ("aloi", 3, {"trunc-ent:3"}),
        ("letter", 3, {"topk-svm:5", "smooth-topk-svm:5"}),
        ("letter", 10, {"smooth-topk-svm:10"}),
        ("news20", 10, {"svm-ova", "lr-multi", "smooth-topk-svm:10"}),
        ("caltech101", 10, {"trunc-ent:3", "trunc-ent:5", "trunc-ent:10"}),
        ("indoor67", 3, {"svm-multi", "topk-ent:3"}),
        ("cub", 10, {"lr-multi", "topk-ent:3"}),
        ("flowers", 3, {"smooth-topk-svm:5"}),
        ("fmd", 5, {"lr-ova", "trunc-ent:3"}),
        ("sun397", 1, {"lr-multi"}),
        ("places205", 10, {"lr-multi", "topk-svm:10", "smooth-topk-svm:10"}),
        ("ilsvrc2012", 10, {"topk-svm:10", "smooth-topk-svm:10"}),
    ],
)
def test_the_largest_numbers_are_the_bold_ones(dataset, k, bold):
    assert set(paper.best_methods(dataset, k)) == bold


def test_table_4_covers_table_3():
    assert set(paper.TABLE_4) == set(paper.datasets())
    for dataset in TABLE_3_SETS:
        assert paper.TABLE_4[dataset].n_classes >= max(paper.ks(dataset))


def test_table_5():
    for half in paper.TABLE_5.values():
        assert set(half) == {
            paper.BEFORE,
            "smooth-topk-svm:3",
            "smooth-topk-svm:5",
            "trunc-ent:3",
            "trunc-ent:5",
            "lr-multi",
        }
        # Fine-tuning improved every network at every k except one number.
        worse = [
            (method, ours, before)
            for method, row in half.items()
            for ours, before in zip(row, half[paper.BEFORE], strict=True)
            if method != paper.BEFORE and ours <= before
        ]
        assert worse in ([], [("smooth-topk-svm:3", 94.56, 94.59)])


@pytest.mark.parametrize(
    ("method", "family", "k", "name"),
    [
        ("svm-ova", "svm-ova", 1, "SVM-OVA"),
        ("lr-multi", "lr-multi", 1, "LR-Multi"),
        ("topk-svm:10", "topk-svm", 10, "top-10 SVM"),
        ("smooth-topk-svm:1", "smooth-topk-svm", 1, "smooth top-1 SVM"),
        ("trunc-ent:5", "trunc-ent", 5, "truncated top-5 Ent"),
    ],
)
def test_method_names(method, family, k, name):
    assert paper.split_method(method) == (family, k)
    assert paper.display_name(method) == name


def test_every_method_has_a_display_name():
    names = {paper.display_name(m) for d in paper.datasets() for m in paper.methods(d)}
    assert len(names) == len({m for d in paper.datasets() for m in paper.methods(d)})


@pytest.mark.parametrize("method", ["", "svm", "topk-svm", "topk-svm:", "topk-svm:x", "lr-multi:3"])
def test_other_methods_are_refused(method):
    with pytest.raises(ValueError, match="not a method"):
        paper.split_method(method)


def test_refusals_say_what_is_allowed():
    with pytest.raises(ValueError, match="dataset must be one of circle, aloi"):
        paper.accuracy("mnist", "lr-multi", 1)
    with pytest.raises(ValueError, match="method must be one of svm-multi"):
        paper.accuracy("sun397", "svm-ova", 1)
    with pytest.raises(ValueError, match=r"k must be one of \(1, 3, 5\)"):
        paper.accuracy("fmd", "lr-multi", 10)
