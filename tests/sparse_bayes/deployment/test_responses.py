"""Operating points, linearisation, static gain and responses, and their bands."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from fitted_models import equations_of, fitted_network, replace_fitted
from grids import first_by_default
from lagged_models import TRIED, fit, fit_model
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn.datasets import make_cascaded_tanks
from skbayesnn.exceptions import ExtrapolationWarning
from skbayesnn.sparse_bayes.deployment import operating_points as points
from skbayesnn.sparse_bayes.prediction import posterior

WITH_INPUTS = [one for one in TRIED if one.values != ("autoregression",)]
AT_REST = [one for one in WITH_INPUTS if "difference" not in one.values[0]]


@pytest.fixture(scope="module", params=TRIED)
def space(request):
    return fit_model(request.param).to_state_space()


@pytest.fixture(scope="module")
def simple():
    return fit().to_state_space(sampling_time=0.5)


def variants(model, size=1e-5):
    """Pairs of models, one weight of the first network moved up and down; every third.

    With each comes the model in whose posterior this weight alone is uncertain, with a
    variance of 1: its standard deviations are derivatives.
    """
    network = fitted_network(model).network
    n_kept = int(network.keep.sum())
    places = np.flatnonzero(network.keep)
    for p, place in list(enumerate(places))[::3]:
        moved = []
        for sign in (size, -size):
            theta = network.theta.copy()
            theta[place] += sign
            one = copy.deepcopy(model)
            replace_fitted(one, network=network._replace(theta=theta))
            moved.append(one.to_state_space())
        alone = copy.deepcopy(model)
        replace_fitted(alone, covariance=np.eye(n_kept)[p])
        yield alone.to_state_space(), *moved


def members_of(model):
    """State spaces of each network of a model."""
    return [one.to_state_space() for one in getattr(model, "estimators_", [model])]


# -- points of rest --------------------------------------------------------------------


def test_the_model_rests_there(space):
    if space.is_integrating and len(equations_of(space).steps) > 1:
        pytest.skip("rests nowhere")
    point = space.find_operating_point()
    following, y = space.step(point.x, point.u)
    assert_allclose(following, point.x, atol=1e-7)
    assert_allclose(y, point.y, atol=1e-7)
    simulated = space.simulate(np.tile(point.u, (20, 1)), point.x)
    assert_allclose(simulated, np.tile(point.y, (20, 1)), atol=1e-5)


def test_it_is_where_a_long_run_ends(simple):
    simulated = simple.simulate(np.full((500, 1), 0.4))
    assert_allclose(simple.find_operating_point(u=0.4).y, simulated[-1], atol=1e-7)


@pytest.mark.parametrize("name", ["default", "ensemble", "linear", "other lags"])
def test_inputs_that_give_an_output(name):
    space = fit_model(name).to_state_space()
    wanted = space.find_operating_point(u=0.3)
    found = space.find_operating_point(y=wanted.y)
    assert_allclose(found.u, [0.3], atol=1e-6)
    assert_allclose(found.y, wanted.y, atol=1e-6)


def test_a_stable_point_in_range_is_preferred():
    """Also where the median of the networks has kinks."""
    model = fit(n_estimators=3, activation="relu", hidden_layer_sizes=(6,))
    space = model.to_state_space()
    bands = equations_of(space).bands
    inside = np.linspace(bands.low_inputs[0], bands.high_inputs[0], 9)[1:-1]
    for wanted in space.static_gain(inside).y[:, 0]:
        point = space.find_operating_point(y=wanted)
        assert_allclose(point.y, [wanted], atol=1e-6)
        assert_allclose(space.f(point.x, point.u), point.x, atol=1e-6)
        assert bands.low_inputs[0] <= point.u[0] <= bands.high_inputs[0]
        assert abs(space.linearize(point).poles[0]) < 1.0


def test_some_of_both():
    space = fit_model("two by two").to_state_space()
    wanted = space.find_operating_point(u=[0.2, -0.1])
    found = space.find_operating_point(u=[np.nan, -0.1], y=[np.nan, wanted.y[1]])
    # both inputs enter as their sum: what is found may be another point of rest
    assert_allclose(space.f(found.x, found.u), found.x, atol=1e-6)
    assert found.u[1] == -0.1
    assert_allclose(found.y[1], wanted.y[1], atol=1e-6)


def test_inputs_and_outputs_by_name():
    space = fit_model("two by two").to_state_space()
    mean = space._equations.means[0][0]
    wanted = space.find_operating_point(u=[mean, -0.1])
    # those that are not named have what they have by default
    named = space.find_operating_point(u={"x1": -0.1})
    assert_array_equal(named.u, wanted.u)
    assert_array_equal(named.y, wanted.y)
    both = {"x1": -0.1}, {"y1": wanted.y[1]}
    arrays = [np.nan, -0.1], [np.nan, wanted.y[1]]
    found, same = (space.find_operating_point(*given) for given in (both, arrays))
    assert_array_equal(found.u, same.u)
    responses = [
        space.step_response(20, u=u, amplitude=0.1).mean
        for u in ({"x1": -0.1}, [mean, -0.1])
    ]
    assert_array_equal(*responses)
    gains = [space.static_gain([0.1, 0.2], u=u).y for u in ({"x1": -0.1}, wanted.u)]
    assert_array_equal(*gains)
    with pytest.raises(ValueError, match=r"u must name inputs .*'x1'.*; got 'valve'"):
        space.find_operating_point(u={"valve": 1.0})
    with pytest.raises(ValueError, match="y must hold 1 outputs as numbers"):
        space.find_operating_point(y={"y1": "high"})


def test_an_integrating_model_rests_at_any_level():
    space = fit_model("difference").to_state_space()
    for level in (2.0, 30.0):
        point = space.find_operating_point(y=level)
        assert_array_equal(point.y, [level])
        assert_allclose(space.f(point.x, point.u), point.x, atol=1e-7)
    one, other = (space.find_operating_point(y=y).u for y in (2.0, 30.0))
    assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("fails", [lambda n: True, lambda n: n > 1])
@pytest.mark.parametrize("name", ["default", "ensemble"])
def test_networks_rest_where_their_runs_end(name, fails, monkeypatch):
    """Where Newton's method fails, or only that for all networks at once."""
    space = fit_model(name).to_state_space()
    simulated = space.simulate(np.full((500, 1), 0.4))
    newton = points.root

    def root(function, start, **options):
        if fails(len(start)):
            return SimpleNamespace(x=np.array(start))
        return newton(function, start, **options)

    monkeypatch.setattr(points, "root", root)
    point = space.find_operating_point(u=0.4)
    assert_allclose(point.y, simulated[-1], atol=1e-6)
    assert_allclose(space.f(point.x, point.u), point.x, atol=1e-6)
    assert np.isfinite(space.step_response(3, u=0.4).mean).all()


