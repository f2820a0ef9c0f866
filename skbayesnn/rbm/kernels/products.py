"""Matrix products with binary states, computed by additions alone.

Each product uses the cheaper of two ways:

- if few units are on, their rows are added, four at a time;
- otherwise four adjacent units are a number from 0 to 15, and the sums of each subset
  of their four rows are looked up in a table (the method of four Russians), which takes
  a quarter of the additions of a dense product.

Columns are processed in blocks, so that the tables stay in the caches. No sum depends
on the number of threads. States are uint8, 0 or 1; all arrays are C-contiguous.
"""

import numpy as np

from ..._numba import STRICT, kernel

# Columns of a block in which rows are added: many, since each row is looked up anew.
_ADDED_WIDTH = 512
# Columns of a block with tables, and rows whose sums are kept in the cache with them.
_WIDTH = 128
_HEIGHT = 256
_SUBSETS = 16 * _WIDTH
_ZERO = np.float32(0.0)
# Fraction of units that are on at which tables cost as much as additions, and number of
# rows whose additions take as long as filling the tables (measured).
_DENSE_FRACTION = 0.23
_DENSE_ROWS = 10.0


def multiply(states, values, out, first, last):
    """Columns ``first`` to ``last`` of ``out`` become those of ``states @ values``.

    ``states`` (n_rows, n_units) uint8, ``values`` (n_units, n_columns) float32. Which
    columns a call does changes none of their sums.
    """
    n_rows, n_units = states.shape
    n_on = np.count_nonzero(states.view(np.bool_))
    if _is_dense(n_on, n_rows, n_units):
        _add_tables(_encode_rows(states), values, out, first, last, *_scratch())
    else:
        # one more: the entry after the last may be written
        index = np.empty(n_on + 1, dtype=np.uint32)
        start = np.zeros(n_rows + 1, dtype=np.int64)
        _index_rows(states, index, start)
        _add_rows(index, start, values, out, first, last)


def multiply_transposed(states, values, out, first, last):
    """The same of ``states.T @ values``.

    ``states`` (n_rows, n_units) uint8, ``values`` (n_rows, n_columns) float32.
    """
    n_rows, n_units = states.shape
    n_on = np.count_nonzero(states.view(np.bool_))
    if _is_dense(n_on, n_units, n_rows):
        codes = np.zeros((_n_groups(n_rows), n_units), dtype=np.uint8)
        _encode_columns(states, codes)
        _add_tables(codes, values, out, first, last, *_scratch())
    else:
        index = np.empty(n_on, dtype=np.uint32)
        start = np.zeros(n_units + 1, dtype=np.int64)
        place, on = np.zeros(n_units, np.int64), np.empty(n_units + 1, np.uint32)
        _index_columns(states, index, start, place, on)
        _add_rows(index, start, values, out, first, last)


def _is_dense(n_on, n_rows, n_units):
    return n_on > n_units * (_DENSE_FRACTION * n_rows + _DENSE_ROWS)


