"""Searches, and tables of their errors, that several tests share."""

import warnings

import numpy as np
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import DynamicSystemRegressor, SparseBayesNARXRegressorCV
from skbayesnn._random import draw_seed
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.sparse_bayes.search import searched_ensemble
from skbayesnn.sparse_bayes.search.candidates import Candidate, Table
from skbayesnn.sparse_bayes.search.comparison import Comparison
from skbayesnn.sparse_bayes.search.members import evenly
from skbayesnn.sparse_bayes.search.rounds import run_rounds
from skbayesnn.sparse_bayes.search.search_space import (
    OUTPUTS,
    Grid,
    Limits,
    SearchSpace,
)

LAGS, STRENGTHS, CV = (2, 4), (3.0, 30.0), 3


FAST = dict(
    cv=CV,
    n_restarts=1,
    n_estimators=2,
    include_current_input=True,
    hidden_layer_sizes=2,
    max_cycles=3,
)


SHARED = (
    "focus",
    "hidden_layer_sizes",
    "max_cycles",
    "initial_conditions",
    "n_restarts",
)


FAST_DYNAMIC = dict(
    lags=(2,),
    n_states=(2,),
    reg_lambdas=(3.0,),
    hidden_layer_sizes=2,
    cv=2,
    n_estimators=2,
    max_cycles=3,
    random_state=0,
)


OF_LAGS = Candidate("network", "simulation", 2, 3.0, True)
OF_STATES = Candidate("states", "simulation", 0, 3.0, True, 2, "tanh")


def record(n_rows=150, seed=0):
    """One input, and an output with noise that does not enter the system."""
    rng = np.random.default_rng(seed)
    u, x = rng.uniform(-1, 1, size=(n_rows, 1)), np.zeros(n_rows)
    for t in range(2, n_rows):
        x[t] = 1.2 * x[t - 1] - 0.5 * x[t - 2] + np.tanh(2 * u[t - 1, 0])
    return u, 5 + x + 0.1 * rng.standard_normal(n_rows)


def with_gaps(data):
    """A record of 150 rows that has one in the inputs, and one in the outputs."""
    u, y = data
    rows = np.arange(150)
    return np.where(rows[:, None] == 70, np.nan, u), np.where(rows == 30, np.nan, y)


def tanks(n_rows=180):
    return make_cascaded_tanks(n_rows, return_X_y=True, random_state=0)


def integrator(n_rows, seed=0):
    """A position that follows a force, measured with a little noise."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, size=(n_rows, 1))
    y = np.cumsum(np.append(0.0, u[:-1, 0] - 0.3 * u[:-1, 0] ** 3))
    return u, y + 0.01 * rng.standard_normal(n_rows)


def estimator(lags=LAGS, reg_lambdas=STRENGTHS, **options):
    options = {**FAST, "random_state": 0, **options}
    return SparseBayesNARXRegressorCV(lags, reg_lambdas, **options)


def dynamic(**options):
    """A search over all kinds of models, which takes little time."""
    return DynamicSystemRegressor(**FAST_DYNAMIC | options)


def choose(monkeypatch, *candidates):
    """Let a search keep these candidates, whatever their number of cycles.

    The first ones get the members that do not divide evenly.
    """

    def chosen(table):
        by_rest = {c._replace(max_cycles=0): c for c in table.errors}
        return [by_rest[c] for c in candidates]

    def shares(close, table, n_members):
        return dict(zip(close, evenly(n_members, len(close)), strict=True))

    monkeypatch.setattr(searched_ensemble, "close_to_best", chosen)
    monkeypatch.setattr(searched_ensemble, "share_out", shares)


def start_seeds(n_seeds):
    """Of the folds, and of the members."""
    root = np.random.SeedSequence(draw_seed(0))
    return [int(seed) for seed in root.generate_state(n_seeds) % 2**31]


MODELS = ("linear", "network", "states")
LIMITS = Limits(longest=30, rows=1000, n_signals=2, n_outputs=1, n_hidden=5)
LONG = LIMITS._replace(longest=200)


def table_of(errors, n_folds=5):
    """A table with these errors of candidates on all folds."""
    table = Table(n_folds)
    for candidate, row in errors.items():
        for fold, error in enumerate(row):
            table.add(candidate, fold, error)
    return table


def network(lag, strength=6.0):
    return Candidate("network", "simulation", lag, strength, True)


def arx(lag, current_input=True):
    return Candidate("linear", "prediction", lag, 0.0, current_input)


def of_differences(candidates):
    return [c for c in candidates if c.output == "difference"]


def times(ratio):
    """Errors of which those of differences are so many times as large."""
    return lambda c: (
        0.1
        * (ratio if c.output == "difference" else 1.0)
        * (1.0 if c.model == "network" else 1.1)
    )


def comparison_of(errors, table=None, drift=None):
    """A comparison of candidates whose errors a function gives."""
    table = table or Table(8)

    def evaluate(pairs):
        for candidate, fold in pairs:
            table.add(candidate, fold, errors(candidate))

    return Comparison(table, evaluate, drift)


def searched_table(errors, space, table=None, drift=None):
    """The table behind all rounds of a search with such errors."""
    comparison = comparison_of(errors, table, drift)
    run_rounds(comparison, space)
    return comparison.table


def searched_lags(error, limits=LONG, **options):
    """The table of a search over models of lags, with such errors."""
    options = {"current_input": True, **options}
    return searched_table(error, SearchSpace(limits, **options))


def space_of_kinds(**options):
    """All kinds of models; layers of hidden states are given."""
    options = {"units": Grid((0,)), **options}
    return SearchSpace(LIMITS, kinds=MODELS, current_input=True, **options)


def searched_kinds(errors, **options):
    """The table of a search over all kinds of models, with such errors."""
    return searched_table(errors, space_of_kinds(**options))


def searched_outputs(error, kinds=MODELS, table=None, drift=None, **options):
    """The table of a search over levels and differences, and what was asked for."""
    asked = []

    def errors(candidate):
        asked.append(candidate)
        return error(candidate)

    options = {"limits": LIMITS, "outputs": OUTPUTS, **options}
    space = SearchSpace(kinds=kinds, **options)
    return searched_table(errors, space, table, drift), asked


def quietly(model, *data, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **arguments)


def assert_same_ensemble(a, b):
    for name, values in a.cv_results_.items():
        assert_array_equal(values, b.cv_results_[name])
    assert len(a.estimators_) == len(b.estimators_)
    for one, other in zip(a.estimators_, b.estimators_, strict=True):
        for first, second in zip(one.coefs_, other.coefs_, strict=True):
            assert_array_equal(first, second)


def errors_by_stretch(results):
    """Held-out errors of ``cv_results_``, (n_rows, n_folds)."""
    names = [name for name in results if name.startswith("split")]
    assert names == [f"split{k}_test_error" for k in range(len(names))]
    return np.column_stack([results[name] for name in names])
