"""The options that say how DATA is to be read."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from shortlist.cli.options import Precision
from shortlist.cli.unfold import option

READING = "Reading DATA"
TABLES = "Columns of DATA"


# What an option can be chosen from.
Format = StrEnum("Format", "libsvm csv parquet arrow npy npz mat")
Split = StrEnum("Split", "train val test")
LabelType = StrEnum("LabelType", "auto int str")
IndexBase = StrEnum("IndexBase", {"auto": "auto", "zero": "0", "one": "1"})
Missing = StrEnum("Missing", "error mean drop")
Scale = StrEnum("Scale", "standard minmax l2")


@dataclass(frozen=True)
class ReadingOptions:
    """How DATA is to be read.

    A model keeps how its training data was read. ``predict`` and ``evaluate`` read their data the
    same way, but for what is said here.
    """

    panel: ClassVar[str] = READING

    format: Format | None = option(
        "--format FORMAT",
        "libsvm, csv, parquet, arrow, npy, npz or mat, where the name does not tell.",
    )
    split: Split | None = option(
        "--split PART",
        "train, val or test: the part to take where DATA has several. Without it, train and cv "
        "take train; predict and evaluate take test.",
    )
    label: str = option(
        "--label COLUMN",
        "The labels' column, by name or number (0 is the first, -1 the last); 'none': there is "
        "none. 'auto' takes one named label, labels, target, class or y, otherwise the last, and "
        "says so.",
        "auto",
    )
    labels: str | None = option(
        "--labels FILE",
        "For .npy, .npz and .mat: a second file with the labels, .npy or text with one label a "
        "line.",
    )
    names: str | None = option(
        "--names FILE",
        "Names of the classes: text with one name a line, in the order of the labels, or JSON "
        '{"label": "name"}. They are kept in the model.',
    )
    label_type: LabelType = option(
        "--label-type auto|int|str",
        "For .csv and LibSVM text: whether labels are numbers or text.",
        LabelType.auto,
    )
    header: bool | None = option(
        "--header/--no-header",
        "For .csv: whether the first line names the columns. It is looked at otherwise.",
    )
    delimiter: str | None = option(
        "--delimiter TEXT", "For .csv: what separates columns, if not a comma (or a tab in .tsv)."
    )
    index_base: IndexBase = option(
        "--index-base auto|0|1",
        "For LibSVM text: the number of the first feature. 'auto' is 0 if the training file has an "
        "index 0, and 1 otherwise.",
        IndexBase.auto,
    )
    precision: Precision | None = option(
        "--dtype TYPE",
        "float32 or float64: the precision of the features, and so of training. float32 takes half "
        "the memory. Without it: the file's own, float64 for text.",
    )
    drop: list[str] | None = option(
        "--drop COLUMN", "Leave this column out, by name or number; may be repeated.", panel=TABLES
    )
    id_column: str | None = option(
        "--id COLUMN",
        "The column with the examples' names. It is no feature; predict repeats it.",
        panel=TABLES,
    )
    weight_column: str | None = option(
        "--weight COLUMN",
        "The column that says how much each example counts in training. It is no feature.",
        panel=TABLES,
    )
    missing: Missing | None = option(
        "--missing error|mean|drop",
        "Missing values (empty, NA, NaN, null, ?): an error, the feature's mean in the training "
        "data, or leave the example out. Without it, as in training; there, an error.",
        panel=TABLES,
    )
    scale: Scale | None = option(
        "--scale standard|minmax|l2",
        "Bring the features to similar sizes, which makes training faster: mean 0 and deviation 1; "
        "from 0 to 1; or rows of length 1. The numbers come from the training data and are kept in "
        "the model. Zeros of sparse data stay zeros.",
    )