def test_an_error_says_which_network_does_not_rest(monkeypatch):
    monkeypatch.setattr(points, "N_SETTLING", 2)
    monkeypatch.setattr(
        points, "root", lambda _, start, **options: SimpleNamespace(x=np.array(start))
    )
    space = fit_model("ensemble").to_state_space()
    with pytest.raises(ValueError, match="the free run of network 1 of ") as info:
        space.find_operating_point(u=0.4)
    assert "does not settle in 2 rows" in str(info.value)
    # only values that are outside are called so
    assert "outside the range" not in str(info.value)


def test_errors_of_points(simple):
    with pytest.raises(ValueError, match="as many free inputs"):
        simple.find_operating_point(u=0.0, y=3.0)
    with pytest.raises(ValueError, match="y = 1e\\+06 is outside the range of the"):
        simple.find_operating_point(y=1e6)
    with pytest.raises(ValueError, match="y must hold 1 outputs"):
        simple.find_operating_point(y=[1.0, 2.0])
    members = fit(output="difference", n_estimators=2).to_state_space()
    with pytest.raises(ValueError, match="estimators_"):
        members.find_operating_point()
    integrating = fit_model("difference").to_state_space()
    with pytest.raises(ValueError, match="outputs of an integrating model"):
        integrating.find_operating_point(u=1.0)
    with pytest.raises(ValueError, match="no static gain"):
        integrating.static_gain([1.0])
    with pytest.raises(ValueError, match="no static gain"):
        _ = integrating.linearize().static_gain


def test_a_point_outside_the_training_record(simple):
    with pytest.warns(ExtrapolationWarning, match="x0 of the operating point is 9"):
        simple.find_operating_point(u=9.0)


def test_a_point_between_two_levels():
    rng = np.random.default_rng(0)
    u = np.repeat(rng.choice([0.0, 1.0], 30), 10)[:, None]
    y = np.convolve(u[:, 0], [0.0, 0.5, 0.3, 0.2])[:300]
    model = SparseBayesNARXRegressor(2, 1, hidden_layer_sizes=(2,), random_state=0)
    space = model.fit(u, y + 0.01 * rng.standard_normal(300)).to_state_space()
    space.find_operating_point(u=1.0)
    message = "x0 of the operating point is 0.4, and .* has no value between 0 and 1"
    with pytest.warns(ExtrapolationWarning, match=message):
        space.find_operating_point(u=0.4)


# -- linearisation ---------------------------------------------------------------------


