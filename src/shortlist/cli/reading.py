"""The options that say how DATA is to be read."""

from dataclasses import dataclass
from enum import StrEnum

from shortlist._parameters import FORMATS, MISSING_POLICIES, SCALES, SPLIT_NAMES
from shortlist.cli.options import Precision

# What an option can be chosen from.
Format = StrEnum("Format", FORMATS)  # type: ignore[misc]
Split = StrEnum("Split", SPLIT_NAMES)  # type: ignore[misc]
LabelType = StrEnum("LabelType", "auto int str")
IndexBase = StrEnum("IndexBase", {"auto": "auto", "zero": "0", "one": "1"})
Missing = StrEnum("Missing", MISSING_POLICIES)  # type: ignore[misc]
Scale = StrEnum("Scale", SCALES)  # type: ignore[misc]


@dataclass(frozen=True)
class ReadingOptions:
    """How DATA is to be read.

    A model keeps how its training data was read. ``predict`` and ``evaluate`` read their data the
    same way, but for what is said here.
    """

    format: Format | None = None
    split: Split | None = None
    label: str = "auto"
    labels: str | None = None
    names: str | None = None
    label_type: LabelType = LabelType.auto
    header: bool | None = None
    delimiter: str | None = None
    index_base: IndexBase = IndexBase.auto
    precision: Precision | None = None
    drop: list[str] | None = None
    id_column: str | None = None
    weight_column: str | None = None
    missing: Missing | None = None
    scale: Scale | None = None
