"""exp, log and V(t) = W(exp t) against arbitrary precision."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist import special
from shortlist._jit import njit

BOUND = {np.float64: 1e-15, np.float32: 5e-7}  # of the relative error of V
RIGHT_END = 1e8
LEFT_END = {np.float64: -700.0, np.float32: -87.0}  # further left results are subnormal


def _exact_v(t: float) -> mpmath.mpf:
    """The w > 0 of  w + log w = t."""
    t = mpmath.mpf(t)
    if t < -60:
        z = mpmath.exp(t)
        return z - z * z
    w = mpmath.exp(t) / (1 + mpmath.exp(t)) if t < 1 else t - mpmath.log(t)
    for _ in range(9):
        w = w * (1 + t - mpmath.log(w)) / (1 + w)
    return w


def _relative_errors(computed, exact) -> np.ndarray:
    pairs = zip(computed, exact, strict=True)
    return np.array([float(abs(mpmath.mpf(float(c)) / e - 1)) for c, e in pairs])


@pytest.fixture(autouse=True)
def _forty_digits():
    with mpmath.workdps(40):
        yield


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_relative_error_of_v(dtype):
    rng = np.random.default_rng(0)
    t = np.concatenate(
        [
            rng.uniform(-6.0, 6.0, 400),
            rng.uniform(LEFT_END[dtype], 0.0, 400),
            10.0 ** rng.uniform(0.0, 8.0, 400),
            -1.0 + rng.normal(size=100) * 1e-3,  # where two formulas meet
            [LEFT_END[dtype], -1.0, 0.0, 1.0, RIGHT_END, 1e9, 1.0000001e9, 1e12, 1e30],
        ]
    ).astype(dtype)
    errors = _relative_errors(special.lambertw_exp(t), [_exact_v(float(x)) for x in t])
    assert errors.max() <= BOUND[dtype], t[errors.argmax()]


@given(t=st.floats(-700.0, 1e8))
def test_v_solves_its_equation(t):
    w = special.lambertw_exp(t)
    assert w > 0
    # What one unit in the last place of w and of t amounts to.
    assert abs(w + np.log(w) - t) <= 1e-15 * (2 + w + abs(t))


@pytest.mark.parametrize(
    ("dtype", "start", "end"), [(np.float64, -746, -700), (np.float32, -105, -87)]
)
def test_subnormal_results(dtype, start, end):
    """Right to a few units of the smallest number there is."""
    t = np.linspace(start, end, 300).astype(dtype)
    smallest = float(np.finfo(dtype).smallest_subnormal)
    computed = special.lambertw_exp(t).astype(np.float64)
    exact = np.array([float(_exact_v(float(x))) for x in t])
    assert (np.abs(computed - exact) <= 2 * smallest + 4 * np.finfo(dtype).eps * exact).all()
    assert (np.diff(computed) >= 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_infinities_nan_and_the_ends_of_the_range(dtype):
    largest = np.finfo(dtype).max
    t = np.array([np.inf, -np.inf, np.nan, largest, -largest], dtype)
    with np.errstate(all="raise"):
        result = special.lambertw_exp(t)
    np.testing.assert_array_equal(result, np.array([np.inf, 0.0, np.nan, largest, 0.0], dtype))
    # Special values must not disturb their neighbours in a vector register.
    mixed = np.tile(np.array([np.nan, 1.0, np.inf, 1.0, -np.inf, 1.0], dtype), 20)
    np.testing.assert_array_equal(special.lambertw_exp(mixed)[1::2], 1.0)


def test_monotone():
    t = np.sort(np.random.default_rng(1).uniform(-30.0, 30.0, 20000))
    assert (np.diff(special.lambertw_exp(t)) >= -1e-15 * special.lambertw_exp(t)[1:]).all()


def test_shapes_and_types():
    assert special.lambertw_exp(1.0) == 1.0
    assert np.ndim(special.lambertw_exp(np.float32(0.5))) == 0
    assert special.lambertw_exp(np.float32(0.5)).dtype == np.float32
    assert special.lambertw_exp([1, 2]).dtype == np.float64
    assert special.lambertw_exp(np.zeros((2, 0, 3))).shape == (2, 0, 3)
    t = np.random.default_rng(2).normal(size=(4, 6))
    expected = special.lambertw_exp(t)
    t.setflags(write=False)
    np.testing.assert_array_equal(special.lambertw_exp(t), expected)
    np.testing.assert_array_equal(special.lambertw_exp(t.T), expected.T)
    np.testing.assert_array_equal(special.lambertw_exp(t[::2, ::3]), expected[::2, ::3])
    with pytest.raises(TypeError, match="real numbers"):
        special.lambertw_exp([1j])


@njit
def _exp_and_log(x, exps, logs):
    for j in range(x.shape[0]):
        exps[j] = special.exp(x[j])
        logs[j] = special.log(exps[j])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exp_and_log(dtype):
    """Within about one unit in the last place wherever the result is normal."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(LEFT_END[dtype], 87.0, 400), rng.uniform(-1.0, 1.0, 400)])
    x = x.astype(dtype)
    exps, logs = np.empty_like(x), np.empty_like(x)
    _exp_and_log(x, exps, logs)
    unit = np.finfo(dtype).eps
    assert _relative_errors(exps, [mpmath.exp(float(v)) for v in x]).max() <= 1.5 * unit
    exact_logs = [mpmath.log(float(v)) for v in exps]
    errors = [abs(mpmath.mpf(float(c)) - e) for c, e in zip(logs, exact_logs, strict=True)]
    scale = np.array([float(abs(e)) for e in exact_logs])
    assert (np.array(errors, dtype=float) <= 1.5 * unit * scale).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exp_at_the_ends(dtype):
    x = np.array([-np.inf, np.inf, np.nan, 0.0, -800.0, 800.0], dtype)
    exps, logs = np.empty_like(x), np.empty_like(x)
    _exp_and_log(x, exps, logs)
    np.testing.assert_array_equal(exps, np.array([0.0, np.inf, np.nan, 1.0, 0.0, np.inf], dtype))
    assert logs[3] == 0.0
