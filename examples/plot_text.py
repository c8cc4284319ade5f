"""
Text: which module should I look in?
====================================

A shortlist is what a search gives. Here the documents are the docstrings of NumPy, SciPy and
scikit-learn, which are on every machine that runs this, and the classes are the modules they come
from. The features are sparse: each document has a few of some thousand
words.
"""

import importlib
import inspect
import pkgutil
import warnings

import matplotlib.pyplot as plt
import numpy as np
import scipy
import sklearn
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from shortlist import TopKClassifier
from shortlist.plots import TopKCurveDisplay

# %%
# The data: the first two paragraphs of the docstring of every public function and class.


def public_modules():
    yield from ("numpy.fft", "numpy.linalg", "numpy.ma", "numpy.polynomial", "numpy.random")
    for package in (scipy, sklearn):
        for module in pkgutil.iter_modules(package.__path__):
            if module.ispkg and not module.name.startswith(("_", "test", "externals")):
                yield f"{package.__name__}.{module.name}"


def docstrings(module):
    for name in dir(module):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = getattr(getattr(module, name), "__doc__", None)
        if not name.startswith("_") and isinstance(text, str) and len(text) > 200:
            yield " ".join(inspect.cleandoc(text).split("\n\n")[:2])


documents = {
    text: name for name in public_modules() for text in docstrings(importlib.import_module(name))
}
texts, modules = np.array(list(documents)), np.array(list(documents.values()))
names, counts = np.unique(modules, return_counts=True)
kept = np.isin(modules, names[counts >= 20])
train, test, y_train, y_test = train_test_split(
    texts[kept], modules[kept], test_size=0.3, random_state=0, stratify=modules[kept]
)
print(f"{len(train)} documents to train on, {len(np.unique(y_train))} modules")

# %%
# An ordinary pipeline. Training takes CSR matrices as they are.

words = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2)
model = make_pipeline(words, TopKClassifier("softmax", C=30.0, random_state=0)).fit(train, y_train)
classifier = model[-1]
X_test = words.transform(test)
print(f"{classifier.n_features_in_} features, {X_test.nnz / len(test):.0f} of them in a document")

for question in [
    "fit a curve to noisy measurements",
    "eigenvalues of a large sparse symmetric matrix",
    "remove noise from a sound recording",
]:
    shortlist = classifier.predict_topk(words.transform([question]), 3)[0]
    print(f"{question}: {', '.join(shortlist)}")

# %%
# How long must the list be?

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
TopKCurveDisplay.from_estimator(classifier, X_test, y_test, name="softmax", ax=ax)
counted = np.sort(np.unique(y_train, return_counts=True)[1])[::-1]
ax.plot(range(1, 11), counted.cumsum()[:10] / counted.sum(), "--", color="0.5", label="guessing")
ax.set(title="The module of a docstring", xlabel="Length of the shortlist k")
ax.legend()
plt.show()