def test_the_linear_model_is_tangent(space):
    x, u = space.initial_state(), equations_of(space).means[0] + 0.1
    linear = space.linearize(x=x, u=u)
    matrices = linear.A, linear.B, linear.C, linear.D
    for ours, expected in zip(matrices, space.jacobians(x, u), strict=True):
        assert_array_equal(ours, expected)
    for ours, std in zip(matrices, linear.std, strict=True):
        assert ours.shape == std.shape and (std >= 0.0).all()
    assert_array_equal(linear.point.y, space.g(x, u))
    magnitudes = np.abs(linear.poles)
    assert (np.diff(magnitudes) <= 0.0).all()
    # entries of a delay line are certain
    assert_array_equal(linear.A_std[(linear.A == 1.0) & (linear.A_std == 0.0)], 0.0)


@pytest.mark.parametrize("name", ["default", "two by two", "difference", "deep relu"])
def test_standard_errors_are_derivatives_by_the_weights(name):
    model = fit_model(name)
    x = model.to_state_space().initial_state() + 0.05
    u = equations_of(model.to_state_space()).means[0]
    n_checked = 0
    for alone, up, down in variants(model):
        for std, above, below in zip(
            alone.linearize(x=x, u=u).std,
            up.jacobians(x, u),
            down.jacobians(x, u),
            strict=True,
        ):
            assert_allclose(std, np.abs(above - below) / 2e-5, rtol=1e-4, atol=1e-8)
            n_checked += np.count_nonzero(std)
    assert n_checked > 5


def test_the_static_gain_of_the_linear_model(simple):
    point = simple.find_operating_point(u=0.3)
    above, below = (simple.find_operating_point(u=u).y for u in (0.3001, 0.2999))
    gain = simple.linearize(point).static_gain
    assert_allclose(gain[:, 0], (above - below) / 2e-4, rtol=1e-5)
    assert_allclose(simple.static_gain([0.3]).slope[0], gain[:, 0], rtol=1e-8)


def test_it_goes_to_python_control(simple):
    control = pytest.importorskip("control")
    linear = simple.linearize()
    system = linear.to_control()
    assert system.dt == 0.5 and system.state_labels == simple.state_names
    assert_allclose(system.dcgain(), linear.static_gain[0, 0], rtol=1e-8)
    assert_allclose(np.sort(np.abs(system.poles())), np.sort(np.abs(linear.poles)))
    time, levels = control.step_response(system, np.arange(20) * 0.5)
    small = simple.step_response(20, amplitude=1e-6)
    assert_allclose(levels.ravel(), small.mean[:, 0] * 1e6, rtol=1e-4)


# -- responses -------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_INPUTS)
def test_a_response_is_a_difference_of_runs(name):
    model = fit_model(name)
    space = model.to_state_space()
    u = equations_of(space).means[0]
    if space.is_integrating:
        u = space.find_operating_point().u
    moved = np.tile(u, (15, 1))
    moved[:, 0] += 0.4
    response = space.step_response(15, amplitude=0.4)
    assert_array_equal(response.time, np.arange(15))
    runs = []
    for one in members_of(model):
        given = {} if space.is_integrating else {"u": u}
        start = one.find_operating_point(**given)
        runs.append(one.simulate(moved, start.x) - start.y)
    picks = [equations_of(space).picks(Y) for Y in np.swapaxes(runs, 0, 1)]
    expected = np.einsum("tmo,mto->to", picks, runs)
    assert_allclose(response.mean, expected, atol=1e-6)
    assert response.std.shape == (15, space.n_outputs)
    impulse = space.impulse_response(15, amplitude=0.4)
    assert_allclose(impulse.mean[0], response.mean[0])
    assert impulse.std.shape == response.std.shape


@pytest.mark.parametrize(
    "name", first_by_default(["default", "holes", "two by two", "logistic"], 2)
)
def test_bands_are_derivatives_by_the_weights(name):
    """Other weights rest elsewhere, and their responses start from there."""
    model = fit_model("logistic, not scaled" if name == "logistic" else name)
    options = {"n_steps": 8, "amplitude": 0.5}
    values = [-0.2, 0.4]
    n_checked = 0
    for alone, up, down in variants(model):
        above, below = (one.step_response(**options).mean for one in (up, down))
        std = alone.step_response(**options).std
        assert_allclose(std, np.abs(above - below) / 2e-5, rtol=1e-3, atol=1e-6)
        above, below = (one.static_gain(values).y for one in (up, down))
        std = alone.static_gain(values).std
        assert_allclose(std, np.abs(above - below) / 2e-5, rtol=1e-3, atol=1e-6)
        n_checked += np.count_nonzero(std)
    assert n_checked > 5


