"""Products that several threads share: every column once, and the same result."""

import multiprocessing
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rbm_models import transposed_product

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.rbm import states as products
from skbayesnn.rbm import threads


def parts_of(n_threads, n, work):
    parts, names = [], set()

    def call(first, last):
        parts.append((first, last))
        names.add(threading.current_thread().name)

    with threads.using(n_threads):
        threads.share_out(call, n, work)
    return sorted(parts), names


@pytest.mark.parametrize("grain", [4, 64])
@pytest.mark.parametrize("n", [0, 1, 5, 64, 65, 200])
def test_parts_begin_at_multiples_of_a_grain(eager, n, grain):
    parts = []
    with threads.using(3):
        threads.share_out(lambda *part: parts.append(part), n, 10**9, grain)
    places = [place for part in sorted(parts) for place in range(*part)]
    assert places == list(range(n))
    assert all(first % grain == 0 for first, _ in parts)
    assert len(parts) == max(1, min(3, -(-n // grain)))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 100])
def test_each_place_belongs_to_one_part(eager, n_threads, n):
    parts, names = parts_of(n_threads, n, 10**9)
    places = [place for part in parts for place in range(*part)]
    assert places == list(range(n))
    assert len(parts) == max(1, min(n_threads, n))
    assert threading.main_thread().name in names


def test_small_products_stay_on_one_thread():
    assert len(parts_of(4, 100, threads._MIN_WORK - 1)[0]) == 1
    assert len(parts_of(4, 100, threads._MIN_WORK)[0]) == 2
    assert len(parts_of(4, 100, 100 * threads._MIN_WORK)[0]) == 4


def test_the_number_is_that_of_the_innermost_context(eager):
    with threads.using(3):
        assert len(parts_of(2, 100, 10**9)[0]) == 2
        seen = []
        threads.share_out(lambda *part: seen.append(part), 100, 10**9)
        assert len(seen) == 3
    seen.clear()
    threads.share_out(lambda *part: seen.append(part), 100, 10**9)
    assert seen == [(0, 100)]


@pytest.mark.parametrize("which", [0, 50])
def test_an_error_in_a_part_is_raised(eager, which):
    def call(first, last):
        if first == which:
            raise RuntimeError("in a part")

    with threads.using(2), pytest.raises(RuntimeError, match="in a part"):
        threads.share_out(call, 100, 10**9)


def test_a_thread_that_sleeps_is_woken(eager, monkeypatch):
    monkeypatch.setattr(threads, "_idle", [])
    monkeypatch.setattr(threads, "_TURNS", 1)
    for _ in range(20):
        assert len(parts_of(2, 100, 10**9)[0]) == 2
        time.sleep(0.002)
    (helper,) = threads._idle
    # it has not waited in a loop all the time
    assert wait_for(lambda: helper._sleeps)


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()


def test_two_callers_have_threads_of_their_own(eager, monkeypatch):
    """A part that waits for the other caller's part does not wait for ever."""
    monkeypatch.setattr(threads, "_idle", [])
    meeting = threading.Barrier(4, timeout=30.0)
    errors = []

    def caller():
        try:
            with threads.using(2):
                threads.share_out(lambda *part: meeting.wait(), 2, 10**9)
        except threading.BrokenBarrierError as error:
            errors.append(error)

    callers = [threading.Thread(target=caller) for _ in range(2)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert not errors
    assert len(threads._idle) == 2


def test_an_interrupt_waits_for_the_other_threads(eager, monkeypatch):
    ended = []

    def call(first, last):
        if first:
            time.sleep(0.2)
            ended.append(first)

    awaiting = threads.await_number
    interrupts = [KeyboardInterrupt()]

    def interrupted(*arguments):
        if interrupts:
            raise interrupts.pop()
        return awaiting(*arguments)

    monkeypatch.setattr(threads, "await_number", interrupted)
    with threads.using(2), pytest.raises(KeyboardInterrupt):
        threads.share_out(call, 2, 10**9)
    assert ended == [1]
    # the thread can be used again
    assert len(parts_of(2, 100, 10**9)[0]) == 2


def _product_in_a_child(queue):
    threads._MIN_WORK, products.SMALL = 1, 0
    states, values = np.eye(8, dtype=np.uint8), np.ones((8, 9), dtype=np.float32)
    with threads.using(2):
        queue.put(float(products.product(states, values).sum()))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(eager):
    """Those of its parent do not exist there: waiting for them would never end."""
    parts_of(2, 100, 10**9)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_product_in_a_child, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=30) == 72.0
    finally:
        child.terminate()
        child.join()


@pytest.mark.parametrize("density", [0.1, 0.6])
def test_products(eager, density):
    rng = np.random.default_rng(0)
    states = (rng.random((40, 30)) < density).astype(np.uint8)
    values = rng.normal(size=(30, 21)).astype(np.float32)
    others = rng.normal(size=(40, 21)).astype(np.float32)
    one = products.product(states, values), transposed_product(states, others)
    with threads.using(3):
        several = (
            products.product(states, values),
            transposed_product(states, others),
        )
    for first, second in zip(one, several, strict=True):
        assert_array_equal(first, second)


@pytest.mark.parametrize(
    "model",
    [
        ContrastiveDivergenceRBM(150, max_iter=3, batch_size=20, random_state=0),
        ContrastiveDivergenceRBM(70, max_iter=2, persistent=False, random_state=0),
        pytest.param(
            ContrastiveDivergenceRBM(18, max_updates=200, random_state=0),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            FrankWolfeRBM(2, n_chains=40, n_corrective_steps=5, random_state=0),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            FrankWolfeRBM(3, n_chains=40, alpha="learn", away_steps=True),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["persistent", "plain", "rounds", "growth", "fractional"],
)
@pytest.mark.parametrize("n_jobs", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_fits_do_not_depend_on_n_jobs(eager, model, n_jobs):
    rng = np.random.default_rng(0)
    X = rng.random((60, 17)) < np.where(rng.random((60, 1)) < 0.5, 0.1, 0.7)
    first = model.set_params(n_jobs=1, random_state=0).fit(X).components_.copy()
    assert first.any()
    assert_array_equal(model.set_params(n_jobs=n_jobs).fit(X).components_, first)


@pytest.mark.slow
def test_the_package_is_imported_where_nothing_forks():
    """As on Windows; whatever else a system may lack is looked up inside functions."""
    script = """
import os
for name in ("fork", "forkpty", "register_at_fork", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
import skbayesnn, skbayesnn.datasets, skbayesnn.displays, skbayesnn.metrics
"""
    subprocess.run([sys.executable, "-c", script], check=True)
