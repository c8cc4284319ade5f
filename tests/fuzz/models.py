"""Edited model files: a model that works, or refused with a ModelFileError that names the file.

Most cases edit the contents and recompute the checksum, as an attacker would. The others
damage bytes.
"""

from __future__ import annotations

import copy
import json
import random
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from scipy import sparse

import shortlist
from shortlist._state_files import digest
from shortlist.errors import ModelFileError
from shortlist.persistence import MODEL_FILE

from .mutations import mutate

MARK = MODEL_FILE.mark
BYTE_DAMAGE_SHARE = 0.2
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, 10**30, 0.0, 0.5, -1.5, 1e300, "", "x"),
    *("nan", "entropy", "hinge", "auto", "precomputed", "\ud800", [], [1], {}, {"a": 1}),
    *({"$float": "nan"}, {"$float": "inf"}, {"$tuple": [1, 1]}, {"$dtype": "<f8"}, {"$dtype": "O"}),
    *({"$items": {"kind": "text", "shape": [2], "items": ["b", "a"]}}, {"$dict": [[1, 2]]}),
    *({"$items": {"kind": "object", "shape": [3], "items": [1, "a", None]}}, {"$model": {}}),
)


def _base_models() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 8)
    X = rng.normal(size=(32, 5)) + 2 * np.eye(5)[y]
    words = np.array(["ant", "bee", "cat", "dog"])[y]
    several = (rng.random((32, 4)) < 0.4).astype(int)
    linear, kernel = shortlist.TopKClassifier, shortlist.KernelTopKClassifier
    search = shortlist.TopKClassifierCV(Cs=[0.1, 1.0], ks=(1, 2), cv=2, max_extensions=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "linear": linear("smooth_hinge", k=2, random_state=0).fit(X, y),
            "linear, words": linear(class_weight={"ant": 2.0}, fit_intercept=False).fit(X, words),
            "several labels": linear("smooth_hinge").fit(X.astype(np.float32), several),
            "kernel": kernel("smooth_hinge").fit(X, words),
            "kernel, sparse": kernel("entropy", gamma=0.5).fit(sparse.csr_matrix(X), y),
            "precomputed": kernel("hinge", kernel="precomputed").fit(X @ X.T, y),
            "search": search.fit(X, y),
        }


class _File:
    """A model file as plain data and arrays, to be edited and written with a fitting checksum."""

    def __init__(self, content: bytes) -> None:
        end = 8 + struct.unpack("<Q", content[:8])[0]
        self.own = json.loads(json.loads(content[8:end])["__metadata__"][MARK])
        self.arrays = safetensors.numpy.load(content)

    def content(self) -> bytes:
        self.own["sha256"] = digest(self.own["state"], self.arrays)
        own = json.dumps(self.own)
        return bytes(safetensors.numpy.save(self.arrays, metadata={MARK: own}))

    def places(self) -> list[tuple[Any, Any]]:
        """Every entry of the state, as its container and its key."""
        found: list[tuple[Any, Any]] = []
        ahead = [self.own["state"]]
        while ahead:
            node = ahead.pop()
            entries = node.items() if isinstance(node, dict) else enumerate(node)
            for key, value in entries:
                found.append((node, key))
                if isinstance(value, dict | list):
                    ahead.append(value)
        return found

    def edit_state(self, rng: random.Random) -> None:
        container, key = rng.choice(self.places())
        action = rng.choice(("replace", "replace", "delete", "nudge", "repeat"))
        value = container[key]
        if action == "delete":
            del container[key]
        elif action == "nudge" and isinstance(value, int | float) and not isinstance(value, bool):
            container[key] = rng.choice((value + 1, value - 1, -value, value * 1e6, value / 3))
        elif action == "repeat" and isinstance(container, list):
            container.insert(key, copy.deepcopy(value))
        else:
            container[key] = copy.deepcopy(rng.choice(_VALUES))

    def edit_array(self, rng: random.Random) -> None:
        name = rng.choice(sorted(self.arrays))
        array = self.arrays[name]
        edits = {
            "nan": lambda a: _with(a, rng, np.nan) if a.dtype.kind == "f" else a[::-1],
            "inf": lambda a: _with(a, rng, -np.inf) if a.dtype.kind == "f" else a + 1,
            "cut": lambda a: a[:-1] if a.ndim else a,
            "repeat": lambda a: np.concatenate([a, a[-1:]]) if a.ndim and len(a) else a,
            "turn": lambda a: a.T,
            "flat": lambda a: a.ravel(),
            "reverse": lambda a: a[::-1] if a.ndim else a,
            "integer": lambda a: np.nan_to_num(a).astype(np.int64),
            "half": lambda a: a.astype(np.float16),
            "bytes": lambda a: np.frombuffer(b"text as numbers.", np.uint8),
            "empty": lambda a: a[:0] if a.ndim else a,
            "zero": lambda a: np.zeros_like(a),
            "negative": lambda a: -a if a.dtype.kind in "if" else a,
            "huge": lambda a: np.full_like(a, 1e38 if a.dtype.kind == "f" else 1),
        }
        with np.errstate(all="ignore"):
            edited = np.ascontiguousarray(edits[rng.choice(sorted(edits))](array))
        self.arrays[name] = edited
        if rng.random() < 0.8:  # the state tells the new type and shape
            for container, key in self.places():
                entry = container[key]
                if isinstance(entry, dict) and entry.get("name") == name and "dtype" in entry:
                    entry["dtype"], entry["shape"] = edited.dtype.str, list(edited.shape)