def _n_groups(n_units):
    """Groups of four units, of which four make a step."""
    return 4 * ((n_units + 15) // 16)


def _encode_rows(states):
    """Codes of groups of four units, (n_groups, n_rows)."""
    packed = np.packbits(states, axis=1, bitorder="little").T
    codes = np.zeros((_n_groups(states.shape[1]), len(states)), dtype=np.uint8)
    codes[: 2 * len(packed) : 2] = packed & 15
    codes[1 : 2 * len(packed) : 2] = packed >> 4
    return codes


def _scratch():
    """Memory of `_add_tables`: four rows, the sums of their subsets, and totals."""
    four, tables = _aligned(4 * _WIDTH), _aligned(4 * _SUBSETS)
    return four, tables, _aligned(_HEIGHT * _WIDTH).reshape(_HEIGHT, _WIDTH)


def _aligned(size):
    """Memory from the start of a cache line: loads of whole lines are twice as fast."""
    raw = np.zeros(size + 16, dtype=np.float32)
    shift = -raw.ctypes.data % 64 // 4
    return raw[shift : shift + size]


@kernel
def count_on(states, counts):
    """``counts`` (n_units,) float32 becomes how often each unit is on, up to 2**24."""
    counts[:] = _ZERO
    for i in range(states.shape[0]):
        row = states[i]
        for j in range(row.shape[0]):
            counts[j] += np.float32(row[j])


@kernel
def _encode_columns(states, codes):
    for i in range(states.shape[0]):
        row, code, place = states[i], codes[i // 4], np.uint8(1 << (i % 4))
        for j in range(row.shape[0]):
            code[j] += place * row[j]


@kernel
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


# strict: else the compiler may choose one order for whole vectors and another for what
# is left of a row (it does on processors with vectors of 128 bits), and sums depend on
# where the columns are split
@kernel(fastmath=STRICT)
def _add_rows(index, start, values, out, begin, end):
    """``out[i]`` becomes the sum of the rows ``index[start[i] : start[i + 1]]``."""
    for first in range(begin, end, _ADDED_WIDTH):
        width = min(_ADDED_WIDTH, end - first)
        last = first + width
        for i in range(out.shape[0]):
            total = out[i][first:last]
            total[:] = _ZERO
            behind = start[i + 1]
            whole = start[i] + (behind - start[i]) // 4 * 4
            for place in range(start[i], whole, 4):
                a = values[np.intp(index[place])][first:last]
                b = values[np.intp(index[place + 1])][first:last]
                c = values[np.intp(index[place + 2])][first:last]
                d = values[np.intp(index[place + 3])][first:last]
                for k in range(width):
                    total[k] = total[k] + a[k] + b[k] + c[k] + d[k]
            for place in range(whole, behind):
                a = values[np.intp(index[place])][first:last]
                for k in range(width):
                    total[k] += a[k]


@kernel
def _add_tables(codes, values, out, begin, end, four, tables, totals):
    """``out[i]`` becomes the sum over groups g of four rows of ``values``.

    Bit b of ``codes[g, i]`` tells whether row 4 g + b is in it.
    """
    n_groups, n_rows = codes.shape
    for above in range(0, n_rows, _HEIGHT):
        height = min(_HEIGHT, n_rows - above)
        for first in range(begin, end, _WIDTH):
            width = min(_WIDTH, end - first)
            totals[:] = _ZERO
            for g in range(0, n_groups, 4):
                for q in range(4):
                    _copy_four(values, 4 * (g + q), first, width, four)
                    _fill(four, tables[q * _SUBSETS : (q + 1) * _SUBSETS])
                _look_up(tables, codes[g : g + 4, above : above + height], totals)
            for i in range(height):
                row, total = out[above + i], totals[i]
                for k in range(width):
                    row[first + k] = total[k]


@kernel(inline="always")
def _copy_four(values, first_row, first, width, four):
    """Four rows of a block of columns, zeros where there are none."""
    for b in range(4):
        part = four[b * _WIDTH : (b + 1) * _WIDTH]
        if first_row + b < values.shape[0]:
            row = values[first_row + b]
            for k in range(width):
                part[k] = row[first + k]
        else:
            part[:] = _ZERO


@kernel(inline="always")
def _fill(four, table):
    """The sums of all subsets of four rows, each in the same order."""
    for k in range(_WIDTH):
        a, b = four[k], four[_WIDTH + k]
        c, d = four[2 * _WIDTH + k], four[3 * _WIDTH + k]
        ab, cd = a + b, c + d
        table[k] = _ZERO
        table[_WIDTH + k] = a
        table[2 * _WIDTH + k] = b
        table[3 * _WIDTH + k] = ab
        table[4 * _WIDTH + k] = c
        table[5 * _WIDTH + k] = a + c
        table[6 * _WIDTH + k] = b + c
        table[7 * _WIDTH + k] = ab + c
        table[8 * _WIDTH + k] = d
        table[9 * _WIDTH + k] = a + d
        table[10 * _WIDTH + k] = b + d
        table[11 * _WIDTH + k] = ab + d
        table[12 * _WIDTH + k] = cd
        table[13 * _WIDTH + k] = a + cd
        table[14 * _WIDTH + k] = b + cd
        table[15 * _WIDTH + k] = ab + cd


@kernel(inline="always")
def _look_up(tables, codes, totals):
    """Add to each row its entry in each of four tables."""
    for i in range(codes.shape[1]):
        a = np.intp(codes[0, i]) * _WIDTH
        b = np.intp(codes[1, i]) * _WIDTH + _SUBSETS
        c = np.intp(codes[2, i]) * _WIDTH + 2 * _SUBSETS
        d = np.intp(codes[3, i]) * _WIDTH + 3 * _SUBSETS
        total = totals[i]
        for k in range(_WIDTH):
            total[k] += (tables[a + k] + tables[b + k]) + (
                tables[c + k] + tables[d + k]
            )
