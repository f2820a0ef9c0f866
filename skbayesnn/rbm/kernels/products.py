"""Matrix products with binary states, large ones computed by additions alone.

Each large product uses the cheaper of two ways:

- if few units are on, their rows are added, four at a time;
- otherwise four adjacent units are a number from 0 to 15, and the sums of each subset
  of their four rows are looked up in a table (the method of four Russians), which takes
  a quarter of the additions of a dense product.

The way follows from the shape and from the fraction of units that are on. Columns are
processed in blocks, so that the tables stay in the caches. No sum depends on the number
of threads. States are uint8, 0 or 1; all arrays are C-contiguous.

Small products are plain ones, by `multiply_small`: to make states ready for additions
would take longer than to multiply by them.
"""

import threading
from functools import partial

import numpy as np

from ..._numba import STRICT, add_entries, full_width, kernel, prefetch

# Columns of a block in which rows are added: many, since each row is looked up anew.
_ADDED_WIDTH = 512
# Columns of a block with tables, and rows whose sums are kept in the cache with them.
PANEL = 64
_HEIGHT = 1024
_SUBSETS = 16 * PANEL
_ZERO = np.float32(0.0)
# What tables cost, in additions of rows of values (measured, with AVX-512): for each
# row of states this fraction of the units and of some more, for each unit these rows.
_DENSE_FRACTION = 0.08
_ROW_UNITS = 40
_UNIT_ROWS = 3
# Multiplications up to which a plain product is faster (measured).
SMALL = 150_000

_of_thread = threading.local()


class Multiplier:
    """States, made ready to be multiplied from the left: ``states @ values``.

    ``add(values, out, first, last, left)`` computes columns ``first`` to ``last`` of
    the product, of which ``out`` holds those from ``left`` on: which columns a call
    does changes none of their sums. ``values`` (n_panels, n_units, width) float32 are
    panels of columns, ``n_additions`` is the number of additions for each column.
    """

    def __init__(self, states):
        n_rows, n_units = states.shape
        n_on = np.count_nonzero(states.view(np.bool_))
        if _is_dense(n_on, n_rows, n_units):
            self._look_up(_encode_rows(states))
            return
        # one more: the entry after the last may be written
        index = np.empty(n_on + 1, dtype=np.uint32)
        start = np.zeros(n_rows + 1, dtype=np.int64)
        _index_rows(states, index, start)
        self._add(index, start)

    def _look_up(self, codes):
        self.n_additions = 2 * codes.size
        self.add = partial(_look_up_sums, codes)

    def _add(self, index, start):
        self.n_additions = len(index)
        self.add = partial(_add_rows, index, start)


class TransposedMultiplier(Multiplier):
    """The same of ``states.T @ values``, with panels (n_panels, n_rows, width)."""

    def __init__(self, states):
        n_rows, n_units = states.shape
        n_on = np.count_nonzero(states.view(np.bool_))
        if _is_dense(n_on, n_units, n_rows):
            codes = np.zeros((_n_bytes(n_rows), n_units), dtype=np.uint8)
            _encode_columns(states, codes)
            self._look_up(codes)
            return
        index = np.empty(n_on, dtype=np.uint32)
        start = np.zeros(n_units + 1, dtype=np.int64)
        place, on = np.zeros(n_units, np.int64), np.empty(n_units + 1, np.uint32)
        _index_columns(states, index, start, place, on)
        self._add(index, start)


def _is_dense(n_on, n_rows, n_units):
    of_rows = _DENSE_FRACTION * n_rows * (n_units + _ROW_UNITS)
    return n_on > of_rows + _UNIT_ROWS * n_units


