"""The one decorator of every compiled kernel, and its floating-point policy.

All kernels are compiled lazily (an explicit signature would reject read-only and
Fortran-ordered arrays), release the GIL so that joblib threads can run them side by
side, and are cached on disk so that only the very first call ever pays for the
compilation.
"""

import functools
import platform
import time

import numba
from llvmlite import ir
from numba import extending
from numba.core import cgutils

# Re-association and contraction let LLVM vectorise sums; NaN and infinity keep their
# meaning, because a diverged simulation is recognised by them.
FASTMATH = {"nsz", "arcp", "contract", "afn", "reassoc"}
# For code whose order of operations is the algorithm (rounding by a magic number).
STRICT = {"contract"}


def kernel(
    function=None,
    *,
    fastmath=frozenset(FASTMATH),
    helper=False,
    inline="never",
    allocates=False,
):
    """Compile ``function`` with the policy of this package.

    A kernel that other kernels call is a helper: ``helper=True`` makes its machine code
    a part of each of them. Else there would be two codes of it, one of its own and one
    in the file of the caller, which may sum in another order. Which of them runs would
    depend on whether the process has compiled the caller or read it from the cache.

    ``inline="always"`` does the same before types are known. It is for a helper with
    one caller in a first fit. With several callers this takes longer.

    Kernels write into arrays of their caller, and return numbers, never arrays. So none
    counts references: to take a slice, or an array out of a tuple, would else change an
    atomic counter twice, which takes several times as long as a row of a small network.
    ``allocates=True`` is for a kernel that makes arrays, and that no other one calls;
    without it, Numba refuses to compile such a kernel.

    Numba refuses to cache where it finds no writable folder (a read-only
    installation under a user without a home); such a kernel is compiled anew in each
    process instead of failing at import.
    """
    if function is None:
        return functools.partial(
            kernel, fastmath=fastmath, helper=helper, inline=inline, allocates=allocates
        )
    options = {"nogil": True, "fastmath": set(fastmath), "error_model": "numpy"}
    options |= {"forceinline": helper, "inline": inline, "_nrt": allocates}
    try:
        return numba.njit(function, cache=True, **options)
    except RuntimeError:
        return numba.njit(function, **options)


# -- what loops cannot say -------------------------------------------------------------
#
# Each is a function of Python, which runs where nothing is compiled, and a second
# implementation, which kernels call.

# What LLVM calls the instruction for a loop that waits, and its operands.
_PAUSES = {
    "x86_64": ("llvm.x86.sse2.pause", []),
    "AMD64": ("llvm.x86.sse2.pause", []),
    "aarch64": ("llvm.aarch64.hint", [1]),
    "arm64": ("llvm.aarch64.hint", [1]),
}
_LANES = 16
_FLOATS = ir.VectorType(ir.FloatType(), _LANES)
# Rows and columns of a tile.
TILE = 8


def full_width():
    """Called in a kernel: its loops use the widest vectors of the processor.

    Without this, the compiler stops at 256 bits, because the first processors with
    vectors of 512 bits lowered their clock for them. Results stay the same where no
    sum runs along a vector.
    """


@extending.intrinsic
def _full_width(typing_context):
    def generate(context, builder, signature, arguments):
        # llvmlite checks names of attributes against a list, which has no such pairs
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return numba.types.void(), generate


@extending.overload(full_width, inline="always")
def _overload_full_width():
    return lambda: _full_width()


def add_entries(total, at, table, a, b, c, d):
    """Add the sum of four stretches of ``table`` to one of ``total``.

    A stretch is 64 floats of a C-contiguous float32 array of one dimension, from
    ``at``, and ``a`` to ``d``, which nothing checks. In a loop, the compiler would
    test in each call whether the arrays overlap, which takes as long as the sum.
    """
    sums = (table[a : a + 64] + table[b : b + 64]) + (
        table[c : c + 64] + table[d : d + 64]
    )
    total[at : at + 64] += sums


@extending.intrinsic
def _add_entries(typing_context, total, at, table, a, b, c, d):
    def generate(context, builder, signature, arguments):
        totals, tables = (
            context.make_array(signature.args[k])(context, builder, arguments[k]).data
            for k in (0, 2)
        )
        for first in range(0, 64, _LANES):

            def place(data, start, first=first):
                index = builder.add(start, ir.Constant(start.type, first))
                return builder.bitcast(builder.gep(data, [index]), _FLOATS.as_pointer())

            rows = [
                builder.load(place(tables, start), align=4) for start in arguments[3:]
            ]
            out = place(totals, arguments[1])
            sums = builder.fadd(
                builder.fadd(rows[0], rows[1]), builder.fadd(rows[2], rows[3])
            )
            sums = builder.fadd(builder.load(out, align=4), sums)
            builder.store(sums, out, align=4)
        return context.get_dummy_value()

    index = numba.types.intp
    arguments = (total, index, table, index, index, index, index)
    return numba.types.void(*arguments), generate


