"""Scales and ticks of the report's own charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Scale:
    """Maps values between ``low`` and ``high`` to positions between ``start`` and ``stop``."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        if self.log:
            # What a logarithmic axis cannot show lies at its lower end.
            value, low, high = math.log10(max(value, self.low)), *map(math.log10, self.ends)
        else:
            low, high = self.ends
        share = (value - low) / (high - low)
        return self.start + share * (self.stop - self.start)

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    def ticks(self, count: int, whole: bool = False) -> list[tuple[float, str]]:
        """About ``count`` round values within the range, with their labels."""
        if self.log and len(ticks := _decades(self.low, self.high, count)) > 1:
            return ticks
        step = _round_step((self.high - self.low) / max(count, 1), whole)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        if not whole and round(step, digits) != step:
            digits += 1  # a step of 2.5 of the last digit
        return [(i * step, _number(i * step, digits)) for i in range(first, last + 1)]


def limits(values: Sequence[float], log: bool, pad: float) -> tuple[float, float]:
    """The range of finite values, a little widened; never empty."""
    finite = np.asarray([v for v in values if math.isfinite(v) and (v > 0 or not log)], float)
    if finite.size == 0:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(finite.min()), float(finite.max())
    if log:
        low, high = math.log10(low), math.log10(high)
    if high - low < 1e-9 * max(abs(low), abs(high), 1.0):
        low, high = low - 0.5, high + 0.5
    low, high = low - pad * (high - low), high + pad * (high - low)
    return (10**low, 10**high) if log else (low, high)


def _round_step(raw: float, whole: bool) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below ``raw``."""
    power = 10.0 ** math.floor(math.log10(raw))
    factors = (1.0, 2.0, 5.0, 10.0) if whole else (1.0, 2.0, 2.5, 5.0, 10.0)
    step = next(power * factor for factor in factors if power * factor >= raw * (1 - 1e-9))
    return max(step, 1.0) if whole else step


def _decades(low: float, high: float, count: int) -> list[tuple[float, str]]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        # Less than two powers of ten in sight: 1, 2 and 5 times them, in full.
        candidates = [f * 10.0**e for e in range(first - 1, last + 2) for f in (1, 2, 5)]
        return [(v, f"{v:g}") for v in candidates if low <= v <= high]
    every = max(1, math.ceil((last - first + 1) / max(count, 1)))
    return [(10.0**e, _power(e)) for e in range(first, last + 1) if e % every == 0]


def _power(exponent: int) -> str:
    if 0 <= exponent <= 2:
        return str(10**exponent)
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def _number(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.replace("-", "−") if float(text) != 0 else text.replace("-", "")
