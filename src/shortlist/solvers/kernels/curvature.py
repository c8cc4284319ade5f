"""Second derivatives of the loss in the scores, for models of the primal's Hessian."""

import numpy as np

from shortlist._jit import njit
from shortlist.losses import kernels
from shortlist.projections.selection import largest
from shortlist.solvers.kernels.rows import add_to_class, class_score


@njit
def pack_curvatures(loss, scores, y, cost, step, out):
    """C_i times the Hessian of L at each row of scores, its upper triangle as a row of ``out``.

    By finite differences of the gradient over ``step`` where the loss has no kernel for it.
    """
    m = scores.shape[1]
    hessian = np.empty((m, m), scores.dtype)
    work = np.empty((3, m), scores.dtype)
    for i in range(scores.shape[0]):
        kernels.curvature(loss, scores[i], y[i], step, hessian, work)
        c = scores.dtype.type(cost[i])
        pair = 0
        for a in range(m):
            for b in range(a, m):
                out[i, pair] = c * hessian[a, b]
                pair += 1


@njit
def add_sparse_curvature(loss, x, scores, y, cost, step, fewest, hessian):
    """hessian += sum_i C_i H_i (x) x_i x_i' for a loss whose gradients have few nonzero entries.

    H_i is zero but for the classes whose derivative is not. It is found by finite differences
    over ``step`` of the loss on these classes alone, at least ``fewest`` of them. Only blocks
    on and above the diagonal are filled. ``hessian`` has weights in the order of W'.
    """
    m, d = scores.shape[1], x.shape[1]
    v = np.empty(m)
    full_work = np.empty((2, m))
    classes = np.empty(m, np.int64)
    few = np.empty(m)
    for i in range(x.shape[0]):
        if cost[i] == 0.0:
            continue
        kernels.value_gradient(loss, scores[i], y[i], v, full_work)
        count, has_curvature = _list_nonzero(v, y[i], classes)
        if not has_curvature or count < 2 or count < fewest:
            continue
        place = 0
        f = few[:count]
        for a in range(count):
            f[a] = scores[i, classes[a]]
            if classes[a] == y[i]:
                place = a
        here = kernels.on_classes(loss, f, y[i], classes)
        block = np.empty((count, count))
        kernels.curvature(here, f, place, step, block, np.empty((3, count)))
        for a in range(count):
            for b in range(a, count):
                h = cost[i] * block[a, b]
                if h != 0.0:
                    _add_outer(x[i], h, hessian, classes[a] * d, classes[b] * d)


@njit
def _list_nonzero(v, y, classes):
    """List the label and the classes with a nonzero derivative.

    Returns how many, and whether there is curvature: not if all derivatives are 0, 1 or -1.
    """
    count = 0
    has_curvature = False
    for j in range(v.shape[0]):
        if v[j] != 0.0 or j == y:
            classes[count] = j
            count += 1
            has_curvature |= 0.0 < abs(v[j]) < 1.0
    return count, has_curvature


@njit
def _add_outer(x, h, hessian, row, column):
    d = x.shape[0]
    for i in range(d):
        scaled = h * x[i]
        target = hessian[row + i]
        for j in range(d):
            target[column + j] += scaled * x[j]


@njit
def pack_products(x, out):
    """The upper triangle of x_i x_i' as row i of ``out``."""
    d = x.shape[1]
    for i in range(x.shape[0]):
        pair = 0
        for a in range(d):
            xa = x[i, a]
            for b in range(a, d):
                out[i, pair] = xa * x[i, b]
                pair += 1


