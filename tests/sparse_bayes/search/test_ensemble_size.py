"""Which candidates come into an ensemble, and how many networks it has."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from search_cases import LIMITS, estimator, quietly, record, searched_table

from skbayesnn import DynamicSystemRegressor
from skbayesnn.sparse_bayes.learning.session_parts import stretches
from skbayesnn.sparse_bayes.search import searched_ensemble
from skbayesnn.sparse_bayes.search.candidates import Candidate, Table
from skbayesnn.sparse_bayes.search.cut_record import CutRecord
from skbayesnn.sparse_bayes.search.ensemble_size import (
    ADDED,
    FEWEST,
    MOST,
    USUAL,
    enough_members,
)
from skbayesnn.sparse_bayes.search.members import close_to_best, share_out
from skbayesnn.sparse_bayes.search.search_space import Grid, SearchSpace
from skbayesnn.sparse_bayes.training_record import TrainingRecord

pytestmark = pytest.mark.usefixtures("quick_states")

N_ROWS = 5000


def of_lags(lag):
    return Candidate("network", "simulation", lag, 6.0, True)


def of_states(n):
    return Candidate("states", "simulation", 0, 5.0, True, n, "tanh", 15)


def table_of(errors):
    table = Table(5)
    for candidate, error in errors.items():
        for fold in range(5):
            table.add(candidate, fold, error)
    return table


@pytest.mark.parametrize(
    ("errors", "n_members", "expected"),
    [
        # half of them for each kind that is as good, however many are alike
        ({of_states(n): 1.0 for n in (2, 4, 6)} | {of_lags(5): 1.0}, 6, [1, 1, 1, 3]),
        ({of_states(n): 1.0 for n in (2, 4, 6, 8)} | {of_lags(5): 1.01}, 2, [1, 1]),
        # fewer for the worse one: 1.44 to 1 is 59 to 41 %
        ({of_lags(5): 1.0, of_states(4): 1.2}, 12, [7, 5]),
        ({of_lags(5): 1.0, of_lags(9): 1.1, of_states(4): 1.2}, 7, [2, 2, 3]),
        # one kind alone
        ({of_lags(5): 1.0, of_lags(9): 1.1}, 5, [3, 2]),
        ({of_lags(lag): 1.0 + lag / 1000 for lag in (5, 7, 9)}, 2, [1, 1]),
        ({of_lags(5): 1.0, of_states(4): 1.1}, 1, [1]),
    ],
    ids=range(7),
)
def test_shares(errors, n_members, expected):
    table = table_of(errors)
    close = close_to_best(table)
    shares = share_out(close, table, n_members)
    assert list(shares.values()) == expected and sum(expected) == n_members
    # in the order of their errors
    assert list(shares) == [c for c in close if c in shares]


@pytest.mark.parametrize("leading", ["network", "states"])
def test_both_kinds_are_tried_on_all_stretches(leading):
    """However many candidates of the other kind are a little better."""

    def error(candidate):
        known = candidate.reg_lambda in (3.0, 6.0, 9.0)
        return (1.0 if candidate.model == leading else 1.3) if known else 2.0

    space = SearchSpace(
        LIMITS,
        *(Grid((5, 10, 20)), Grid((3.0, 6.0, 9.0)), Grid((2, 3, 4))),
        current_input=True,
        activations=("tanh",),
        kinds=("linear", "network", "states"),
    )
    table = searched_table(error, space)
    finalists = [c for c in table.comparable().best_first() if c.model != "linear"]
    n_of = {
        kind: sum(c.model == kind for c in finalists) for kind in ("network", "states")
    }
    other = "states" if leading == "network" else "network"
    assert n_of == {leading: 4, other: 2}


class Path(NamedTuple):
    mean: np.ndarray


class Model(NamedTuple):
    """What predicts the outputs of a record with these errors."""

    truth: np.ndarray
    errors: np.ndarray
    max_lag: int = 1

    def forecast(self, record, n_known, horizon, return_std):
        (first,) = np.flatnonzero(self.truth[:, 0] == record.Y[0, 0])
        rows = slice(first, first + len(record.Y))
        return Path(self.truth[rows] + self.errors[rows])


def models(own, common=1.0, n=5, n_outputs=1, seed=0):
    """Models with a common error and errors of their own, and their data."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((N_ROWS, n_outputs))
    U, starts = np.zeros((N_ROWS, 1)), np.array([0, N_ROWS])
    given = TrainingRecord(U, truth, starts, n_outputs == 1, {})
    data = CutRecord(given, stretches(starts, 5))
    shared = common * rng.standard_normal(truth.shape)
    errors = [0.1 * (shared + own * rng.standard_normal(truth.shape)) for _ in range(n)]
    return [Model(truth, error) for error in errors], data