def _n_bytes(n_units):
    """Bytes with the codes of two groups of four units, of which two make a step."""
    return 2 * ((n_units + 15) // 16)


def _encode_rows(states):
    """Codes of groups of four units, (n_bytes, n_rows)."""
    packed = np.packbits(states, axis=1, bitorder="little").T
    codes = np.zeros((_n_bytes(states.shape[1]), len(states)), dtype=np.uint8)
    codes[: len(packed)] = packed
    return codes


def _look_up_sums(codes, values, out, first, last, left):
    memory = _scratch(min(codes.shape[1], _HEIGHT))
    _add_tables(codes, values, out, first, last, left, *memory)


def _scratch(height):
    """Memory of this thread for `_add_tables`, kept for its next call."""
    memory = getattr(_of_thread, "memory", None)
    if memory is None or len(memory[2]) < height * PANEL:
        memory = _aligned(4 * PANEL), _aligned(4 * _SUBSETS), _aligned(height * PANEL)
        _of_thread.memory = memory
    return memory


def _aligned(size):
    """Memory from the start of a cache line: loads of whole lines are twice as fast."""
    raw = np.zeros(size + 16, dtype=np.float32)
    shift = -raw.ctypes.data % 64 // 4
    return raw[shift : shift + size]


@kernel
def count_on(states, counts):
    """``counts`` (n_units,) float32 becomes how often each unit is on, up to 2**24."""
    full_width()
    counts[:] = _ZERO
    for i in range(states.shape[0]):
        row = states[i]
        for j in range(row.shape[0]):
            counts[j] += np.float32(row[j])


@kernel
def weigh_rows(states, weights, sums):
    """``sums`` (n_rows,) becomes ``states @ weights``, float32."""
    full_width()
    for i in range(states.shape[0]):
        row, sum_ = states[i], _ZERO
        for j in range(row.shape[0]):
            sum_ += np.float32(row[j]) * weights[j]
        sums[i] = sum_


@kernel
def weigh_columns(states, weights, sums):
    """``sums`` (n_units,) becomes ``weights @ states``, float32."""
    full_width()
    sums[:] = _ZERO
    for i in range(states.shape[0]):
        row, weight = states[i], weights[i]
        for j in range(row.shape[0]):
            sums[j] += np.float32(row[j]) * weight


@kernel
def _encode_columns(states, codes):
    full_width()
    for g in range(states.shape[0] // 8):
        i, code = 8 * g, codes[g]
        a, b, c, d = states[i], states[i + 1], states[i + 2], states[i + 3]
        e, f, p, q = states[i + 4], states[i + 5], states[i + 6], states[i + 7]
        for j in range(code.shape[0]):
            low = a[j] + 2 * b[j] + 4 * c[j] + 8 * d[j]
            high = e[j] + 2 * f[j] + 4 * p[j] + 8 * q[j]
            code[j] = np.uint8(low + 16 * high)
    for i in range(states.shape[0] // 8 * 8, states.shape[0]):
        row, code, place = states[i], codes[i // 8], np.uint8(1 << (i % 8))
        for j in range(row.shape[0]):
            code[j] += place * row[j]


@kernel(helper=True)
def _append_on(row, index, place):
    """Write the units that are on from ``place``; the place behind them."""
    for j in range(row.shape[0]):
        # without a branch: entries of units that are off are overwritten
        index[place] = j
        place += row[j]
    return place


@kernel
def _index_rows(states, index, start):
    """The units of each row that are on, and where in ``index`` they start."""
    for i in range(states.shape[0]):
        start[i + 1] = _append_on(states[i], index, start[i])


@kernel
def _index_columns(states, index, start, place, on):
    """The rows of each unit that are on, and where in ``index`` they start.

    ``place`` is zero, ``on`` memory for the units of a row and one more.
    """
    for i in range(states.shape[0]):
        row = states[i]
        for j in range(row.shape[0]):
            place[j] += row[j]
    for j in range(place.shape[0]):
        start[j + 1] = start[j] + place[j]
        place[j] = start[j]
    for i in range(states.shape[0]):
        for k in range(_append_on(states[i], on, start[0])):
            j = np.intp(on[k])
            index[place[j]] = i
            place[j] += 1


# strict: else sums may depend on where in its panel a column stands
@kernel(fastmath=STRICT, helper=True)
def multiply_small(states, values, out):
    """``out`` becomes ``states @ values``, of panels as for a `Multiplier`.

    Units that are off are multiplied by 0: a value that is not finite makes NaN.
    """
    full_width()
    n_units, width = states.shape[1], values.shape[2]
    whole = n_units // 4 * 4
    for p in range(values.shape[0]):
        panel, first = values[p], p * width
        for i in range(states.shape[0]):
            row, total = states[i], out[i][first : first + width]
            n = total.size
            total[:] = _ZERO
            for j in range(0, whole, 4):
                w, x = np.float32(row[j]), np.float32(row[j + 1])
                y, z = np.float32(row[j + 2]), np.float32(row[j + 3])
                a, b = panel[j][:n], panel[j + 1][:n]
                c, d = panel[j + 2][:n], panel[j + 3][:n]
                for k in range(n):
                    total[k] += (w * a[k] + x * b[k]) + (y * c[k] + z * d[k])
            for j in range(whole, n_units):
                w, a = np.float32(row[j]), panel[j][:n]
                for k in range(n):
                    total[k] += w * a[k]


# strict: else the compiler may choose one order for whole vectors and another for what
# is left of a row (it does on processors with vectors of 128 bits), and sums depend on
# where the columns are split
@kernel(fastmath=STRICT)
def _add_rows(index, start, values, out, begin, end, left):
    """Sums of the rows ``index[start[i] : start[i + 1]]`` of ``values``."""
    full_width()
    width = values.shape[2]
    first = begin
    # bound: the number of columns
    while first < end:
        p = first // width
        last = min(first + _ADDED_WIDTH, end, (p + 1) * width)
        panel, a_first, a_last = values[p], first - p * width, last - p * width
        for i in range(out.shape[0]):
            total = out[i][first - left : last - left]
            total[:] = _ZERO
            behind = start[i + 1]
            whole = start[i] + (behind - start[i]) // 4 * 4
            for place in range(start[i], whole, 4):
                a = panel[np.intp(index[place])][a_first:a_last]
                b = panel[np.intp(index[place + 1])][a_first:a_last]
                c = panel[np.intp(index[place + 2])][a_first:a_last]
                d = panel[np.intp(index[place + 3])][a_first:a_last]
                for k in range(total.size):
                    total[k] = total[k] + a[k] + b[k] + c[k] + d[k]
            for place in range(whole, behind):
                a = panel[np.intp(index[place])][a_first:a_last]
                for k in range(total.size):
                    total[k] += a[k]
        first = last


@kernel
def _add_tables(codes, values, out, begin, end, left, four, tables, totals):
    """Sums over groups g of four rows of ``values``.

    Bit b of ``codes[g // 2, i]``, or b + 4 for odd g, tells whether row 4 g + b is in
    sum i. The last three are memory: for four rows, the sums of their subsets, totals.
    """
    full_width()
    n_bytes, n_rows = codes.shape
    width = values.shape[2]
    for above in range(0, n_rows, _HEIGHT):
        below = min(above + _HEIGHT, n_rows)
        first = begin
        # bound: the number of columns
        while first < end:
            p = first // width
            last = min(first + PANEL, end, (p + 1) * width)
            panel, a_first, a_last = values[p], first - p * width, last - p * width
            totals[: (below - above) * PANEL] = _ZERO
            for g in range(0, n_bytes, 2):
                for q in range(4):
                    _copy_four(panel, 8 * g + 4 * q, a_first, a_last, four)
                    _fill(four, tables[q * _SUBSETS : (q + 1) * _SUBSETS])
                # what the next step needs comes while this one looks up
                for row in range(8 * g + 16, 8 * g + 32):
                    for column in range(a_first, a_last, 16):
                        prefetch(panel, row, column)
                low, high = codes[g][above:below], codes[g + 1][above:below]
                _look_up(tables, low, high, totals)
            for i in range(above, below):
                row, at = out[i][first - left : last - left], (i - above) * PANEL
                total = totals[at : at + row.size]
                for k in range(row.size):
                    row[k] = total[k]
            first = last


@kernel(inline="always")
def _copy_four(panel, first_row, first, last, four):
    """Four rows of a block of columns, zeros where there are none."""
    for b in range(4):
        part = four[b * PANEL : (b + 1) * PANEL]
        if first_row + b < panel.shape[0]:
            # slices of a row: with an index of two parts, loops are not vectorised
            row = panel[first_row + b][first:last]
            for k in range(row.size):
                part[k] = row[k]
        else:
            for k in range(PANEL):
                part[k] = _ZERO


@kernel(inline="always")
def _fill(four, table):
    """The sums of all subsets of four rows, each in the same order."""
    for k in range(PANEL):
        a, b = four[k], four[PANEL + k]
        c, d = four[2 * PANEL + k], four[3 * PANEL + k]
        ab, cd = a + b, c + d
        table[k] = _ZERO
        table[PANEL + k] = a
        table[2 * PANEL + k] = b
        table[3 * PANEL + k] = ab
        table[4 * PANEL + k] = c
        table[5 * PANEL + k] = a + c
        table[6 * PANEL + k] = b + c
        table[7 * PANEL + k] = ab + c
        table[8 * PANEL + k] = d
        table[9 * PANEL + k] = a + d
        table[10 * PANEL + k] = b + d
        table[11 * PANEL + k] = ab + d
        table[12 * PANEL + k] = cd
        table[13 * PANEL + k] = a + cd
        table[14 * PANEL + k] = b + cd
        table[15 * PANEL + k] = ab + cd


@kernel(inline="always")
def _look_up(tables, low, high, totals):
    """Add to each row its entry in each of four tables."""
    for i in range(low.size):
        x, y = np.intp(low[i]), np.intp(high[i])
        add_entries(
            totals,
            i * PANEL,
            tables,
            (x & 15) * PANEL,
            (x >> 4) * PANEL + _SUBSETS,
            (y & 15) * PANEL + 2 * _SUBSETS,
            (y >> 4) * PANEL + 3 * _SUBSETS,
        )
