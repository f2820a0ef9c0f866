"""Fits with checkpoints, and what tells whether two fits are the same."""

import functools
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.rbm.learning import contrastive, growth
from skbayesnn.rbm.training import job

CLASSES = [ContrastiveDivergenceRBM, FrankWolfeRBM]


GROWTH = dict(
    objective="linearized",
    n_chains=60,
    n_search_rows=100,
    max_search_iter=3,
    n_corrective_steps=5,
    random_state=3,
)


TUNER = ContrastiveDivergenceRBM(max_iter=4, momentum=0.5, early_stopping=True)


CASES = {
    "plain": ContrastiveDivergenceRBM(
        6, max_iter=4, batch_size=50, momentum=0.5, random_state=3
    ),
    # ends long before max_iter, by the rows that it holds out
    "early": ContrastiveDivergenceRBM(
        20,
        max_iter=40,
        early_stopping=True,
        max_gap=0.2,
        batch_size=10,
        random_state=np.random.RandomState(4),
    ),
    "rounds": ContrastiveDivergenceRBM(
        20, max_updates=150, batch_size=50, random_state=3
    ),
    # few rows to train on end the comparison soon
    "sizes": FrankWolfeRBM(
        fine_tune=ContrastiveDivergenceRBM(max_updates=60),
        validation_fraction=0.8,
        **{**GROWTH, "n_corrective_steps": 0},
    ),
    # without steps that follow, some units do more harm than good and are taken out
    "growth": FrankWolfeRBM(
        6, away_steps=True, **{**GROWTH, "n_bias_steps": 0, "n_corrective_steps": 0}
    ),
    "fractional": FrankWolfeRBM(3, alpha="learn", early_stopping=True, **GROWTH),
    "tuned": FrankWolfeRBM(3, fine_tune=TUNER, fine_tune_norm=0.5, **GROWTH),
    "tuned in rounds": FrankWolfeRBM(
        3, fine_tune=ContrastiveDivergenceRBM(max_updates=100), **GROWTH
    ),
    "all tuning": FrankWolfeRBM(
        3,
        init=ContrastiveDivergenceRBM(5, max_iter=2, random_state=0),
        fine_tune=TUNER,
        **{**GROWTH, "random_state": None},
    ),
}


def digits(n_samples=200):
    return load_digits().data[:n_samples] > 7


def file_of(folder, case, hook, n_calls):
    return Path(folder) / f"{case} {hook} {n_calls}"


def other(case, path, **parameters):
    """An estimator that is fitted anew, as after a restart."""
    return clone(CASES[case]).set_params(checkpoint=path, **parameters)


def fit(case, path, **parameters):
    with threadpool_limits(1):
        return other(case, path, **parameters).fit(digits())


def uninterrupted(case, seed=None):
    """The same fit without a checkpoint; ``seed`` where it was drawn by chance."""
    return fit_once(case, None if CASES[case].random_state is not None else seed)


@functools.cache
def fit_once(case, seed):
    with threadpool_limits(1), pytest.MonkeyPatch.context() as patch:
        if seed is not None:
            draw = job.draw_seed
            patch.setattr(job, "draw_seed", lambda r: seed if r is None else draw(r))
        return clone(CASES[case]).fit(digits())


def forbid_steps(monkeypatch):
    """From here on, training is a failure."""

    def step(*arguments):
        raise AssertionError("a step was taken")

    monkeypatch.setattr(contrastive, "step", step)
    monkeypatch.setattr(growth, "step", step)


def count_calls(monkeypatch, module, name):
    function, calls = getattr(module, name), []

    def counting(*arguments, **keywords):
        calls.append(name)
        return function(*arguments, **keywords)

    monkeypatch.setattr(module, name, counting)
    return calls


def assert_same(first, second, name="estimator"):
    """Bit for bit, but for times and the file's name."""
    assert type(first) is type(second), name
    if isinstance(first, np.ndarray):
        assert first.dtype == second.dtype, name
        assert_array_equal(first, second, err_msg=name)
    elif hasattr(first, "get_params"):
        assert_same(vars(first), vars(second), name)
    elif isinstance(first, np.random.RandomState):
        assert_same(first.get_state(), second.get_state(), name)
    elif isinstance(first, dict):
        assert first.keys() == second.keys(), name
        for key in first.keys() - {"seconds", "checkpoint"}:
            assert_same(first[key], second[key], f"{name}.{key}")
    elif isinstance(first, tuple):
        assert len(first) == len(second), name
        for i, (a, b) in enumerate(zip(first, second, strict=True)):
            assert_same(a, b, f"{name}[{i}]")
    else:
        assert first == second or first is second, name
