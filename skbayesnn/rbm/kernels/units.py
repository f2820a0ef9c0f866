"""Units of a restricted Boltzmann machine: means, draws, free energies, annealing.

These passes come between the matrix products (`products`, or BLAS). All take
``x`` (n_rows, n_units), float32 and C-contiguous, the inputs of the units without
their biases; ``states`` (n_rows, n_units) are uint8, 0 or 1. Sums over units are
float64, but for the increments of an annealing step, which are small.
"""

import math

import numpy as np

from ..._numba import STRICT, TILE, full_width, kernel, transpose_tile
from .uniforms import row_key, uniform

_HALF = np.uint64(32)
# The unit whose random number decides on a proposal.
_NO_UNIT = np.int64(0xFFFFFFFF)
_ONE = np.float32(1.0)
_ON, _OFF = np.uint8(1), np.uint8(0)
# Units summed in float32 before they enter a float64 sum: vectors stay full.
_BLOCK = 64
_LOG2E = np.float32(1.44269504)
# log(2) in two parts: the first has few enough bits for an exact product
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)


# The functions of one value are strict because some kernels that call them are: a
# function keeps its own policy where it is inlined.
@kernel(fastmath=STRICT, helper=True)
def _exp(x):
    """exp(x) in float32, to a relative 3e-7, for x clipped to [-87, 88]."""
    # comparisons, not min and max: a NaN must stay one
    x = np.float32(-87.0) if x < np.float32(-87.0) else x
    x = np.float32(88.0) if x > np.float32(88.0) else x
    k = np.floor(x * _LOG2E + np.float32(0.5))
    r = x - k * _LN2_HIGH
    r = r - k * _LN2_LOW
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    e = (p * r + _ONE) * r + _ONE
    power = np.int32((np.int32(k) + np.int32(127)) << np.int32(23))
    return e * power.view(np.float32)


@kernel(fastmath=STRICT, helper=True)
def _logistic(x):
    return _ONE / (_ONE + _exp(-x))


@kernel(fastmath=STRICT, helper=True)
def _softplus(x, decay):
    """log(1 + exp(x)) from ``decay`` = exp(-|x|), to 1e-7 absolute, 3e-7 relative."""
    # log1p(decay) as 2 atanh(s)
    s = decay / (np.float32(2.0) + decay)
    t = s * s
    p = np.float32(2.0 / 15.0)
    p = p * t + np.float32(2.0 / 13.0)
    p = p * t + np.float32(2.0 / 11.0)
    p = p * t + np.float32(2.0 / 9.0)
    p = p * t + np.float32(2.0 / 7.0)
    p = p * t + np.float32(2.0 / 5.0)
    p = p * t + np.float32(2.0 / 3.0)
    p = p * t + np.float32(2.0)
    positive = x if x > np.float32(0.0) else np.float32(0.0)
    # a NaN fails every comparison: it comes through s
    return positive + s * p


@kernel(fastmath=STRICT, helper=True)
def _decay(x):
    """exp(-|x|)."""
    return _exp(-abs(x))


# strict: else the compiler may choose other operations for whole vectors than for what
# is left of a row, and results depend on where the columns are split
@kernel(fastmath=STRICT)
def mean_units(x, bias, first, last):
    """Columns ``first`` to ``last`` of ``x`` become the units' means."""
    full_width()
    b = bias[first:last]
    for i in range(x.shape[0]):
        row = x[i][first:last]
        for j in range(row.size):
            row[j] = _logistic(row[j] + b[j])


@kernel(fastmath=STRICT)
def sample_units(x, bias, seed, step, first_row, states, first, last):
    """Columns ``first`` to ``last`` of ``states`` become a draw from the units."""
    full_width()
    b = bias[first:last]
    for i in range(x.shape[0]):
        key = row_key(seed, step, first_row + i)
        low, high = np.uint32(key), np.uint32(key >> _HALF)
        row, out = x[i][first:last], states[i][first:last]
        for j in range(row.size):
            # u < 1 / (1 + e), without the division
            u = uniform(low, high, first + j)
            e = _exp(-(row[j] + b[j]))
            out[j] = _ON if u * (_ONE + e) < _ONE else _OFF


