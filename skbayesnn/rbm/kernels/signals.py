"""Numbers by which threads wait for each other without the interpreter's lock.

A thread that sleeps takes some ten microseconds to wake, on a virtual machine up to a
hundred: as long as a small product. These wait in a loop, for a bounded time.
"""

from ..._numba import kernel, pause, read_number, write_number


@kernel
def await_number(numbers, place, value, n_turns):
    """Whether ``numbers[place]`` becomes ``value`` within so many turns."""
    for _ in range(n_turns):
        if read_number(numbers, place) == value:
            return True
        pause()
    return False


@kernel
def announce_and_await(numbers, own, value, other, n_turns, n_more):
    """Announce ``value`` at ``own``, then await the next number at ``other``.

    When it is there, waits for ``n_more`` turns.
    """
    write_number(numbers, own, value)
    for _ in range(n_turns):
        if read_number(numbers, other) == value + 1:
            for _ in range(n_more):
                pause()
            return True
        pause()
    return False
