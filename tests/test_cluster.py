"""Fits on the workers of a cluster: the results of one process, and what they cost."""

import os
import re
import runpy
import signal
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from fingerprints import attributes, flat
from joblib import delayed
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info

from skbayesnn import (
    ContrastiveDivergenceRBM,
    FrankWolfeRBM,
    SparseBayesMLPRegressor,
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
)
from skbayesnn._parallel import Shared, at_hand, in_order, n_threads, with_shared
from skbayesnn._sklearn import one_blas_thread

distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
pytestmark = [
    pytest.mark.slow,
    # of models that are hardly trained
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

EXAMPLE = Path(__file__).parents[1] / "examples" / "cluster.py"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = np.tanh(X[:, 0]) + 0.1 * RNG.normal(size=120)
V = RNG.random((80, 30)) < 0.4


@pytest.fixture(scope="module")
def client():
    """Of two processes with a thread each."""
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def dask(client):
    """Calls go to the cluster, whose two workers are there."""
    client.wait_for_workers(2)
    with joblib.parallel_config("dask"):
        yield client


def finished(client):
    """Keys of calls whose results the scheduler has seen."""

    def keys(dask_scheduler):
        return [
            str(one[0])
            for one in dask_scheduler.transition_log
            if one[2] == "memory" and str(one[0]).startswith("batch")
        ]

    return set(client.run_on_scheduler(keys))


def sent(client):
    """Keys of data that the scheduler has, or has forgotten."""

    def keys(dask_scheduler):
        forgotten = (one[0] for one in dask_scheduler.transition_log)
        return [*map(str, forgotten), *map(str, dask_scheduler.tasks)]

    return {key for key in client.run_on_scheduler(keys) if key.startswith("Shared")}


def n_calls(batches):
    """Short calls go to a worker several at a time, which their keys tell."""
    return sum(int(re.search(r"_(\d+)_calls", key)[1]) for key in batches)


def search():
    model = SparseBayesNARXRegressorCV(
        (1, 2), (3.0,), cv=3, n_estimators=2, hidden_layer_sizes=2, max_cycles=3
    )
    return model.set_params(random_state=0).fit(X, Y)


def restarts():
    model = SparseBayesMLPRegressor(2, n_restarts=8, tol=10.0, random_state=0)
    return model.fit(X, Y)


def ensemble():
    model = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=2, n_estimators=3)
    return model.set_params(focus="simulation", tol=10.0, random_state=0).fit(X, Y)


def grid():
    model = SparseBayesMLPRegressor(2, max_cycles=3, random_state=0)
    found = GridSearchCV(model, {"reg_lambda": [1.0, 3.0]}, cv=2).fit(X, Y)
    return found.best_estimator_, found.cv_results_["mean_test_score"]


def grid_of_machines():
    model = ContrastiveDivergenceRBM(30, max_iter=2, random_state=0)
    found = GridSearchCV(model, {"batch_size": [10, 40]}, cv=2).fit(V)
    return found.best_estimator_, found.cv_results_["mean_test_score"]


def chains():
    model = ContrastiveDivergenceRBM(25, max_iter=2, random_state=0).fit(V)
    return model, model.log_partition("both", betas=50, n_chains=300)


def growth():
    options = dict(n_chains=40, n_corrective_steps=3, max_search_iter=2)
    return FrankWolfeRBM(3, **options, random_state=0).fit(V)


CASES = [restarts, ensemble, search, grid, grid_of_machines, chains]


def numbers(found):
    found = found if isinstance(found, tuple) else (found,)
    return {
        name: value
        for k, part in enumerate(found)
        for name, value in flat(
            str(k), attributes(part) if hasattr(part, "fit") else part
        )
        if "seconds" not in name and value.dtype != object
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_results_are_those_of_one_process(case, client):
    client.wait_for_workers(2)
    expected = numbers(case())
    before = finished(client)
    with joblib.parallel_config("dask"):
        found = numbers(case())
    assert n_calls(finished(client) - before) >= 3
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert_array_equal(found[name], value, err_msg=name)


def test_what_one_process_does_stays_here(dask):
    """A fit without parts that are independent: nothing is worth sending."""
    before = finished(dask)
    expected = growth().components_
    SparseBayesMLPRegressor(2, tol=10.0).fit(X, Y)
    assert finished(dask) == before
    with joblib.parallel_config("loky", n_jobs=1):
        assert_array_equal(growth().components_, expected)


def test_data_that_are_sent_again_have_another_name(dask):
    """The cluster may still be about to forget the name of those sent before."""
    before = sent(dask)
    shared = Shared(np.ones(10_000))
    for again in (shared, shared, Shared(np.ones(10_000))):
        with at_hand(again):
            pass
    assert len(sent(dask) - before) == 3


@pytest.mark.parametrize("case, n_sent", [(restarts, 1), (search, 7)])
def test_data_are_sent_once_rather_than_with_each_call(case, n_sent, dask, monkeypatch):
    calls, data = finished(dask), sent(dask)
    pickled = []
    reduce = Shared.__reduce_ex__

    def count(self, protocol):
        pickled.append(id(self))
        return reduce(self, protocol)

    monkeypatch.setattr(Shared, "__reduce_ex__", count)
    case()
    assert n_calls(finished(dask) - calls) >= 8
    # data, and samples of them for several kinds of fits, to score and then to learn
    assert 1 <= len(sent(dask) - data) <= n_sent
    # at most twice for its name, and to each of two workers
    assert max(pickled.count(one) for one in pickled) <= 4


def test_a_killed_worker_costs_its_call_alone(dask, tmp_path):
    def call(number, shared):
        mark = tmp_path / str(number)
        with open(mark, "a") as file:
            file.write("x")
        # the first one, before anybody else has fetched its data
        if number == 0 and len(mark.read_text()) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.3)
        return number + float(shared.sum())

    shared = Shared(np.ones(10_000))
    with at_hand(shared):
        calls = (delayed(with_shared)(call, n, shared) for n in range(8))
        assert list(in_order(calls)) == [n + 1e4 for n in range(8)]
    times = [len((tmp_path / str(n)).read_text()) for n in range(8)]
    assert times[0] == 2
    # and what was running or finished on that worker, which has one thread
    assert sum(times) <= 10


