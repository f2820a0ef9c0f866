"""Levels or differences, chosen by the search."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from search_cases import LIMITS, estimator, quietly, record, searched_table

from skbayesnn import DynamicSystemRegressor
from skbayesnn.sparse_bayes.search.candidates import Candidate, Table
from skbayesnn.sparse_bayes.search.comparison import Comparison
from skbayesnn.sparse_bayes.search.members import close_to_best
from skbayesnn.sparse_bayes.search.rounds import run_rounds
from skbayesnn.sparse_bayes.search.search_space import OUTPUTS, Grid, SearchSpace

MODELS = ("linear", "network", "states")


def searched(error, kinds=MODELS, table=None, drift=None, **options):
    """The table of a search with such errors, and what was asked for."""
    asked = []

    def errors(candidate):
        asked.append(candidate)
        return error(candidate)

    options = {"limits": LIMITS, "outputs": OUTPUTS, **options}
    space = SearchSpace(kinds=kinds, **options)
    return searched_table(errors, space, table, drift), asked


def of_differences(candidates):
    return [c for c in candidates if c.output == "difference"]


def times(ratio):
    """Errors of which those of differences are so many times as large."""
    return lambda c: (
        0.1
        * (ratio if c.output == "difference" else 1.0)
        * (1.0 if c.model == "network" else 1.1)
    )


def test_differences_that_are_far_behind_cost_three_linear_fits():
    table, asked = searched(times(3.1))
    assert [c.model for c in of_differences(asked)] == ["linear"] * 3
    assert not of_differences(table.errors)
    assert not of_differences(searched(times(0.1), outputs=("level",))[1])


@pytest.mark.parametrize(
    ("ratio", "expected"), [(0.5, True), (1.0, True), (1.39, True), (1.41, False)]
)
def test_differences_are_chosen_where_they_are_close(ratio, expected):
    table, asked = searched(lambda c: times(1.0 if c.model == "linear" else ratio)(c))
    kept = close_to_best(table.comparable())
    assert {c.output for c in kept} == {"difference" if expected else "level"}
    assert {c.model for c in kept} <= {"network", "states"}
    # both are searched alike, and come into the last round where they are close
    for kind in MODELS:
        assert {c.output for c in asked if c.model == kind} == set(OUTPUTS)
    final = [c for c in table.comparable().best_first() if c.model == "network"]
    assert ({c.output for c in final} == set(OUTPUTS)) == (ratio >= 1.0)


@pytest.mark.parametrize("ratio", [0.7, 1.3])
@pytest.mark.parametrize(
    ("of_levels", "of_differences", "expected"),
    [(0.3, 0.0, "difference"), (0.0, 0.3, "level"), (0.3, 0.3, "difference")],
)
def test_what_drifts_less_is_chosen(ratio, of_levels, of_differences, expected):
    drifts = {"level": of_levels, "difference": of_differences}
    table = Table(8)

    def drift(candidate):
        assert np.isfinite(table.errors[candidate]).sum() >= 3
        return drifts[candidate.output]

    searched(times(ratio), kinds=MODELS[:2], drift=drift, table=table)
    assert set(table.drifts) == set(table.errors)
    kept = close_to_best(table.comparable())
    assert {c.output for c in kept} == {expected}
    error = times(ratio)(kept[0])
    assert_allclose(table.held_out(kept[0]), error)
    total = np.hypot(error, drifts[expected])
    assert_allclose(table.error(kept[0]), np.sqrt(error * total))


def test_of_one_output_the_candidate_that_drifts_less_is_chosen():
    table, _ = searched(times(1.0), drift=lambda c: 0.3 * (c.lag != 20))
    assert {c.lag for c in close_to_best(table.comparable())} == {20}


def test_drift_is_not_asked_for_where_differences_are_not_tried():
    def refuse(candidate):
        raise AssertionError(candidate)

    assert not searched(times(3.1), drift=refuse)[0].drifts
    assert not searched(times(0.1), outputs=("level",), drift=refuse)[0].drifts


@pytest.mark.parametrize("kinds", [MODELS, ("states",)])
def test_drift_is_compared_where_there_are_only_differences(kinds):
    options = {"kinds": kinds, "outputs": ("difference",)}
    table, _ = searched(times(1.0), drift=lambda c: 0.2, **options)
    assert (
        set(table.drifts) == set(table.errors) >= {table.comparable().best_first()[0]}
    )


def test_networks_may_be_of_levels_though_linear_models_are_not():

    def error(candidate):
        better = "level" if candidate.model == "network" else "difference"
        of_network = 1.0 if candidate.model == "network" else 1.1
        return of_network * (0.1 if candidate.output == better else 0.2)

    kept = close_to_best(searched(error, kinds=MODELS[:2])[0].comparable())
    assert {(c.model, c.output) for c in kept} == {("network", "level")}


def test_strengths_go_on_for_the_best_of_each_output():
    best = {"level": 60.0, "difference": 2.0}

    def error(candidate):
        off = abs(np.log((candidate.reg_lambda or 0.1) / best[candidate.output]))
        return 0.1 + 0.02 * off + 0.01 * (candidate.lag != 5)

    found = searched(error, kinds=MODELS[:2])[0].errors
    networks = {(c.output, c.reg_lambda) for c in found if c.model == "network"}
    assert networks >= set(best.items())
    assert ("difference", 60.0) not in networks and ("level", 2.0) not in networks


def test_every_level_needs_a_state():
    two = LIMITS._replace(n_outputs=2)
    _, asked = searched(times(1.0), states=Grid((1, 3)), limits=two)
    states = {(c.n_states, c.output) for c in asked if c.model == "states"}
    assert states >= {(1, "level"), (3, "level"), (3, "difference")}
    assert (1, "difference") not in states
    _, asked = searched(times(1.0))
    assert {c.n_states for c in of_differences(asked) if c.model == "states"} >= {2, 4}


def test_hidden_states_alone_are_told_by_linear_models_as_well():
    table, asked = searched(times(1.1), kinds=("states",))
    assert {c.model for c in table.errors} == {"states"}
    assert {c.model for c in asked} == {"states", "linear"}
    assert {c.output for c in close_to_best(table.comparable())} == {"difference"}
    table, _ = searched(times(3.1), kinds=("states",))
    assert {c.output for c in table.errors} == {"level"}


def test_a_short_search_ends_with_levels():
    """The time is over behind the first fit."""
    table = Table(8)

    def evaluate(pairs):
        if not table.errors:
            table.add(*pairs[0], 0.5)

    space = SearchSpace(LIMITS, kinds=MODELS, outputs=OUTPUTS)
    run_rounds(Comparison(table, evaluate), space)
    assert [c.output for c in close_to_best(table.comparable())] == ["level"]


def tank(n_rows=240, seed=0):
    """A tank without outflow, filled and drained by a pump that saturates."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.uniform(-1.0, 1.0, n_rows // 6), 6)
    level = 3.0 + np.append(0.0, np.cumsum(0.1 * np.tanh(2.0 * u))[:-1])
    return u[:, None], level + 0.01 * rng.standard_normal(n_rows)


