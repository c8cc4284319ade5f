"""Elementary functions for the kernels: exp, log and V(t) = W(exp t), branch-free and in SIMD.

``V`` is the Lambert W function of an exponential, the solution w > 0 of  w + log w = t.
It turns the optimality conditions of entropic problems into closed forms: the minimiser of
``x log x - x + (eta/2) x^2 - b x`` is ``x = V(b + log eta) / eta``.

Kernels call ``exp``, ``log``, ``V`` with scalars of either precision; users call
:func:`lambertw_exp` with arrays.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shortlist._jit import by_precision, kernel_array, njit

# The compiler can vectorise these because they hold no branch and no call: range reduction,
# a polynomial, and the exponent put in by its bits. Constants are cast explicitly, since one
# float64 literal would pull a float32 loop to half its width.
f32, f64, i32, i64 = np.float32, np.float64, np.int32, np.int64


@njit(inline=True)
def _exp_single(x):
    x = min(max(x, f32(-110.0)), f32(100.0))
    n = np.floor(x * f32(1.44269504088896341) + f32(0.5))
    r = x - n * f32(0.693359375)
    r = r + n * f32(2.12194440e-4)
    p = f32(1.9875691500e-4)
    p = p * r + f32(1.3981999507e-3)
    p = p * r + f32(8.3334519073e-3)
    p = p * r + f32(4.1665795894e-2)
    p = p * r + f32(1.6666665459e-1)
    p = p * r + f32(5.0000001201e-1)
    p = p * (r * r) + r + f32(1.0)
    # Two factors 2^half * 2^rest reach the subnormal results and infinity.
    k = i32(n)
    half = k >> i32(1)
    first = i32((half + i32(127)) << i32(23)).view(np.float32)
    second = i32((k - half + i32(127)) << i32(23)).view(np.float32)
    return p * first * second


@njit(inline=True)
def _exp_double(x):
    """The exponential, within about one unit in the last place."""
    x = min(max(x, -760.0), 720.0)
    n = np.floor(x * 1.4426950408889634 + 0.5)
    r = x - n * 6.93145751953125e-1
    r = r - n * 1.42860682030941723212e-6
    # exp(r) = 1 + 2 r P(r^2) / (Q(r^2) - r P(r^2))
    z = r * r
    p = (1.26177193074810590878e-4 * z + 3.02994407707441961300e-2) * z
    p = r * (p + 9.99999999999999999910e-1)
    q = (3.00198505138664455042e-6 * z + 2.52448340349684104192e-3) * z
    q = (q + 2.27265548208155028766e-1) * z + 2.0
    e = 1.0 + 2.0 * (p / (q - p))
    k = i64(n)
    half = k >> i64(1)
    first = i64((half + i64(1023)) << i64(52)).view(np.float64)
    second = i64((k - half + i64(1023)) << i64(52)).view(np.float64)
    return e * first * second


@njit(inline=True)
def _log_single(x):
    # x = m 2^k with sqrt(1/2) <= m < sqrt(2); x is positive and normal.
    bits = f32(x).view(np.int32) - i32(0x3F3504F3)
    k = bits >> i32(23)
    m = i32((bits & i32(0x7FFFFF)) + i32(0x3F3504F3)).view(np.float32)
    r = m - f32(1.0)
    z = r * r
    p = f32(7.0376836292e-2)
    p = p * r + f32(-1.1514610310e-1)
    p = p * r + f32(1.1676998740e-1)
    p = p * r + f32(-1.2420140846e-1)
    p = p * r + f32(1.4249322787e-1)
    p = p * r + f32(-1.6668057665e-1)
    p = p * r + f32(2.0000714765e-1)
    p = p * r + f32(-2.4999993993e-1)
    p = p * r + f32(3.3333331174e-1)
    n = f32(k)
    low = r * z * p + n * f32(-2.12194440e-4) - f32(0.5) * z
    return (r + low) + n * f32(0.693359375)


@njit(inline=True)
def _log_double(x):
    """The natural logarithm of a positive normal number."""
    bits = f64(x).view(np.int64) - i64(0x3FE6A09E667F3BCD)
    k = bits >> i64(52)
    m = i64((bits & i64(0xFFFFFFFFFFFFF)) + i64(0x3FE6A09E667F3BCD)).view(np.float64)
    r = m - 1.0
    s = r / (2.0 + r)
    z = s * s
    p = 1.479819860511658591e-01
    p = p * z + 1.531383769920937332e-01
    p = p * z + 1.818357216161805012e-01
    p = p * z + 2.222219843214978396e-01
    p = p * z + 2.857142874366239149e-01
    p = p * z + 3.999999999940941908e-01
    p = p * z + 6.666666666666735130e-01
    h = 0.5 * r * r
    n = f64(k)
    return n * 6.93147180369123816490e-01 - (
        (h - (s * (h + z * p) + n * 1.90821492927058770002e-10)) - r
    )


@njit(inline=True)
def _pick_single(condition, a, b):
    # A choice by bit mask: a conditional expression would let the compiler move the work into
    # its branches, and branches keep a loop from being vectorised.
    mask = -i32(condition)
    return i32((f32(a).view(np.int32) & mask) | (f32(b).view(np.int32) & ~mask)).view(np.float32)


@njit(inline=True)
def _pick_double(condition, a, b):
    mask = -i64(condition)
    return i64((f64(a).view(np.int64) & mask) | (f64(b).view(np.int64) & ~mask)).view(np.float64)


# V(t). Left of -1, z = exp t < 0.37 and W(z) = z P(z)/Q(z): no cancellation however small z is.
# Right of -1, a start within 3.1e-4 (one log, a rational function) and one step of fourth order,
# with r = t - w - log w, reach full precision. Far right, t - log t is exact to rounding.
_FAR_RIGHT = 1e9


@njit(inline=True)
def _v_single(t):
    z = _exp_single(min(t, f32(-1.0)))
    p = (f32(0.8994721176) * z + f32(2.3260912163)) * z + f32(0.9999999846)
    q = (f32(0.4001481981) * z + f32(2.7257446804)) * z + f32(3.3260869968)
    left = z * (p / (q * z + f32(1.0)))

    a = min(max(t, f32(-1.0)), f32(_FAR_RIGHT))
    top = (a + f32(4.16721747)) * a + f32(6.80431411)
    bottom = (a + f32(5.79788666)) * a + f32(15.25876536)
    start_log = _log_single(max(t, f32(-1.0)) + f32(2.34313607))
    w = a + (f32(14.44772534) - start_log * top) / bottom
    r = a - w - _log_single(w)
    one_w = f32(1.0) + w
    c = one_w * (one_w + f32(0.66666667) * r)
    right = w + w * (r / one_w) * ((c - f32(0.5) * r) / (c - r))

    value = _pick_single(t < f32(-1.0), left, right)
    value = _pick_single(t > f32(_FAR_RIGHT), t - start_log, value)
    return _pick_single((t != t) | (t > f32(3e38)), t, value)


@njit(inline=True)
def _v_double(t):
    """V(t) = W(exp t), the solution w of w + log w = t."""
    z = _exp_double(min(t, -1.0))
    p = 0.30034430533356467985 * z + 3.688744444943973603
    p = (p * z + 11.170129081740782578) * z + 12.763378249172600272
    p = (p * z + 6.0429570439837887113) * z + 0.99999999999999989885
    q = 0.095304485705850943068 * z + 2.247948577129797231
    q = (q * z + 11.380822482649018044) * z + 21.578695474179779106
    q = (q * z + 18.306335293176526894) * z + 7.0429570439836765801
    left = z * (p / (q * z + 1.0))

    a = min(max(t, -1.0), _FAR_RIGHT)
    top = (a + 4.16721747) * a + 6.80431411
    bottom = (a + 5.79788666) * a + 15.25876536
    start_log = _log_double(max(t, -1.0) + 2.34313607)
    w = a + (14.44772534 - start_log * top) / bottom
    r = a - w - _log_double(w)
    one_w = 1.0 + w
    c = one_w * (one_w + (2.0 / 3.0) * r)
    right = w + w * (r / one_w) * ((c - 0.5 * r) / (c - r))

    value = _pick_double(t < -1.0, left, right)
    value = _pick_double(t > _FAR_RIGHT, t - start_log, value)
    return _pick_double((t != t) | (t > 1.7e308), t, value)


exp = by_precision(_exp_single, _exp_double, "exp")
log = by_precision(_log_single, _log_double, "log")
V = by_precision(_v_single, _v_double, "V")


@njit(inline=True)
def log1p_positive(e, one):
    """log(1 + e) for e >= 0, also where 1 + e rounds to 1; ``one`` is 1 in the precision of e."""
    # A kernel of its own: in a sweep that may reorder its sums, the correction would be
    # simplified away.
    u = one + e
    return log(u) + (e - (u - one)) / u


@njit(inline=True)
def log1m(p, one, least):
    """log(1 - p) for 0 <= p <= 1, also where 1 - p rounds to 1; log of ``least`` if 1 - p is less.

    ``one`` is 1 in the precision of p.
    """
    u = max(one - p, least)
    return log(u) + ((one - u) - p) / u


@njit
def _v_array(t, out):
    for j in range(t.shape[0]):
        out[j] = V(t[j])


def lambertw_exp(t: ArrayLike) -> Any:
    """Solve  w + log w = t  for w > 0, elementwise: W(exp t), the Lambert W of an exponential.

    float32 in gives float32 out, anything else is computed in float64. The relative error is a
    few units in the last place, for subnormal results and t up to the largest float alike;
    -inf gives 0, inf gives inf and nan gives nan.

    >>> float(lambertw_exp(1.0))
    1.0
    """
    t = np.asarray(t)
    if t.dtype.kind not in "fiub":
        raise TypeError(f"t must be real numbers; got an array of dtype {t.dtype}")
    dtype = np.float32 if t.dtype == np.float32 else np.float64
    flat = kernel_array(t, dtype).reshape(-1)
    out = np.empty_like(flat)
    _v_array(flat, out)
    return out.reshape(t.shape)[()]