@extending.overload(add_entries)
def _overload_add_entries(total, at, table, a, b, c, d):
    return lambda total, at, table, a, b, c, d: _add_entries(
        total, at, table, a, b, c, d
    )


def prefetch(array, i, j):
    """Begin to load the cache line of ``array[i, j]``, which may lie outside."""


@extending.intrinsic
def _prefetch(typing_context, array, i, j):
    def generate(context, builder, signature, arguments):
        values = context.make_array(signature.args[0])(context, builder, arguments[0])
        width = builder.extract_value(values.shape, 1)
        index = builder.add(builder.mul(arguments[1], width), arguments[2])
        byte = ir.IntType(8).as_pointer()
        place = builder.bitcast(builder.gep(values.data, [index]), byte)
        # to be read, kept in all caches, data
        options = [ir.Constant(ir.IntType(32), value) for value in (0, 3, 1)]
        kinds = [byte] + [option.type for option in options]
        kind = ir.FunctionType(ir.VoidType(), kinds)
        call = cgutils.get_or_insert_function(
            builder.module, kind, "llvm.prefetch.p0i8"
        )
        builder.call(call, [place, *options])
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.intp, numba.types.intp), generate


@extending.overload(prefetch)
def _overload_prefetch(array, i, j):
    return lambda array, i, j: _prefetch(array, i, j)


def transpose_tile(source, i, j, target):
    """``target[j : j + 8, i : i + 8]`` becomes ``source[i : i + 8, j : j + 8].T``.

    Both are C-contiguous float32 arrays of two dimensions; nothing checks the places.
    """
    target[j : j + TILE, i : i + TILE] = source[i : i + TILE, j : j + TILE].T


@extending.intrinsic
def _transpose_tile(typing_context, source, i, j, target):
    vector = ir.VectorType(ir.FloatType(), TILE)

    def generate(context, builder, signature, arguments):
        def places(which, first_row, first_column):
            array = context.make_array(signature.args[which])(
                context, builder, arguments[which]
            )
            width = builder.extract_value(array.shape, 1)
            for k in range(TILE):
                index = builder.add(first_row, ir.Constant(first_row.type, k))
                index = builder.add(builder.mul(index, width), first_column)
                yield builder.bitcast(
                    builder.gep(array.data, [index]), vector.as_pointer()
                )

        _, i, j, _ = arguments
        rows = [builder.load(place, align=4) for place in places(0, i, j)]
        # thrice, two rows half a tile apart become one with their values in turn
        low, high = _turns(0), _turns(TILE // 2)
        for _ in range(3):
            pairs = zip(rows[: TILE // 2], rows[TILE // 2 :], strict=True)
            rows = [
                builder.shuffle_vector(a, b, half)
                for a, b in pairs
                for half in (low, high)
            ]
        for row, place in zip(rows, places(3, j, i), strict=True):
            builder.store(row, place, align=4)
        return context.get_dummy_value()

    return numba.types.void(
        source, numba.types.intp, numba.types.intp, target
    ), generate


def _turns(first):
    """Indices that take the values of two vectors in turn, from ``first`` on."""
    index = [n for k in range(first, first + TILE // 2) for n in (k, TILE + k)]
    return ir.Constant(ir.VectorType(ir.IntType(32), TILE), index)


@extending.overload(transpose_tile)
def _overload_transpose_tile(source, i, j, target):
    return lambda source, i, j, target: _transpose_tile(source, i, j, target)


def read_number(numbers, place):
    """An entry of an int64 array that another thread may write meanwhile."""
    return numbers[place]


@extending.intrinsic
def _read_number(typing_context, numbers, place):
    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        return builder.load_atomic(place, "acquire", align=8)

    return numba.types.int64(numbers, numba.types.intp), generate


@extending.overload(read_number)
def _overload_read_number(numbers, place):
    return lambda numbers, place: _read_number(numbers, place)


def write_number(numbers, place, value):
    """The same for writing, behind all that was written before."""
    numbers[place] = value


@extending.intrinsic
def _write_number(typing_context, numbers, place, value):
    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        builder.store_atomic(arguments[2], place, "release", align=8)
        return context.get_dummy_value()

    types = numba.types
    return types.void(numbers, types.intp, types.int64), generate


@extending.overload(write_number)
def _overload_write_number(numbers, place, value):
    return lambda numbers, place, value: _write_number(numbers, place, value)


def pause():
    """A turn of a loop that waits: leaves the processor to others for a moment."""
    time.sleep(0.0)


@extending.intrinsic
def _pause(typing_context):
    def generate(context, builder, signature, arguments):
        # elsewhere the loop waits without it
        if platform.machine() in _PAUSES:
            name, operands = _PAUSES[platform.machine()]
            values = [ir.Constant(ir.IntType(32), value) for value in operands]
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
            pause = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(pause, values)
        return context.get_dummy_value()

    return numba.types.void(), generate


@extending.overload(pause)
def _overload_pause():
    return lambda: _pause()