@pytest.fixture(scope="module")
def fitted():
    return quietly(estimator((2,), (3.0,), max_cycles=10, cv=4), *tank())


@pytest.mark.slow
def test_a_tank_without_outflow_is_simulated_beyond_its_levels(fitted):
    assert fitted.output == "auto"
    results = fitted.cv_results_
    assert set(results["output"][results["kept"]]) == {"difference"}
    assert all(m.output == "difference" for m in fitted.estimators_)
    assert "for differences" in fitted.summary_
    for seed in range(1, 6):
        u, y = tank(seed=seed)
        path = fitted.predict(u, y_init=y[:3])
        assert np.sqrt(np.mean((path - y) ** 2)) < 0.2 * y.std()
        assert_allclose(fitted.predict(u, y_init=y[:3] + 50.0), path + 50.0)


def test_levels_of_a_system_that_forgets():
    model = quietly(estimator((2,), (3.0,), max_cycles=4), *record())
    assert set(model.cv_results_["output"][2:]) == {"level"}
    asked = quietly(estimator((2,), (3.0,), output="level", max_cycles=4), *record())
    u, y = record(seed=1)
    assert_array_equal(model.predict(u, y_init=y[:2]), asked.predict(u, y_init=y[:2]))


def test_one_step_ahead_there_is_no_drift():
    model = quietly(estimator((2,), (3.0,), focus="prediction", max_cycles=4), *tank())
    assert set(model.cv_results_["output"][2:]) == {"level"}


def test_what_was_chosen_is_used_in_every_way(fitted):
    u, y = tank(seed=9)
    path, std = fitted.predict(u, y_init=y[:3], return_std=True)
    assert (std[3:] > 0.0).all() and np.mean(np.abs(path - y) < 2.0 * std) > 0.5
    stream = fitted.stream(u[:3], y[:3])
    assert_allclose(stream.run(u[3:60]), path[3:60], rtol=1e-8)
    drawn = fitted.sample_y(u, y_init=y[:3], n_samples=200)
    assert_allclose(np.median(drawn, axis=1), path, atol=3.0 * std.max())
    restored = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(restored.predict(u, y_init=y[:3]), path)
    space = fitted.to_state_space()
    state = space.initial_state(u[:3], y[:3])
    assert_allclose(space.simulate(u[3:60], state)[:, 0], path[3:60], rtol=1e-8)


@pytest.mark.slow
def test_hidden_states_of_differences():
    model = DynamicSystemRegressor(
        "states",
        lags=(2,),
        n_states=(2,),
        reg_lambdas=(3.0,),
        hidden_layer_sizes=3,
        cv=3,
        n_estimators=1,
        max_cycles=8,
        random_state=0,
    )
    u, y = tank()
    model = quietly(model, u, y)
    assert [m.output for m in model.estimators_] == ["difference"]
    u, y = tank(seed=3)
    path = model.predict(u, y_init=y[:10])
    assert np.sqrt(np.mean((path - y) ** 2)) < 0.2 * y.std()
    moved = model.predict(u, y_init=y[:10] + 2.0)
    assert_allclose(moved[10:] - 2.0, path[10:], atol=0.05)


def test_names_of_candidates():
    network = Candidate("network", "simulation", 3, 6.0, False, output="difference")
    assert str(network) == (
        "network of lags 1 to 3 for differences, reg_lambda 6 (free-run)"
    )
    kind = 4, "relu", 15, "difference"
    assert str(Candidate("states", "simulation", 0, 5.0, True, *kind)) == (
        "network of 4 hidden states for differences, relu, reg_lambda 5, "
        "up to 15 cycles (free-run)"
    )