@kernel(fastmath=STRICT)
def mean_and_sample_units(x, bias, seed, step, first_row, states, first, last):
    """The same, and these columns of ``x`` become the units' means."""
    full_width()
    b = bias[first:last]
    for i in range(x.shape[0]):
        key = row_key(seed, step, first_row + i)
        low, high = np.uint32(key), np.uint32(key >> _HALF)
        row, out = x[i][first:last], states[i][first:last]
        for j in range(row.size):
            u = uniform(low, high, first + j)
            one_and_e = _ONE + _exp(-(row[j] + b[j]))
            out[j] = _ON if u * one_and_e < _ONE else _OFF
            row[j] = _ONE / one_and_e


@kernel
def softplus_sum(x, bias, unit_weights, total):
    """``total[i]`` becomes the sum of c_j softplus(x_ij + b_j)."""
    full_width()
    n_units = x.shape[1]
    for i in range(x.shape[0]):
        sum_ = 0.0
        for start in range(0, n_units, _BLOCK):
            part = np.float32(0.0)
            for j in range(start, min(start + _BLOCK, n_units)):
                value = x[i, j] + bias[j]
                part += unit_weights[j] * _softplus(value, _decay(value))
            sum_ += np.float64(part)
        total[i] = sum_


@kernel
def log_sum_exp(x, normalisers, total):
    """``total[i]`` becomes the logarithm of the sum of exp(x_ij - normaliser_j).

    ``normalisers`` and ``total`` are float64, ``x`` has a column at least.
    """
    full_width()
    for i in range(x.shape[0]):
        row = x[i]
        largest = np.float64(row[0]) - normalisers[0]
        for j in range(1, row.size):
            largest = max(largest, np.float64(row[j]) - normalisers[j])
        sum_ = 0.0
        for j in range(row.size):
            excess = np.float64(row[j]) - normalisers[j] - largest
            sum_ += np.float64(_exp(np.float32(excess)))
        total[i] = largest + math.log(sum_)


@kernel
def flip(units, thresholds, model, y, log_p, h):
    """Metropolis steps that flip single hidden units, with the visible ones summed out.

    ``units`` (n_rows, n_flips) int64 are proposed; a flip is taken if log p(h) grows by
    more than its threshold (n_rows, n_flips), float64. ``model`` holds the weights and
    the biases of hidden and visible units. ``y`` (n_rows, n_features), the products of
    ``h`` and the weights, and ``log_p`` (n_rows,), the sum over features of
    softplus(y + bias), follow the states; ``y`` is float32.
    """
    full_width()
    weights, hidden, visible = model
    for i in range(units.shape[0]):
        row = y[i]
        for k in range(units.shape[1]):
            unit = units[i, k]
            sign = -_ONE if h[i, unit] else _ONE
            w, new = weights[unit], 0.0
            for start in range(0, row.size, _BLOCK):
                part = np.float32(0.0)
                for j in range(start, min(start + _BLOCK, row.size)):
                    value = row[j] + sign * w[j] + visible[j]
                    part += _softplus(value, _decay(value))
                new += np.float64(part)
            gain = new - log_p[i] + np.float64(sign * hidden[unit])
            if gain > thresholds[i, k]:
                h[i, unit] ^= _ON
                log_p[i] = new
                for j in range(row.size):
                    row[j] += sign * w[j]


@kernel(helper=True)
def anneal_hidden(
    x, bias, beta_before, beta, seed, step, first_row, log_weight, states
):
    """Hidden half of an annealed transition: ``states`` becomes a draw at ``beta``.

    Adds to ``log_weight`` the sum of softplus(beta x) - softplus(beta_before x).
    """
    full_width()
    before, now = np.float32(beta_before), np.float32(beta)
    for i in range(x.shape[0]):
        key = row_key(seed, step, first_row + i)
        low, high = np.uint32(key), np.uint32(key >> _HALF)
        row, out, sum_ = x[i], states[i], np.float32(0.0)
        for j in range(x.shape[1]):
            value = row[j] + bias[j]
            old, new = before * value, now * value
            decay = _decay(new)
            sum_ += _softplus(new, decay) - _softplus(old, _decay(old))
            # u < 1 / (1 + exp(-new)), from exp(-|new|)
            limit = decay if new < np.float32(0.0) else _ONE
            on = uniform(low, high, j) * (_ONE + decay) < limit
            out[j] = _ON if on else _OFF
        log_weight[i] += np.float64(sum_)


