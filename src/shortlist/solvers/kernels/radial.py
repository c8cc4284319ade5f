"""The radial kernel of many pairs of rows."""

from shortlist._jit import njit
from shortlist.special import exp


@njit
def radial_from_products(products, x_squares, z_squares, gamma):
    """Turn inner products <x, z> into exp(-gamma |x - z|^2), given |x|^2 and |z|^2.

    Rounding can make a distance of nearly equal rows negative: it counts as zero.
    """
    zero = products.dtype.type(0)
    two = products.dtype.type(2)
    factor = products.dtype.type(-gamma)
    for i in range(products.shape[0]):
        row = products[i]
        x = x_squares[i]
        for j in range(row.shape[0]):
            row[j] = exp(factor * max((x + z_squares[j]) - two * row[j], zero))