def test_bands_of_an_integrating_model():
    model = fit_model("difference")
    u = model.to_state_space().find_operating_point().u
    options = {"n_steps": 8, "u": u, "y": 3.0}
    for alone, up, down in variants(model):
        above, below = (one.step_response(**options).mean for one in (up, down))
        std = alone.step_response(**options).std
        assert_allclose(std, np.abs(above - below) / 2e-5, rtol=1e-3, atol=1e-6)


def test_an_ensemble_is_a_mixture():
    model = fit_model("ensemble")
    space = model.to_state_space()
    parts = [one.step_response(10) for one in members_of(model)]
    means, stds = (np.array([part[k] for part in parts]) for k in (1, 2))
    whole = space.step_response(10)
    assert_allclose(whole.mean, np.median(means, axis=0))
    spread = (stds**2 + (means - whole.mean) ** 2).mean(axis=0)
    assert_allclose(whole.std, np.sqrt(spread))


def test_inputs_by_name(simple):
    by_name = simple.step_response(5, input="x0")
    assert_array_equal(by_name.mean, simple.step_response(5).mean)
    assert_array_equal(by_name.time, 0.5 * np.arange(5))
    for wrong in ("x1", 1, -1, None):
        with pytest.raises(ValueError, match="input must be a number below 1"):
            simple.step_response(5, input=wrong)
    with pytest.raises(ValueError, match="n_steps must be"):
        simple.step_response(0)


@pytest.mark.parametrize(
    "amplitude, found",
    [
        ([5, 0], "2 values"),
        ([], "0 values"),
        ("5", "'5'"),
        (None, "None"),
        (np.nan, "nan"),
    ],
)
def test_an_amplitude_is_one_number(simple, amplitude, found):
    problem = f"amplitude must be one number, the change of the input x0; got {found}."
    for call in (simple.step_response, simple.impulse_response):
        with pytest.raises(ValueError, match=problem):
            call(5, amplitude=amplitude)


def test_the_static_gain_of_an_ensemble():
    space = fit_model("other lags").to_state_space()
    values = np.array([-0.3, 0.1, 0.5])
    gain = space.static_gain(values)
    for value, y in zip(values, gain.y, strict=True):
        assert_allclose(space.find_operating_point(u=value).y, y, atol=1e-6)
    assert (gain.std > 0.0).all() and gain.slope.shape == (3, 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("focus, scale", [("prediction", 1.0), ("simulation", 0.1)])
def test_bands_against_draws_of_the_posterior(focus, scale):
    """On the tanks; a draw takes the network linearised in its weights.

    It starts at its own rest, and what is fed back goes through the nonlinear network.
    The posterior of a network that was fitted to free runs is linear in the whole
    path: the draws are scaled down until they are, too.
    """
    u, y = make_cascaded_tanks(return_X_y=True, random_state=0)
    model = SparseBayesNARXRegressor(5, 5, focus=focus, random_state=0).fit(u, y)
    space, n_draws, rows, amplitude = model.to_state_space(), 200, 60, 0.2
    (step,), start = equations_of(space).steps, space.find_operating_point()
    rng = np.random.default_rng(0)
    deviations = posterior.weight_deviations(fitted_network(model), n_draws, rng)
    deviations *= scale
    inputs = np.tile(start.u, (400 + rows, 1))
    inputs[400:] += amplitude
    drawn = np.empty((n_draws, len(inputs)))
    for draw, deviation in zip(drawn, deviations, strict=True):
        x = start.x
        for t, now in enumerate(inputs):
            v = np.concatenate([x, now])
            outputs = step.forward(v) + step.by_weights(v) @ deviation
            draw[t] = outputs[0]
            x = np.concatenate([v, outputs])[equations_of(space).source]
    drawn = drawn[:, 400:] - drawn[:, 399:400]
    response = space.step_response(rows, amplitude=amplitude)
    deviation = (drawn - response.mean[:, 0])[:, 5:] / response.std[5:, 0] / scale
    # five standard errors of 0.954, as the rows of a draw go together
    assert np.abs((np.abs(deviation) < 2.0).mean() - 0.954) < 5.0 * 0.015
    low, high = np.quantile(deviation, [0.1587, 0.8413], axis=0)
    assert_allclose((high - low) / 2.0, 1.0, atol=5.0 / np.sqrt(2 * n_draws))


def test_two_outputs_have_two_columns():
    space = fit_model("two by two").to_state_space()
    assert space.static_gain([0.0, 0.1], input=1).y.shape == (2, 2)
    assert space.impulse_response(4, input="x1").mean.shape == (4, 2)


def test_other_than_numbers_of_one_input_are_refused(simple):
    with pytest.raises(ValueError, match="values must be those of one input"):
        simple.static_gain([[0.1, 0.2], [0.3, 0.4]])
    with pytest.raises(ValueError, match="u must hold 1 inputs as numbers.*got 'x0'"):
        simple.find_operating_point(u="x0")
