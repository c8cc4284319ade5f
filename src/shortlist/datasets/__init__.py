"""Data: Letter (embedded), the paper's circle, stand-ins, file readers, LibSVM's sets by name.

Names load on first use: ``import shortlist.datasets`` is instant, and pandas, pyarrow or a
progress bar are imported only by what needs them.
"""

from shortlist._lazy import names_of

_HOME = {
    "DataError": "shortlist.errors",
    "DataSplits": "containers",
    "LabeledData": "containers",
    "Reading": "how_read",
    "Scaling": "scaling",
    "circle_bayes_accuracy": "circle",
    "circle_class_probabilities": "circle",
    "circle_segment": "circle",
    "data_format": "read",
    "default_cache_dir": "shortlist._folders",
    "fetch": "downloads",
    "load_countries": "standins",
    "load_glyphs": "standins",
    "load_languages": "standins",
    "load_letter": "letter",
    "make_circle": "circle",
    "pair_names": "names",
    "read_arrow": "arrow_tables",
    "read_class_names": "names",
    "read_csv": "csv_tables",
    "read_dataset": "read",
    "read_libsvm": "libsvm",
    "read_mat": "arrays",
    "read_npy": "arrays",
    "read_npz": "arrays",
    "read_parquet": "arrow_tables",
    "read_parts": "splits",
    "read_splits": "read",
    "reader_of": "read",
    "scaled_parts": "read",
    "with_class_names": "read",
    "write_libsvm": "libsvm",
}

__getattr__, __dir__, __all__ = names_of(__name__, _HOME)