@kernel(helper=True)
def anneal_visible(x, base, bias, beta, seed, step, first_row, slope, states):
    """Visible half of an annealed transition: ``states`` becomes a draw.

    The units' biases are (1 - beta) base + beta bias. ``slope`` becomes
    (bias - base) . v, by which the log weight grows with beta.
    """
    full_width()
    now, rest = np.float32(beta), np.float32(1.0 - beta)
    for i in range(x.shape[0]):
        key = row_key(seed, step, first_row + i)
        low, high = np.uint32(key), np.uint32(key >> _HALF)
        row, out, sum_ = x[i], states[i], np.float32(0.0)
        for j in range(x.shape[1]):
            e = _exp(-(rest * base[j] + now * (bias[j] + row[j])))
            out[j] = _ON if uniform(low, high, j) * (_ONE + e) < _ONE else _OFF
        # a separate loop: together with the draws, neither would be vectorised
        for j in range(x.shape[1]):
            sum_ += np.float32(out[j]) * (bias[j] - base[j])
        slope[i] = np.float64(sum_)


@kernel
def swap_gains(x, bias, betas, first, total):
    """What neighbours gain in log probability by their hidden units if they swap.

    ``x`` (n_replicas, n_chains, n_units) at the inverse temperatures ``betas``, float32
    too. ``total[k, i]`` becomes, with the biases in x, the sum over units of

        softplus(high x_ki) - softplus(low x_ki)
        - softplus(high x_li) + softplus(low x_li),   l = k + 1,

    for every second replica k from ``first`` on.
    """
    full_width()
    for k in range(first, x.shape[0] - 1, 2):
        low, high = betas[k], betas[k + 1]
        for i in range(x.shape[1]):
            total[k, i] = _rise(x[k, i], bias, low, high)
            total[k, i] -= _rise(x[k + 1, i], bias, low, high)


@kernel(helper=True)
def _rise(row, bias, low, high):
    """Sum of softplus(high x) - softplus(low x), for 0 <= low <= high."""
    sum_ = 0.0
    for start in range(0, row.size, _BLOCK):
        a, b = row[start : start + _BLOCK], bias[start : start + _BLOCK]
        positive, of_low, of_high = np.float32(0.0), _ONE, _ONE
        # factors of at most 2: a block of them has no overflow, and one logarithm
        for j in range(a.size):
            value = a[j] + b[j]
            positive += max(value, np.float32(0.0))
            of_low *= _ONE + _decay(low * value)
            of_high *= _ONE + _decay(high * value)
        sum_ += np.float64((high - low) * positive)
        sum_ += math.log(np.float64(of_high) / np.float64(of_low))
    return sum_


@kernel
def sample_tempered_units(x, order, bias, betas, seed, step, states):
    """``states`` becomes a draw from units at several inverse temperatures.

    ``states`` (n_replicas, n_chains, n_units); ``order`` (n_replicas, n_chains) tells
    the row of ``x`` with the inputs of a chain; ``betas`` (n_replicas,) are float32.
    """
    full_width()
    n_replicas, n_chains, n_units = states.shape
    for k in range(n_replicas):
        beta = betas[k]
        for i in range(n_chains):
            key = row_key(seed, step, k * n_chains + i)
            low, high = np.uint32(key), np.uint32(key >> _HALF)
            row, out = x[order[k, i]], states[k, i]
            for j in range(n_units):
                e = _exp(-beta * (row[j] + bias[j]))
                out[j] = _ON if uniform(low, high, j) * (_ONE + e) < _ONE else _OFF


@kernel
def fractional_hidden(x, bias, unit_weights, beta, seed, step, first_row, excess):
    """Draw the hidden units of the standard RBM that a fractional one proposes by.

    A unit of weight c is floor(c) units with its input and one with the input times
    the remainder r. ``x`` becomes what they send down together, in [0, c]. ``excess``
    becomes the sum of r softplus(beta x) - softplus(r beta x): by how much the log
    probability of the visible state exceeds that of the proposal.
    """
    now = np.float32(beta)
    n_units = x.shape[1]
    for i in range(x.shape[0]):
        key = row_key(seed, step, first_row + i)
        low, high = np.uint32(key), np.uint32(key >> _HALF)
        sum_ = 0.0
        for j in range(n_units):
            value = now * (x[i, j] + bias[j])
            copies = int(math.floor(unit_weights[j]))
            r = np.float32(unit_weights[j] - np.float32(copies))
            p = _logistic(value)
            sent = np.float32(0.0)
            for copy in range(copies):
                if uniform(low, high, j + n_units * (copy + 1)) < p:
                    sent += _ONE
            if uniform(low, high, j) < _logistic(r * value):
                sent += r
            sum_ += np.float64(r * _softplus(value, _decay(value)))
            sum_ -= np.float64(_softplus(r * value, _decay(r * value)))
            x[i, j] = sent
        excess[i] = sum_


