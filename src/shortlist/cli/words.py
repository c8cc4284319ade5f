"""The library's parameters in the command's words: ``loss='hinge'`` is ``--loss hinge`` here."""

from __future__ import annotations

from shortlist._text import Setting, escape_controls

# Parameters whose option is not just their name with dashes.
_OPTIONS = {
    "C": "-C",
    "Cs": "--Cs",
    "cv": "-v",
    "id_column": "--id",
    "intercept_scaling": "-B",
    "k": "-k",
    "max_extensions": "--extend",
    "n_jobs": "--jobs",
    "n_workers": "--workers",
    "random_state": "--seed",
    "sample_weight": "--weight",
    "weight_column": "--weight",
}
# The placeholder for the value of a parameter that is named without one.
_PLACEHOLDERS = {"labels": "FILE", "label": "COLUMN", "drop": "COLUMN", "split": "PART"}
# Settings that have an option of their own.
_WHOLE = {
    Setting("header", True): "--header",
    Setting("header", False): "--no-header",
    Setting("label", None): "--label none",
    Setting("zero_based", True): "--index-base 0",
    Setting("zero_based", False): "--index-base 1",
}


def as_option(setting: Setting) -> str:
    """A parameter as the command's users know it."""
    if setting in _WHOLE:
        return _WHOLE[setting]
    option = _OPTIONS.get(setting.parameter, "--" + setting.parameter.replace("_", "-"))
    if setting.has_value:
        single = setting.value[0] if isinstance(setting.value, tuple) else setting.value
        value = str(single)
        return f"{option} {value}" if value.isalnum() else f"{option} {value!r}"
    placeholder = _PLACEHOLDERS.get(setting.parameter)
    return option if placeholder is None else f"{option} {placeholder}"


def message_of(error: BaseException) -> str:
    """What an error or a warning says, in one line that a terminal can show."""
    say = getattr(error, "worded", None)
    if say is not None:
        return str(say(as_option))
    return escape_controls(" ".join(str(error).split()))
