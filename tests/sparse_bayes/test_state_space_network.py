"""The state-space regressor: systems that are known, its arguments, its attributes."""

import re
from collections import namedtuple

import numpy as np
import pytest
import state_space_cases as cases
from numpy.testing import assert_array_equal
from sklearn.metrics import r2_score

from skbayesnn import SparseBayesStateSpaceRegressor
from skbayesnn.datasets import make_coupled_drives
from skbayesnn.exceptions import DivergenceWarning, ExtrapolationWarning
from skbayesnn.sparse_bayes import state_space_network
from skbayesnn.sparse_bayes.learning import (
    order_search,
    restarts,
    state_space_problem,
)
from skbayesnn.sparse_bayes.learning.realization import realize
from skbayesnn.sparse_bayes.learning.result import Fit
from skbayesnn.sparse_bayes.prediction import state_forecast


def linear(**options):
    options = {"hidden_layer_sizes": (), "n_restarts": 1, "reg_lambda": 1.0, **options}
    return SparseBayesStateSpaceRegressor(2, random_state=0, **options)


@pytest.fixture(scope="module")
def sessions():
    return cases.records(noise=0.05)


@pytest.fixture(scope="module")
def model(sessions):
    U, y, number, _ = sessions
    return linear().fit(U, y, sessions=number)


def test_a_linear_system_is_found(model):
    found = np.linalg.eigvals(model.state_matrix_)
    expected = np.linalg.eigvals(cases.A)
    np.testing.assert_allclose(
        np.sort_complex(found), np.sort_complex(expected), atol=0.02
    )
    assert model.noise_variance_ == pytest.approx(0.05**2, rel=0.3)
    assert model.order_ == 2


@pytest.mark.parametrize("output", ["level", "difference"])
@pytest.mark.filterwarnings("ignore:.*still falling")
def test_a_fragment_does_not_shorten_the_linear_model(monkeypatch, output):
    """A missing input near the start of a record leaves one, for example."""
    found = []

    def spy(*arguments):
        found.append(realize(*arguments))
        return found[-1]

    monkeypatch.setattr(state_space_problem, "realize", spy)
    U, y, _, _ = cases.records((300,), noise=0.05)
    if output == "difference":
        y = np.cumsum(y)
    network = SparseBayesStateSpaceRegressor(
        3, output=output, hidden_layer_sizes=(), n_restarts=1, max_cycles=1
    )
    gap = U.copy()
    gap[2] = np.nan
    for inputs in (U[3:], gap):
        network.fit(inputs, y[-len(inputs) :])
    whole, fragment = (np.sort_complex(np.linalg.eigvals(one.A)) for one in found)
    np.testing.assert_allclose(fragment, whole, atol=1e-3)


def test_simulation_from_a_few_outputs(model):
    U, y, _, _ = cases.records((100,), seed=7)
    simulated, std = model.predict(U, y_init=y[:8], return_std=True)
    np.testing.assert_array_equal(simulated[:8], y[:8])
    assert (std[:8] == 0.0).all()
    # the noise of the training record is in the weights alone
    assert np.sqrt(np.mean((simulated - y)[8:] ** 2)) < 0.05
    assert std[8:].min() >= np.sqrt(model.noise_variance_)
    np.testing.assert_array_equal(model.predict(U, y_init=y[:8]), simulated)


def test_a_missing_initial_output_is_predicted(model):
    U, y, _, _ = cases.records((60,), seed=7)
    known = y[:8].copy()
    known[2] = np.nan
    simulated, std = model.predict(U, y_init=known, return_std=True)
    assert abs(simulated[2] - y[2]) < 0.2
    assert std[2] > 0.0
    np.testing.assert_array_equal(np.delete(simulated[:8], 2), np.delete(y[:8], 2))


def test_every_session_starts_anew(model, sessions):
    U, _, number, _ = sessions
    together, wide = model.predict(U, sessions=number, return_std=True)
    for one in (0, 1):
        alone, std = model.predict(U[number == one], return_std=True)
        np.testing.assert_allclose(together[number == one], alone)
        np.testing.assert_allclose(wide[number == one], std)