def _with(array: np.ndarray, rng: random.Random, value: float) -> np.ndarray:
    changed = array.copy()
    if changed.size:
        changed.flat[rng.randrange(changed.size)] = value
    return changed


class Models:
    """Cases by number: every kind of model in turn, edited by the seed and the number."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._seed, self._folder = seed, folder
        self._contents = {}
        for kind, model in _base_models().items():
            reading = {"format": "csv", "n_features": model.n_features_in_, "label": "class"}
            shortlist.save(model, folder / "base", data={"reading": reading})
            self._contents[kind] = (folder / "base").read_bytes()

    def run(self, number: int) -> tuple[str, str]:
        """Run a case; returns its kind, and "" for a model, "refused", or what is wrong."""
        kinds = sorted(self._contents)
        kind = kinds[number % len(kinds)]
        path = self._folder / "model.shortlist"
        path.write_bytes(
            self._edited(self._contents[kind], random.Random(f"{self._seed} {number}"))
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = shortlist.load(path)
        except ModelFileError as error:
            message = str(error)
            named = message.startswith(str(path))
            return kind, "refused" if named and "\n" not in message else f"says {message!r}"
        except Exception as error:
            return kind, f"raises {type(error).__name__}: {str(error)[:200]}"
        try:
            self._check(model)
        except Exception as error:
            return kind, f"loads, then {type(error).__name__}: {str(error)[:200]}"
        return kind, ""

    @staticmethod
    def _edited(content: bytes, rng: random.Random) -> bytes:
        if rng.random() < BYTE_DAMAGE_SHARE:
            return mutate(content, rng)
        file = _File(content)
        for _ in range(rng.choice((1, 1, 1, 2))):
            (file.edit_array if rng.random() < 0.4 else file.edit_state)(rng)
        try:
            return file.content()
        except UnicodeEncodeError:  # half a character cannot be written
            return mutate(content, rng)

    def _check(self, model: Any) -> None:
        """Assert that a model does what models do."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(3, model.n_features_in_))
        n_classes = len(model.classes_)
        assert len(set(model.classes_.tolist())) == n_classes >= 2
        scores = model._scores(X)
        assert scores.shape == (3, n_classes)
        assert np.isfinite(scores).all()
        model.predict(X)
        known = set(model.classes_.tolist())
        assert set(model.predict_topk(X, k=1).ravel().tolist()) <= known
        assert model.predict_topk(X).shape[1] == model.k < n_classes
        for fitted in getattr(model, "estimators_", {0: model}).values():
            assert fitted.result_.primal >= 0
            fitted.result_.to_dict()
        again = self._folder / "again"
        shortlist.save(model, again)
        np.testing.assert_array_equal(shortlist.load(again)._scores(X), scores)
