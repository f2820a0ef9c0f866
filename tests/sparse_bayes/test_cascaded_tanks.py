"""The measured benchmark record, and a record too long for a careless fit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import fetch_cascaded_tanks
from skbayesnn.metrics import simulation_rmse

ROOT = Path(__file__).parents[2]
BENCHMARK = ROOT / "examples/benchmarks/cascaded_tanks.py"
# found on the training record by the search of the benchmark
SETTINGS = {
    "activation": "relu",
    "hidden_layer_sizes": 10,
    "skip_connection": False,
    "reg_lambda": 8.0,
}
# test errors of a linear ARX model and of the mean, in V
LINEAR_ARX, CONSTANT = 0.052, 2.1


def test_errors_and_lags_of_one_fit(data_home):
    """One fit with the defaults: better than the mean in free run, and finite."""
    tanks = fetch_cascaded_tanks(data_home=data_home)
    test = tanks.tests.test
    model = SparseBayesNARXRegressor(5, 5, random_state=0)
    model.fit(tanks.data, tanks.target)
    one_step, std = model.predict(test.data, test.target, return_std=True)
    assert simulation_rmse(test.target, one_step, n_initialization=50) < 0.06
    inside = np.abs(test.target - one_step)[50:] < 2 * std[50:]
    assert 0.9 < inside.mean() < 1.0
    assert model.score(test.data, test.target) > 0.999
    assert max(model.lag_relevance_, key=model.lag_relevance_.get) == "y(t-1)"
    free = model.predict(test.data, y_init=test.target[:50])
    assert np.isfinite(free).all()


@pytest.mark.slow
def test_ten_seeds_beat_the_linear_model(data_home):
    tanks = fetch_cascaded_tanks(data_home=data_home)
    test = tanks.tests.test
    one_step, free_run = [], []
    for seed in range(10):
        model = SparseBayesNARXRegressor(
            5, 5, n_restarts=10, random_state=seed, **SETTINGS
        )
        model.fit(tanks.data, tanks.target)
        for errors, arguments in (
            (one_step, {"y": test.target}),
            (free_run, {"y_init": test.target[:50]}),
        ):
            predicted = model.predict(test.data, **arguments)
            errors.append(simulation_rmse(test.target, predicted, n_initialization=50))
    assert np.median(one_step) < LINEAR_ARX
    assert np.isfinite(free_run).all()
    assert max(free_run) < CONSTANT
    assert np.median(free_run) < 0.8


@pytest.mark.slow
def test_simulators_agree_and_simulate(data_home):
    """Lags and prior as cross-validation within the training record keeps them."""
    tanks = fetch_cascaded_tanks(data_home=data_home)
    test = tanks.tests.test
    errors, covered = [], []
    for seed in range(3):
        model = SparseBayesNARXRegressor(
            30,
            30,
            focus="simulation",
            hidden_layer_sizes=5,
            reg_lambda=20.0,
            random_state=seed,
        )
        model.fit(tanks.data, tanks.target)
        mean, std = model.predict(test.data, y_init=test.target[:50], return_std=True)
        errors.append(simulation_rmse(test.target, mean, n_initialization=50))
        inside = np.abs(test.target - mean)[50:] < 2.0 * std[50:]
        covered.append(inside.mean())
    # the best published black box has 0.306 V
    assert max(errors) < 0.3
    assert np.ptp(errors) < 0.03
    assert min(covered) > 0.9


@pytest.mark.slow
def test_a_wide_network_prunes_itself(data_home):
    tanks = fetch_cascaded_tanks(data_home=data_home)
    test = tanks.tests.test
    model = SparseBayesNARXRegressor(
        5,
        5,
        hidden_layer_sizes=(100, 100),
        skip_connection=False,
        kappa_weight=0.05,
        random_state=0,
    )
    model.fit(tanks.data, tanks.target)
    kept = np.concatenate([mask.ravel() for mask in model.masks_])
    assert 0 < kept.mean() < 0.1
    error = simulation_rmse(
        test.target, model.predict(test.data, test.target), n_initialization=50
    )
    assert error < 0.1


def printed_by(*arguments, path):
    """What a Python prints that imports from ``path``."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout


def test_the_memory_of_a_benchmark_is_that_of_its_own_process():
    """The test process, with all that it imported, is larger than a bare Python."""
    code = "import process_memory as m; print(m.peak_resident() / 2**20)"
    assert 2 < float(printed_by("-c", code, path=BENCHMARK.parent)) < 40


@pytest.mark.slow
def test_a_long_record_fits_into_a_gibibyte():
    """100,000 samples, 81 regressors, a thousand weights: no whole Jacobian."""
    output = printed_by(str(BENCHMARK), "--parts", "large_record", path=ROOT)
    figures = json.loads(output)
    assert figures["weights"] > 900
    assert figures["peak_resident_MiB"] < 1024
