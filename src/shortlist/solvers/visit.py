"""The kernels of SDCA: one visit to one example, in blocks and in sequence.

With scores s = W'x_i, cost C_i, kappa = |x_i|^2, eta = C_i kappa and the dual v_i, a visit solves

    v_i  <-  argmin_v  L*(y_i, v) - <s + eta v_i, v> + eta/2 |v|^2

and W changes by x_i delta', delta = C_i (old v_i - new v_i). The example's share of the duality
gap before the visit is C_i [L(s) + L*(v_i) - <s, v_i>]; it is summed over every ``every``-th
visit as a cheap estimate of the gap, which only decides when to compute the gap itself.
"""

import numpy as np

from shortlist._jit import njit
from shortlist.losses import kernels
from shortlist.solvers.duals import close_row, open_row


@njit
def visit_example(loss, s, y, cost, kappa, v, start, measure, delta, work):
    """Visit one example; writes delta, destroys s and returns the share of the gap."""
    share = 0.0
    if measure:
        share = kernels.value_gradient(loss, s, y, delta, work) + kernels.conjugate(loss, v, y)
        for j in range(s.shape[0]):
            share -= np.float64(s[j]) * np.float64(v[j])
        share = max(cost * share, 0.0)
    eta = s.dtype.type(cost * kappa)
    for j in range(s.shape[0]):
        s[j] += eta * v[j]
        delta[j] = v[j]
    kernels.dual_step(loss, s, y, cost * kappa, start, v, work)
    c = s.dtype.type(cost)
    for j in range(s.shape[0]):
        delta[j] = c * (delta[j] - v[j])
    return share


@njit
def _add_earlier(s, g, deltas, b, nonzeros, counts):
    """s += sum over the block's earlier examples c of g[c] * deltas[c]."""
    m = s.shape[0]
    c = 0
    while c < b:
        if counts[c] >= 0:  # few nonzeros, listed
            factor = g[c]
            for t in range(counts[c]):
                j = nonzeros[c, t]
                s[j] += factor * deltas[c, j]
            c += 1
        elif c + 3 < b and counts[c + 1] < 0 and counts[c + 2] < 0 and counts[c + 3] < 0:
            # Four at a time spare three passes over s.
            g0, g1, g2, g3 = g[c], g[c + 1], g[c + 2], g[c + 3]
            d0, d1, d2, d3 = deltas[c], deltas[c + 1], deltas[c + 2], deltas[c + 3]
            for j in range(m):
                s[j] += (g0 * d0[j] + g1 * d1[j]) + (g2 * d2[j] + g3 * d3[j])
            c += 4
        else:
            factor = g[c]
            d = deltas[c]
            for j in range(m):
                s[j] += factor * d[j]
            c += 1


@njit
def visit_block(
    loss, order, scores, gram, y, cost, kappa, duals, starts, every, deltas, nonzeros, counts, work
):
    """Visit the examples ``order`` in turn, given scores (B, m) at the block's start.

    ``gram`` (B, B) holds their inner products, through which each example sees the changes of
    those before it. Leaves the changes in ``deltas``; returns the sampled sum of gap shares.
    """
    few = nonzeros.shape[1]
    scratch = np.empty(scores.shape[1], scores.dtype)
    total = 0.0
    for b in range(order.shape[0]):
        i = order[b]
        s = scores[b]
        _add_earlier(s, gram[b], deltas, b, nonzeros, counts)
        v = open_row(duals, i, scratch)
        total += visit_example(
            loss, s, y[i], cost[i], kappa[i], v, starts[i], b % every == 0, deltas[b], work
        )
        close_row(duals, i, y[i], v)
        # List the nonzero changes while they are few: hinge losses touch a handful of classes.
        count = 0
        for j in range(s.shape[0]):
            if deltas[b, j] != 0:
                if count < few:
                    nonzeros[b, count] = j
                count += 1
        counts[b] = count if count <= few else -1
    return total


