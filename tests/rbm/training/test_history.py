"""The history of a fit, and what verbose prints."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rbm_estimators import small, toy_data

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.rbm.training.history import (
    format_duration,
    join_histories,
    text_of_round,
    time_of_epochs,
    time_of_growth,
)


def test_history_of_learning_rates():
    rates = {}
    for schedule in ("linear", "constant", "inverse"):
        model = small(ContrastiveDivergenceRBM, max_iter=4, learning_rate=0.4)
        model.set_params(schedule=schedule).fit(toy_data())
        assert set(model.history_) == {"learning_rate", "mean_error", "seconds"}
        assert (np.diff(model.history_["seconds"]) > 0).all()
        rates[schedule] = model.history_["learning_rate"]
    assert_allclose(rates["linear"], [0.3, 0.2, 0.1, 0.0], atol=1e-12)
    assert_allclose(rates["constant"], 0.4)
    assert_allclose(rates["inverse"], 0.4 / (1 + 10 * np.array([0.25, 0.5, 0.75, 1])))


def test_history_keeps_one_entry_per_epoch():
    """Validation data may come with a later fit."""
    X = toy_data()
    model = small(ContrastiveDivergenceRBM, max_iter=2, warm_start=True)
    model.fit(X).fit(X, X_val=X)
    assert {len(values) for values in model.history_.values()} == {4}


def test_histories_are_joined_by_column():
    """What one of them does not have is NaN."""
    first = {"gain": np.array([1.0, 2.0]), "seconds": np.array([1.0, 3.0])}
    second = {"seconds": np.array([2.0]), "mean_error": np.array([0.5])}
    joined = join_histories(first, second)
    assert_allclose(joined["gain"], [1.0, 2.0, np.nan])
    assert_allclose(joined["seconds"], [1.0, 3.0, 2.0])
    assert_allclose(joined["mean_error"], [np.nan, np.nan, 0.5])
    assert join_histories(first, {}) == first


def test_verbose_prints_one_line_per_epoch(capsys):
    small(ContrastiveDivergenceRBM, verbose=True, max_iter=3).fit(toy_data())
    lines = capsys.readouterr().out.splitlines()
    heads = [line.split(":")[0] for line in lines]
    assert heads == ["epoch 1 of 3", "epoch 2 of 3", "epoch 3 of 3"]
    assert "mean_error" in lines[0]
    assert lines[-1].endswith(", 0 s left")


def test_verbose_counts_on_after_a_warm_start(capsys):
    model = small(ContrastiveDivergenceRBM, max_iter=2, warm_start=True).fit(toy_data())
    model.set_params(verbose=True).fit(toy_data())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 3 of 4", "epoch 4 of 4"]


def test_verbose_prints_one_line_per_step(capsys):
    model = small(FrankWolfeRBM, verbose=True).fit(toy_data())
    model.set_params(n_components=4).partial_fit(toy_data())
    lines = capsys.readouterr().out.splitlines()
    for number, line in enumerate(lines, 1):
        assert line.startswith(f"step {number}: {number} of at most ")
        assert "gain" in line and "norm" in line and line.endswith("s left")
    assert len(lines) == 4
    assert lines[2].endswith(", 0 s left")


def test_time_that_is_left():
    # one slow epoch among others does not count
    assert time_of_epochs(np.array([2.0, 4.0, 14.0, 16.0]), 3) == pytest.approx(6.0)
    assert time_of_epochs(np.cumsum(np.arange(1.0, 31.0)), 1) == pytest.approx(25.5)
    # unit k takes 0.5 + 0.1 k; the first step also compiles
    sizes = np.arange(1, 101)
    durations = 0.5 + 0.1 * sizes
    durations[0] += 20.0
    for n in (6, 30, 99):
        left = time_of_growth(np.cumsum(durations[:n]), sizes[:n], 100 - n)
        assert left == pytest.approx(durations[n:].sum())
    # no trend in steps that add nothing, and none downwards
    assert time_of_growth(np.array([1.0, 3.0]), np.array([1, 1]), 5) == pytest.approx(
        10
    )
    assert time_of_growth(np.array([3.0]), np.array([1]), 5) == pytest.approx(15.0)
    falling = np.cumsum([9.0, 9.0, 3.0, 1.0])
    assert time_of_growth(falling, np.arange(1, 5), 5) == pytest.approx(10.0)


@pytest.mark.parametrize(
    "seconds, text", [(0.2, "0 s"), (99.4, "99 s"), (700, "12 min"), (12_240, "3.4 h")]
)
def test_durations_in_a_unit_that_suits(seconds, text):
    assert format_duration(seconds) == text


def test_a_round_tells_what_differs_from_most():
    record = {
        "n_updates": 400,
        "learning_rate": 0.2,
        "n_gibbs_steps": 1,
        "n_replicas": 1,
        "weight_decay": 0.0,
        "log_likelihood": -13.204,
        "validation_log_likelihood": -13.581,
        "seconds": 3.2,
    }
    expected = "400 updates, -13.20 nats on training rows, -13.58 on validation rows"
    assert text_of_round(record) == f"{expected}, 3 s"
    record |= {"n_replicas": 10, "weight_decay": 0.002222, "seconds": 150.0}
    effort = "temperatures 10, weight decay 0.0022"
    assert text_of_round(record) == f"{expected}, {effort}, 2 min"