def test_score_is_that_of_free_runs_behind_the_initialisation(model):
    U, y, number, _ = cases.records((40, 30), noise=0.1, seed=5)
    y[12] = np.nan
    kept, predicted = [], []
    for one in (0, 1):
        mine = y[number == one]
        path = model.predict(U[number == one], y_init=mine[:8])
        rows = np.flatnonzero(np.isfinite(mine) & (np.arange(len(mine)) >= 8))
        kept.append(mine[rows])
        predicted.append(path[rows])
    expected = r2_score(np.concatenate(kept), np.concatenate(predicted))
    assert model.score(U, y, sessions=number) == pytest.approx(expected)
    only_last = np.zeros(len(y))
    only_last[-10:] = 1.0
    last = model.score(U, y, only_last, sessions=number)
    assert last == pytest.approx(r2_score(kept[1][-10:], predicted[1][-10:]))


def test_missing_outputs(sessions):
    U, y, number, _ = sessions
    rng = np.random.default_rng(0)
    gaps = np.where(rng.uniform(size=len(y)) < 0.3, np.nan, y)
    model = linear().fit(U, gaps, sessions=number)
    U, y, _, _ = cases.records((100,), seed=7)
    simulated = model.predict(U, y_init=y[:8])
    assert np.sqrt(np.mean((simulated - y)[8:] ** 2)) < 0.1


def test_several_outputs_and_their_scales():
    U, y, number, _ = cases.records(noise=0.02)
    other = np.concatenate([np.zeros(1), y[:-1]])
    Y = np.column_stack([y, 100.0 + 50.0 * other])
    model = linear(reg_lambda=1.0).set_params(n_states=3).fit(U, Y, sessions=number)
    U, y, _, _ = cases.records((100,), seed=7)
    truth = np.column_stack([y[1:], 100.0 + 50.0 * y[:-1]])
    simulated = model.predict(U[1:], y_init=truth[:10])
    assert simulated.shape == (99, 2)
    error = np.sqrt(np.mean((simulated - truth)[10:] ** 2, axis=0))
    assert error[0] < 0.2
    assert error[1] < 10.0
    assert model.output_matrix_.shape == model.feedthrough_matrix_.shape[:1] + (3,)


def test_gross_errors_count_little(sessions):
    U, y, number, _ = sessions
    y = y.copy()
    y[10::17] += 20.0
    robust = linear(noise="student_t").fit(U, y, sessions=number)
    plain = linear().fit(U, y, sessions=number)
    U, y, _, _ = cases.records((100,), seed=7)
    errors = [
        np.mean((m.predict(U, y_init=y[:8]) - y)[8:] ** 2) for m in (robust, plain)
    ]
    assert errors[0] < 0.1 * errors[1]
    assert robust.degrees_of_freedom_ < 10.0