@pytest.mark.parametrize("n", [3, 6])
def test_the_scatter_tells_the_number(n):
    """A median of Gaussian errors has up to half more of them than their mean."""
    found = []
    for square in (1.1, 1.4):
        members, data = models(np.sqrt(square), n=n)
        found.append(enough_members({0: members, 3: members}, data, "simulation"))
        assert 0.6 <= found[-1] / (square / ADDED) <= 1.0
    assert found[0] < found[1]


@pytest.mark.parametrize(
    ("own", "common", "expected"),
    [(0.1, 1.0, FEWEST), (0.4, 1.0, USUAL), (3.0, 1.0, MOST), (1.0, 0.0, MOST)],
)
def test_its_limits(own, common, expected):
    members, data = models(own, common)
    for focus in ("simulation", "prediction"):
        assert enough_members({1: members}, data, focus) == expected


def test_models_that_are_the_same_need_few_and_one_alone_shows_nothing():
    members, data = models(1.0)
    assert enough_members({0: members[:1] * 4}, data, "simulation") == FEWEST
    alone = {0: members[:1], 1: members[:1]}
    assert enough_members(alone, data, "simulation") == USUAL
    assert enough_members({}, data, "simulation") == USUAL


def test_a_run_that_diverged_is_far_off():
    members, data = models(0.1, n=4)
    lost = [m._replace(errors=np.full_like(m.errors, np.nan)) for m in members[:2]]
    assert enough_members({0: lost + members[2:]}, data, "simulation") > FEWEST
    assert enough_members({0: lost[:1] + members[1:]}, data, "simulation") == FEWEST


def test_missing_values_and_units_do_not_count():
    members, data = models(1.0, n_outputs=2)
    networks = {0: members, 2: members}
    expected = enough_members(networks, data, "simulation")
    assert FEWEST < expected < MOST
    truth = data.Y.copy()
    truth[10::7, 0] = np.nan
    missing = data._replace(given=data.given._replace(Y=truth))
    assert abs(enough_members(networks, missing, "simulation") - expected) <= 1
    scale = np.array([1e3, 1e-3])
    scaled = [Model(m.truth * scale, m.errors * scale) for m in members]
    given = data.given._replace(Y=data.Y * scale)
    found = enough_members(
        {0: scaled, 2: scaled}, data._replace(given=given), "simulation"
    )
    assert found == expected


@pytest.mark.parametrize("kind", ["lags", pytest.param("all", marks=pytest.mark.slow)])
def test_a_search_asks_for_so_many(monkeypatch, kind):
    """Of at least three candidates, all networks that did not see a stretch."""
    asked = []

    def enough(networks, data, focus):
        asked.append({fold: len(members) for fold, members in networks.items()})
        return 7

    monkeypatch.setattr(searched_ensemble, "enough_members", enough)
    given = dict(n_estimators="auto", max_cycles=5, random_state=0, cv=3)
    if kind == "lags":
        model = estimator((2, 3), (3.0, 6.0), **given)
    else:
        small = dict(lags=(2, 3), n_states=(2,), hidden_layer_sizes=2)
        model = DynamicSystemRegressor(**small, reg_lambdas=(3.0, 6.0), **given)
    quietly(model, *record(120))
    assert len(asked) == 1 and set(asked[0]) == {0, 1, 2}
    assert min(asked[0].values()) >= 3
    assert_allclose(model.estimator_weights_.sum(), 1.0)
    # some starts may have been left out, but their candidates keep their weight
    assert 1 < len(model.estimators_) <= 7
    assert np.all(np.abs(model.estimator_weights_ * 7 - 1) < 1.01)
