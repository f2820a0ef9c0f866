"""Numbers by which threads wait for each other.

Also run without the compiler.
"""

import threading

import numpy as np

from skbayesnn.rbm.kernels import signals


def test_a_number_that_is_there_is_not_waited_for():
    numbers = np.array([3, 5], dtype=np.int64)
    assert signals.await_number(numbers, 1, 5, 1)
    assert not signals.await_number(numbers, 1, 4, 10)
    assert not signals.await_number(numbers, 0, 3, 0)


def test_an_announcement_is_written_even_if_no_answer_comes():
    numbers = np.zeros(2, dtype=np.int64)
    assert not signals.announce_and_await(numbers, 1, 7, 0, 10, 0)
    assert list(numbers) == [0, 7]
    # the next number is the answer, the same one is not
    numbers[0] = 7
    assert not signals.announce_and_await(numbers, 1, 7, 0, 10, 0)
    numbers[0] = 8
    assert signals.announce_and_await(numbers, 1, 7, 0, 10, 3)


def test_two_threads_answer_each_other():
    """Each adds to what the other has written, in turn."""
    numbers, values = np.zeros(16, dtype=np.int64), [0]
    n_rounds, n_turns = 30, 10**6

    def answer():
        for done in range(n_rounds):
            while not signals.announce_and_await(numbers, 8, done, 0, n_turns, 0):
                pass
            values.append(values[-1] + 1)
        signals.announce_and_await(numbers, 8, n_rounds, 0, 1, 0)

    thread = threading.Thread(target=answer)
    thread.start()
    for given in range(1, n_rounds + 1):
        numbers[0] = given
        while not signals.await_number(numbers, 8, given, n_turns):
            pass
        values.append(10 * values[-1] % 1009)
    thread.join()
    expected = [0]
    for _ in range(n_rounds):
        expected += [expected[-1] + 1, 10 * (expected[-1] + 1) % 1009]
    assert values == expected