@pytest.mark.parametrize(
    "horizon",
    [
        pytest.param(1, marks=pytest.mark.slow),
        3,
        pytest.param(None, marks=pytest.mark.slow),
    ],
)
def test_bands_do_not_depend_on_the_blocks_of_rows(
    monkeypatch, model, sessions, horizon
):
    """Derivatives of many rows are never kept at once."""
    U, y, number, _ = sessions
    y = np.where(np.arange(len(y)) % 17 == 5, np.nan, y)
    arguments = dict(y=y, horizon=horizon, sessions=number)

    def found():
        drawn = model.sample_y(U, n_samples=3, random_state=0, **arguments)
        return *model.predict(U, return_std=True, **arguments), drawn

    whole = found()
    for n_bytes in (1, 1000):
        monkeypatch.setattr(state_forecast, "BLOCK_BYTES", n_bytes)
        for one, other in zip(found(), whole, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_ensemble_predicts_the_median_of_its_networks():
    u, y = make_coupled_drives(80, return_X_y=True, random_state=0)
    model = SparseBayesStateSpaceRegressor(
        2, hidden_layer_sizes=2, n_estimators=3, max_cycles=2, random_state=0
    ).fit(u, y)
    # out of the range of the record bands grow with the distance of each run
    anywhere = dict(low_outputs=np.full(1, -np.inf), high_outputs=np.full(1, np.inf))
    for one in (model, *model.estimators_):
        bands = one._model.bands._replace(**anywhere)
        one._model = one._model._replace(bands=bands)
    together, std = model.predict(u, y_init=y[:5], return_std=True)
    means, variances = [], []
    for member in model.estimators_:
        mean, own = member.predict(u, y_init=y[:5], return_std=True)
        means.append(mean)
        variances.append(own**2)
        assert member.order_ <= 2
    np.testing.assert_allclose(model.estimator_weights_, np.full(3, 1.0 / 3.0))
    assert model.order_ == model.estimators_[0].order_
    assert np.std(means, axis=0).max() > 0.01
    np.testing.assert_allclose(together, np.median(means, axis=0))
    spread = np.mean((means - together) ** 2, axis=0)
    np.testing.assert_allclose(std**2, np.mean(variances, axis=0) + spread)


def test_both_activations_are_tried():
    rng = np.random.default_rng(0)
    u, x = rng.standard_normal((150, 1)), np.zeros(150)
    for t in range(149):
        x[t + 1] = 0.8 * x[t] + 0.6 * u[t, 0]
    noise = 0.02 * rng.standard_normal(150)
    model = SparseBayesStateSpaceRegressor(
        1, hidden_layer_sizes=4, n_restarts=4, random_state=0
    )
    for y, activation in ((np.abs(x), "relu"), (np.tanh(x), "tanh")):
        assert model.fit(u, y + noise).activation_ == activation


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("n_restarts", "n_estimators", "expected"), [(12, 1, 3), (6, 3, 3)]
)
def test_the_better_starts_go_on(monkeypatch, n_restarts, n_estimators, expected):
    """Those with the best objectives behind the first stage."""
    first, gone_on, run = [], [], restarts.run_start

    def watched(problem, seed, before, n_stages):
        done = run(problem, seed, before, n_stages)
        if before is None:
            first.append(done.state.objective)
        else:
            gone_on.append(before.state.objective)
            assert done.history[: len(before.history)] == before.history
        return done

    monkeypatch.setattr(restarts, "run_start", watched)
    u, y = make_coupled_drives(60, return_X_y=True, random_state=0)
    SparseBayesStateSpaceRegressor(
        2,
        hidden_layer_sizes=2,
        n_restarts=n_restarts,
        n_estimators=n_estimators,
        max_cycles=2,
        random_state=0,
    ).fit(u, y)
    # fits with fewer states follow
    del first[n_restarts:], gone_on[expected:]
    assert sorted(gone_on) == sorted(first)[:expected]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_of_several_restarts_the_best_objective_is_kept():
    u, y = make_coupled_drives(80, return_X_y=True, random_state=0)
    options = {"hidden_layer_sizes": 2, "max_cycles": 3, "random_state": 0}
    objectives = [
        SparseBayesStateSpaceRegressor(2, n_restarts=n, **options)
        .fit(u, y)
        .history_["objective_pruned"][-1]
        for n in (1, 4)
    ]
    assert objectives[1] <= objectives[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_starts_that_do_not_predict_their_own_record_are_left_out(monkeypatch):
    """The best of the others is kept; if none predicts, the best of all."""
    u, y = make_coupled_drives(80, return_X_y=True, random_state=0)
    tried = []

    def best(is_model):
        """The objective that is kept."""

        def predicts(_, state):
            tried.append(state.objective)
            return is_model(state.objective)

        monkeypatch.setattr(state_space_network, "predicts", predicts)
        model = SparseBayesStateSpaceRegressor(
            1, hidden_layer_sizes=2, n_restarts=3, max_cycles=3, random_state=0
        )
        return model.fit(u, y).history_["objective_pruned"][-1]

    first = best(lambda objective: True)
    objectives = sorted(set(tried))
    assert len(objectives) > 1 and first == objectives[0]
    assert best(lambda objective: objective > first) == objectives[1]
    assert best(lambda objective: False) == first


@pytest.mark.parametrize(
    ("fewer", "more", "chosen"),
    [(True, True, True), (True, False, True), (False, True, False)],
)
def test_fewer_states_are_no_better_if_they_predict_nothing(fewer, more, chosen):
    """And always better than others that predict nothing."""
    network = namedtuple("Network", "diverged")(False)
    fits = [Fit((network,), 0, False, predicts) for predicts in (fewer, more)]
    costs = iter([1.0, 2.0] if fewer == more else [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_search, "_cost", lambda *_: next(costs))
        assert order_search._is_better(None, *fits) is chosen


@pytest.mark.slow
def test_states_that_the_outputs_do_not_need_are_pruned():
    """Five states are offered to a system of two."""
    U, y, number, _ = cases.records((200, 200), noise=0.05)
    model = linear(hidden_layer_sizes=3, reg_lambda=5.0, n_restarts=2)
    model.set_params(n_states=5).fit(U, y, sessions=number)
    assert model.order_ == 2
    modulus = np.sort(np.abs(np.linalg.eigvals(model.state_matrix_)))
    expected = np.abs(np.linalg.eigvals(cases.A))
    np.testing.assert_allclose(modulus[-2:], np.sort(expected), atol=0.02)
    np.testing.assert_allclose(modulus[:-2], 0.0, atol=0.05)


@pytest.mark.slow
def test_the_networks_of_an_ensemble_have_no_more_states_than_needed():
    """Four states are offered to a system of two."""
    U, y, number, _ = cases.records((200, 200), noise=0.05)
    model = linear(hidden_layer_sizes=3, reg_lambda=5.0, n_restarts=4, n_estimators=3)
    model.set_params(n_states=4).fit(U, y, sessions=number)
    assert [member.order_ for member in model.estimators_] == [2, 2, 2]


def servo(n_rows, seed, step=1.0, rows_per_input=1):
    """A position that follows a force: speed forgets it, position does not."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((n_rows // rows_per_input + 1, 1))
    u = np.repeat(u, rows_per_input, axis=0)[:n_rows]
    position, speed, y = 5.0, 0.0, np.zeros(n_rows)
    for t in range(n_rows):
        y[t] = position
        force = u[t, 0] - np.tanh(3.0 * speed)
        position, speed = position + step * speed, speed + 0.3 * step * force
    return u, y


def test_differences_of_an_integrating_system_are_summed_up():
    u, y = servo(300, 0)
    noise = 0.02 * np.random.default_rng(1).standard_normal(300)
    model = SparseBayesStateSpaceRegressor(
        2, hidden_layer_sizes=3, output="difference", n_restarts=2, random_state=0
    ).fit(u, y + noise)
    np.testing.assert_array_equal(model.state_matrix_[:, 0], [1.0, 0.0])
    assert model.order_ == 2
    u, y = servo(200, 2)
    # the level is that of the first outputs, however far from those of the record
    bands = []
    for offset in (0.0, 30.0):
        simulated, std = model.predict(u, y_init=y[:8] + offset, return_std=True)
        assert np.std((simulated - y)[8:]) < 0.1 * y.std()
        bands.append(std[8:])
    # nor does it make them wider
    np.testing.assert_allclose(*bands, rtol=1e-3)


def test_differences_need_a_state_for_each_level():
    U, y, _, _ = cases.records((80,))
    model = linear(output="difference").set_params(n_states=1)
    message = "output='difference' needs a state for the level of each output"
    with pytest.raises(ValueError, match=message):
        model.fit(U, np.column_stack([y, y]))


@pytest.mark.slow
def test_dense_rows_are_fitted_by_a_fraction_of_them_first():
    """A servo sampled a hundred times as fast; weights of a step would be tiny."""
    u, y = servo(4000, 0, step=0.02, rows_per_input=50)
    noise = 1e-4 * np.random.default_rng(1).standard_normal(len(y))
    model = SparseBayesStateSpaceRegressor(
        2, hidden_layer_sizes=3, output="difference", n_restarts=2, random_state=0
    ).fit(u, y + noise)
    np.testing.assert_array_equal(model.state_matrix_[:, 0], [1.0, 0.0])
    assert np.abs(model.input_matrix_).max() < 0.1
    u, y = servo(2000, 2, step=0.02, rows_per_input=50)
    simulated, std = model.predict(u, y_init=y[:100], return_std=True)
    assert np.std((simulated - y)[100:]) < 0.1 * y.std()
    assert (std[100:] > 0.0).all()


def test_far_inputs_diverge_with_a_warning(model):
    U, y, _, _ = cases.records((50,), seed=7)
    U[20] = 1e6
    with (
        pytest.warns(ExtrapolationWarning),
        pytest.warns(DivergenceWarning, match="30 predicted rows diverged"),
    ):
        simulated = model.predict(U)
    assert np.isfinite(simulated[:20]).all()
    assert np.isnan(simulated[20:]).all()
    assert model.score(U, y) == -np.inf


def test_bands_grow_outside_the_range_of_the_inputs(model):
    U, _, _, _ = cases.records((50,), seed=7)
    _, inside = model.predict(U, return_std=True)
    U[20] = 10.0
    with pytest.warns(ExtrapolationWarning, match="Input x0 is outside"):
        _, outside = model.predict(U, return_std=True)
    np.testing.assert_array_equal(inside[:20], outside[:20])
    assert outside[20] > 2.0 * inside[20]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            dict(y_init=np.zeros(81)),
            "at least one row and at most the 80 rows of X; got",
        ),
        (dict(y_init=np.zeros((5, 2))), "y_init must hold 1 outputs"),
        (
            dict(y_init=np.zeros(3), sessions=np.repeat([0, 1], 40)),
            "y_init starts one session, but sessions names 2",
        ),
        (dict(sessions=np.zeros(3)), "sessions must hold one id per row"),
    ],
)
def test_bad_arguments_of_predict(model, arguments, message):
    U, _, _, _ = cases.records((80,))
    with pytest.raises(ValueError, match=re.escape(message)):
        model.predict(U, **arguments)


def test_bad_arguments_of_score(model):
    U, y, _, _ = cases.records((8,))
    with pytest.raises(ValueError, match="y holds no row to score"):
        model.score(U, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(n_states=0), "'n_states' parameter"),
        (dict(linear_lags=0), "'linear_lags' parameter"),
        (dict(reg_lambda=[1.0, 2.0]), "reg_lambda must be a number or one number"),
        (dict(groups=["state"]), "groups must be one of"),
    ],
)
def test_bad_parameters(parameters, message):
    U, y, _, _ = cases.records((80,))
    parameters = {"hidden_layer_sizes": 3, **parameters}
    model = SparseBayesStateSpaceRegressor(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(U, y)


def test_a_session_of_one_row_tells_nothing():
    """As a row between missing ones."""
    U, y, _, _ = cases.records((80,))
    sessions = np.r_[np.zeros(50), 1, np.full(29, 2)]
    model = linear().fit(U, y, sessions=sessions)
    alone = sessions == 1
    others = linear().fit(U[~alone], y[~alone], sessions=sessions[~alone])
    assert_array_equal(model.predict(U, y_init=y[:9]), others.predict(U, y_init=y[:9]))


def test_bad_records():
    U, y, _, _ = cases.records((80,))
    with pytest.raises(ValueError, match="requires y to be passed"):
        linear().fit(U, None)
    with pytest.raises(ValueError, match="must hold at least one value"):
        linear().fit(U, np.full(80, np.nan))
    alone = np.where(np.arange(80) % 2, np.nan, U[:, 0])[:, None]
    with pytest.raises(ValueError, match="in two rows one behind the other"):
        linear().fit(alone, y)


@pytest.mark.slow
def test_drives_whose_sign_is_hidden():
    """A quarter of the error of networks on lags, median 0.14; the noise is 0.03."""
    errors, orders = [], []
    for seed in range(5):
        drives = make_coupled_drives(random_state=seed)
        test = drives.tests.test
        model = SparseBayesStateSpaceRegressor(random_state=0)
        model.fit(drives.data, drives.target)
        simulated, std = model.predict(
            test.data, y_init=test.target[:10], return_std=True
        )
        error = (simulated - test.target)[10:]
        errors.append(np.sqrt(np.mean(error**2)))
        orders.append(model.order_)
        assert 0.85 < np.mean(np.abs(error) < 1.96 * std[10:]) <= 1.0
    assert max(errors) < 0.04
    assert orders.count(3) >= 3


def growing_batches(n_batches, seed):
    """Inputs, outputs and batches of 40 rows: cells that grow on what is fed.

    What is left of the food is not measured, and too much of it slows them.
    """
    rng, rows = np.random.default_rng(seed), []
    for batch in range(n_batches):
        cells, food = rng.uniform(0.2, 0.6), rng.uniform(5.0, 12.0)
        for row in range(40):
            if row % 8 == 0:
                feed = rng.uniform(0.0, 0.6)
            for _ in range(5):
                growth = 0.5 * food / (1.5 + food + food**2 / 30.0) * cells
                cells += 0.1 * (growth - 0.03 * cells)
                food = max(food + 0.1 * (feed - 2.0 * growth), 0.0)
            measured = cells * (1.0 + 0.02 * rng.standard_normal())
            rows.append((feed, measured, batch))
    u, y, batch = np.array(rows).T
    return u[:, None], y, batch


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_short_batches_are_predicted_from_their_first_rows(seed):
    """The best objective explains each batch by a start that no rows tell."""
    u, y, batch = growing_batches(6, seed=0)
    model = SparseBayesStateSpaceRegressor(random_state=seed)
    model.fit(u, y, sessions=batch)
    errors = [
        (model.predict(u[rows], y_init=y[rows][:16]) - y[rows])[16:]
        for rows in (batch == number for number in range(6))
    ]
    assert np.sqrt(np.mean(np.square(errors))) < 0.5 * np.std(y)