@njit
def list_curvatures(
    loss,
    scores,
    y,
    cost,
    kappa,
    least,
    fewest,
    most,
    step,
    done,
    used,
    counts,
    classes,
    blocks,
    rest,
):
    """List the classes whose second derivatives matter, and these, for a chunk of examples.

    Second derivatives are about as large as the derivatives v_j. Along x_i they add C_i |x_i|^2
    |v_j| to the Hessian, where the regulariser adds one: a class is listed if that is at least
    ``least``, and the label with it, unless the example has no such class at all. Of more classes
    than ``most`` the largest are listed. On fewer than ``fewest`` the loss may have no curvature.
    ``rest`` takes up, for each class, about what the examples that do not list it have:
    C_i |v_j| (1 - |v_j|).

    Example i has the next ``counts[i]`` entries of ``classes`` and the square of that many of
    ``blocks``, which hold C_i H_i. It begins with the example ``done`` and stops where they are
    full; ``used`` says how much of both is taken. Returns how many examples are done.
    """
    n, m = scores.shape
    v = np.empty(m, scores.dtype)
    work = np.empty((2, m), scores.dtype)
    few = np.empty(most)
    few_work = np.empty(3 * most)
    hessian = np.empty(most * most)
    for i in range(done, n):
        counts[i] = 0
        if used[0] + most > classes.shape[0] or used[1] + most * most > blocks.shape[0]:
            return i
        if cost[i] == 0.0 or kappa[i] == 0.0:
            continue
        kernels.value_gradient(loss, scores[i], y[i], v, work)
        _add_diagonal(v, cost[i], rest)
        room = classes[used[0] : used[0] + most]
        size = least / (cost[i] * kappa[i])
        count, place = _list_largest(v, y[i], size, room, work[0], work[1])
        if count == 1 and abs(v[y[i]]) < size:
            continue
        here = room[:count]
        # Arrays without gaps, so that kernels need not be compiled for others.
        block = hessian[: count * count].reshape((count, count))
        scratch = few_work[: 3 * count].reshape((3, count))
        given = kernels.curvature_among(
            loss, scores[i], y[i], v, here, place, fewest, step, block, few[:count], scratch
        )
        if not given:
            continue
        number = used[1]
        for a in range(count):
            share = abs(np.float64(v[here[a]]))
            rest[here[a]] -= cost[i] * share * (1.0 - share)
            for b in range(count):
                blocks[number] = cost[i] * block[a, b]
                number += 1
        used[0] += count
        used[1] = number
        counts[i] = count
    return n


@njit
def _add_diagonal(v, cost, total):
    """total_j += C |v_j| (1 - |v_j|)."""
    for j in range(v.shape[0]):
        share = abs(np.float64(v[j]))
        total[j] += cost * share * (1.0 - share)


@njit
def _list_largest(v, y, least, classes, sizes, values):
    """List the label and the classes with |v_j| >= least, or the largest if these are too many.

    Returns how many, and which of them is the label. ``sizes`` and ``values`` are scratch.
    """
    most = classes.shape[0]
    count = 0
    place = 0
    for j in range(v.shape[0]):
        sizes[j] = abs(v[j])
        if j == y or sizes[j] >= least:
            if count < most:
                classes[count] = j
            if j == y:
                place = count
            count += 1
    if count <= most:
        return count, place
    sizes[y] = -1
    largest(sizes, most - 1, values, classes)
    classes[most - 1] = y
    return most, most - 1


@njit
def multiply_by_curvatures(rows, begin, counts, classes, blocks, v, out):
    """out += sum_i C_i H_i (x) x_i x_i' v over the listed examples, the first of them ``begin``.

    ``v`` and ``out`` hold the weights by classes, shape (m, d + 1).
    """
    t = np.empty(v.shape[0], v.dtype)
    entry = 0
    number = 0
    for i in range(counts.shape[0]):
        count = counts[i]
        for a in range(count):
            t[a] = class_score(rows, begin + i, v, classes[entry + a])
        for a in range(count):
            change = v.dtype.type(0)
            for b in range(count):
                change += blocks[number + b] * t[b]
            number += count
            add_to_class(rows, begin + i, change, out, classes[entry + a])
        entry += count


@njit
def number_of_pair(a, b, m):
    """The number of the pair a <= b among those of m, row by row."""
    return a * m - a * (a - 1) // 2 + b - a


@njit
def unpack_hessian(packed, m, d, hessian):
    """I + the packed sums, weights in the order of W'; the upper triangle at least."""
    for a in range(m):
        for b in range(a, m):
            row = packed[number_of_pair(a, b, m)]
            number = 0
            for i in range(d):
                for j in range(i, d):
                    hessian[a * d + i, b * d + j] = row[number]
                    hessian[a * d + j, b * d + i] = row[number]
                    number += 1
    for j in range(m * d):
        hessian[j, j] += 1.0