@kernel
def fractional_softplus(x, bias, unit_weights, beta, total, excess):
    """``total``: sum of c softplus(beta x); ``excess`` as in `fractional_hidden`."""
    now = np.float32(beta)
    for i in range(x.shape[0]):
        all_, sum_ = 0.0, 0.0
        for j in range(x.shape[1]):
            value = now * (x[i, j] + bias[j])
            copies = np.float32(math.floor(unit_weights[j]))
            r = np.float32(unit_weights[j] - copies)
            softplus = _softplus(value, _decay(value))
            all_ += np.float64(unit_weights[j] * softplus)
            sum_ += np.float64(r * softplus)
            sum_ -= np.float64(_softplus(r * value, _decay(r * value)))
        total[i], excess[i] = all_, sum_


@kernel
def metropolis(log_ratio, seed, step, first_row, accepted):
    """``accepted`` (n_rows,) bool tells which proposals are taken.

    ``log_ratio`` holds the logarithms of the acceptance ratios.
    """
    for i in range(accepted.shape[0]):
        key = row_key(seed, step, first_row + i)
        u = uniform(np.uint32(key), np.uint32(key >> _HALF), _NO_UNIT)
        accepted[i] = log_ratio[i] >= 0.0 or np.float64(u) < math.exp(log_ratio[i])


@kernel(fastmath=STRICT)
def difference_of_means(means, n_rows, data, difference, first, last):
    """Weigh rows by 1 / n_rows, those after the first ``n_rows`` by -1 / their number.

    ``data`` (n_units,) becomes the sum of the first ones, ``difference`` that of all;
    in columns ``first`` to ``last``.
    """
    full_width()
    data, difference = data[first:last], difference[first:last]
    data[:] = np.float32(0.0)
    difference[:] = np.float32(0.0)
    n_others = max(1, means.shape[0] - n_rows)
    for i in range(means.shape[0]):
        is_data = i < n_rows
        weight = np.float32(1.0 / n_rows if is_data else -1.0 / n_others)
        row, sums = means[i][first:last], data if is_data else difference
        for j in range(row.size):
            row[j] *= weight
            sums[j] += row[j]
    for j in range(data.size):
        difference[j] += data[j]


@kernel(fastmath=STRICT)
def update_weights(values, velocity, gradient, weights, centering, rates):
    """Momentum step of some hidden units in one pass over memory.

    ``weights`` (n_units, n_features) becomes the new ``values``, transposed: of
    ``values``, ``velocity`` and ``gradient`` the first columns are those of the units.

    ``centering`` holds (visible offsets mu, hidden means, visible means, hidden offsets
    lambda): the gradient of centred states is that of the states less the outer
    products of the first two and of the last two. ``rates`` holds (rate, momentum,
    shrink): ``velocity`` becomes momentum velocity + rate (gradient - shrink values),
    and is added to ``values``. Without momentum it is left alone, which saves memory
    traffic.
    """
    full_width()
    mu, mean_h, mean_v, offset = centering
    rate, momentum, shrink = rates
    for i in range(weights.shape[1]):
        row, slope = values[i][: mean_h.size], gradient[i]
        m, v = mu[i], mean_v[i]
        if momentum == np.float32(0.0):
            for j in range(row.size):
                centred = slope[j] - m * mean_h[j] - v * offset[j]
                row[j] += rate * (centred - shrink * row[j])
        else:
            speed = velocity[i]
            for j in range(row.size):
                centred = slope[j] - m * mean_h[j] - v * offset[j]
                change = rate * (centred - shrink * row[j]) + momentum * speed[j]
                speed[j] = change
                row[j] += change
    _transpose(values, weights)


@kernel(inline="always")
def _transpose(values, weights):
    n_units, n_features = weights.shape
    right, below = n_units - n_units % TILE, n_features - n_features % TILE
    for j in range(0, right, TILE):
        for i in range(0, below, TILE):
            transpose_tile(values, i, j, weights)
        for i in range(below, n_features):
            for k in range(j, j + TILE):
                weights[k, i] = values[i, k]
    for j in range(right, n_units):
        for i in range(n_features):
            weights[j, i] = values[i, j]


@kernel
def blend(mean, values, fraction):
    """``mean`` moves towards ``values`` by a fraction, both 2-D float32."""
    full_width()
    for i in range(mean.shape[0]):
        row, new = mean[i], values[i]
        for j in range(row.shape[0]):
            row[j] += fraction * (new[j] - row[j])