def test_a_call_on_a_worker_sends_no_data_that_are_known_by_their_value(dask):
    """The scheduler may have lost them before they are sent on."""

    def call(number):
        with at_hand(Shared(np.ones(10_000))) as config:
            return config is None

    assert all(in_order(delayed(call)(number) for number in range(4)))
    with at_hand(Shared(np.ones(10_000))) as config:
        assert config is not None


def test_a_search_goes_on_without_a_worker_that_is_killed(client):
    client.wait_for_workers(2)
    expected = numbers(search())
    victim, *_ = client.run(os.getpid).values()
    before = finished(client)

    def kill():
        # once calls come back
        for _ in range(2000):
            if len(finished(client) - before) >= 2:
                break
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with joblib.parallel_config("dask"):
        found = numbers(search())
    killer.join()
    for name, value in expected.items():
        assert_array_equal(found[name], value, err_msg=name)
    client.wait_for_workers(2)
    assert victim not in client.run(os.getpid).values()


def test_processes_start_no_more_threads_than_their_share(dask):
    def of_a_worker(number):
        with one_blas_thread():
            blas = [p["num_threads"] for p in threadpool_info() if "blas" in str(p)]
        ContrastiveDivergenceRBM(300, max_iter=1).fit(np.ones((600, 300), dtype=bool))
        helpers = [t for t in threading.enumerate() if t.name == "skbayesnn"]
        return n_threads(None), max(blas, default=1), len(helpers)

    found = list(in_order(delayed(of_a_worker)(number) for number in range(4)))
    assert found == [(1, 1, 0)] * 4
    # nor does the process that waits for them: they are not its threads
    assert n_threads(None) == 1
    assert n_threads(2) == 2


def test_more_rows_than_fit_into_memory(tmp_path):
    """Blocks of a file: the same as of an array, and of sparse rows."""
    from scipy.sparse import csr_array

    rows = np.memmap(tmp_path / "rows", np.uint8, "w+", shape=(1000, 30))
    rows[:] = np.random.default_rng(1).random((1000, 30)) < 0.3

    def fit(blocks):
        model = ContrastiveDivergenceRBM(10, random_state=0)
        for block in blocks:
            model.partial_fit(block)
        return model.components_

    slices = [slice(start, start + 250) for start in range(0, 1000, 250)]
    expected = fit(np.array(rows[part]) for part in slices)
    assert_array_equal(fit(rows[part] for part in slices), expected)
    assert_array_equal(fit(csr_array(rows[part]) for part in slices), expected)


def test_incremental_of_dask(client):
    wrappers = pytest.importorskip("dask_ml.wrappers", exc_type=ImportError)
    array = pytest.importorskip("dask.array")
    rows = V.astype(np.float32)
    model = ContrastiveDivergenceRBM(5, random_state=0)
    for block in (rows[:40], rows[40:]):
        model.partial_fit(block)
    blocks = array.from_array(rows, chunks=(40, 30))
    found = wrappers.Incremental(
        ContrastiveDivergenceRBM(5, random_state=0), shuffle_blocks=False
    ).fit(blocks)
    assert_array_equal(found.estimator_.components_, model.components_)


def test_ray():
    ray = pytest.importorskip("ray", reason="Ray is not part of an extra")
    from ray.util.joblib import register_ray

    expected = numbers(restarts()) | numbers(search())
    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with joblib.parallel_config("ray", n_jobs=2):
            found = numbers(restarts()) | numbers(search())
    finally:
        ray.shutdown()
    for name, value in expected.items():
        assert_array_equal(found[name], value, err_msg=name)


def test_the_example_runs():
    runpy.run_path(str(EXAMPLE), run_name="__main__")