@njit
def visit_dense(loss, x, order, w, bias, y, cost, kappa, duals, starts, every):
    """An epoch over dense rows when W (d + 1, m) is small: all of it in one kernel.

    The last row of W is the intercept's, met with the constant feature ``bias``.
    """
    d = x.shape[1]
    m = w.shape[1]
    s = np.empty(m, w.dtype)
    delta = np.empty(m, w.dtype)
    scratch = np.empty(m, w.dtype)
    work = np.empty((2, m), w.dtype)
    constant = w.dtype.type(bias)
    total = 0.0
    for visit, i in enumerate(order):
        row = x[i]
        for j in range(m):
            s[j] = constant * w[d, j]
        c = 0
        while c + 3 < d:
            x0, x1, x2, x3 = row[c], row[c + 1], row[c + 2], row[c + 3]
            for j in range(m):
                s[j] += (x0 * w[c, j] + x1 * w[c + 1, j]) + (x2 * w[c + 2, j] + x3 * w[c + 3, j])
            c += 4
        while c < d:
            for j in range(m):
                s[j] += row[c] * w[c, j]
            c += 1
        v = open_row(duals, i, scratch)
        total += visit_example(
            loss, s, y[i], cost[i], kappa[i], v, starts[i], visit % every == 0, delta, work
        )
        close_row(duals, i, y[i], v)
        changed = False
        for j in range(m):
            changed |= delta[j] != 0
        if changed:
            for c in range(d):
                xc = row[c]
                for j in range(m):
                    w[c, j] += xc * delta[j]
            if bias != 0.0:
                for j in range(m):
                    w[d, j] += constant * delta[j]
    return total


@njit
def visit_sparse(
    loss, values, columns, pointers, order, w, bias, y, cost, kappa, duals, starts, every
):
    """An epoch over CSR rows; W as in :func:`visit_dense`."""
    d = w.shape[0] - 1
    m = w.shape[1]
    s = np.empty(m, w.dtype)
    delta = np.empty(m, w.dtype)
    scratch = np.empty(m, w.dtype)
    work = np.empty((2, m), w.dtype)
    constant = w.dtype.type(bias)
    total = 0.0
    for visit, i in enumerate(order):
        for j in range(m):
            s[j] = constant * w[d, j]
        for t in range(pointers[i], pointers[i + 1]):
            x = values[t]
            c = columns[t]
            for j in range(m):
                s[j] += x * w[c, j]
        v = open_row(duals, i, scratch)
        total += visit_example(
            loss, s, y[i], cost[i], kappa[i], v, starts[i], visit % every == 0, delta, work
        )
        close_row(duals, i, y[i], v)
        changed = False
        for j in range(m):
            changed |= delta[j] != 0
        if changed:
            for t in range(pointers[i], pointers[i + 1]):
                x = values[t]
                c = columns[t]
                for j in range(m):
                    w[c, j] += x * delta[j]
            if bias != 0.0:
                for j in range(m):
                    w[d, j] += constant * delta[j]
    return total


@njit
def evaluate_rows(loss, scores, y, cost, duals):
    """Sums over rows of C L(s), C L*(v) and C <s, v>."""
    m = scores.shape[1]
    work = np.empty((2, m), scores.dtype)
    gradient = np.empty(m, scores.dtype)
    scratch = np.empty(m, scores.dtype)
    losses = 0.0
    conjugates = 0.0
    products = 0.0
    for i in range(scores.shape[0]):
        if cost[i] == 0.0:
            continue
        losses += cost[i] * kernels.value_gradient(loss, scores[i], y[i], gradient, work)
        v = open_row(duals, i, scratch)
        conjugates += cost[i] * kernels.conjugate(loss, v, y[i])
        product = 0.0
        for j in range(m):
            product += np.float64(scores[i, j]) * np.float64(v[j])
        products += cost[i] * product
    return losses, conjugates, products


@njit
def gradient_rows(loss, scores, y, cost, out):
    """out = C times the gradient of L at each row's scores; returns the sum of C L."""
    work = np.empty((2, scores.shape[1]), scores.dtype)
    total = 0.0
    for i in range(scores.shape[0]):
        total += cost[i] * kernels.value_gradient(loss, scores[i], y[i], out[i], work)
        c = scores.dtype.type(cost[i])
        for j in range(scores.shape[1]):
            out[i, j] *= c
    return total
