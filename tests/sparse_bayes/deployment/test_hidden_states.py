"""Models with hidden states as a state space: equations, rest, responses, ONNX."""

import numpy as np
import pytest
import state_space_cases as cases
from complex_steps import assert_jacobians_are_exact
from onnx_runs import assert_graph_is_the_model
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesStateSpaceRegressor
from skbayesnn.datasets import make_coupled_drives

U, Y, SESSION, _ = cases.records((150, 60), noise=0.02)


@pytest.fixture(scope="module")
def linear():
    model = SparseBayesStateSpaceRegressor(
        2, hidden_layer_sizes=(), n_restarts=1, reg_lambda=1.0, random_state=0
    )
    return model.fit(U, Y, sessions=SESSION)


@pytest.fixture(scope="module", params=[1, 3])
def network(request):
    """Of drives, whose output is an even function of a state."""
    u, y = make_coupled_drives(80, return_X_y=True, random_state=0)
    model = SparseBayesStateSpaceRegressor(
        3,
        hidden_layer_sizes=3,
        n_estimators=request.param,
        n_restarts=1,
        max_cycles=5,
        random_state=0,
    )
    with pytest.warns(ConvergenceWarning):
        return model.fit(u, y), u, y


def test_a_simulation_is_the_free_run(network):
    model, u, y = network
    space = model.to_state_space()
    assert space.n_outputs == 1 and space.n_states <= 3 * len(space.state_names)
    x = space.initial_state(u[:20], y[:20])
    expected = model.predict(u, y_init=y[:20])[20:]
    np.testing.assert_allclose(space.simulate(u[20:], x)[:, 0], expected)
    _, state = model.predict(u[:20], y_init=y[:20], return_state=True)
    np.testing.assert_allclose(space.initial_state(state=state), x)
    np.testing.assert_allclose(
        space.simulate(u)[:, 0], model.predict(u), rtol=1e-10, atol=1e-12
    )


def slow_integrator(n_rows=300, step=0.02):
    """A dense record: outputs move little from row to row."""
    rng = np.random.default_rng(0)
    u = np.repeat(rng.uniform(-1.0, 1.0, n_rows // 50), 50)[:, None]
    speed, y = 0.0, np.zeros(n_rows)
    for t in range(1, n_rows):
        speed += step * (u[t - 1, 0] - np.tanh(speed))
        y[t] = y[t - 1] + step * speed
    return u, y


@pytest.fixture(scope="module")
def integrator():
    """Its first state sums up differences of the output."""
    u, y = slow_integrator()
    model = SparseBayesStateSpaceRegressor(
        2,
        hidden_layer_sizes=2,
        output="difference",
        n_restarts=1,
        n_estimators=2,
        max_cycles=15,
        random_state=0,
    )
    with pytest.warns(ConvergenceWarning):
        return model.fit(u, y)


def test_weights_that_hold_a_state_are_exported(integrator):
    """They are no parameters of the fit, where levels are summed or rows are dense."""
    u, y = slow_integrator()
    fitted = integrator._model.ensemble.members[0].fitted.network
    assert fitted.theta[~fitted.keep].any()
    space = integrator.to_state_space()
    x = space.initial_state(u[:20], y[:20])
    expected = integrator.predict(u, y_init=y[:20])[20:]
    np.testing.assert_allclose(space.simulate(u[20:], x)[:, 0], expected)
    # as many as the posterior of the weights is about
    for network, _ in integrator._equations().ensemble.members:
        n_kept = np.count_nonzero(network.network.keep)
        assert network.covariance.shape == (n_kept, n_kept)


def test_an_integrating_model_rests_at_any_level(integrator):
    space = integrator.estimators_[0].to_state_space()
    assert space.is_integrating
    inputs = []
    for y in (None, 0.3, -0.2):
        point = space.find_operating_point(y=y)
        np.testing.assert_allclose(space.f(point.x, point.u), point.x, atol=1e-10)
        level = slow_integrator()[1].mean() if y is None else y
        np.testing.assert_allclose(point.y, level)
        inputs.append(point.u)
    np.testing.assert_allclose(inputs, [inputs[0]] * 3, atol=1e-10)
    poles = np.linalg.eigvals(space.linearize().A)
    assert np.abs(poles - 1.0).min() < 1e-12
    with pytest.raises(ValueError, match="integrating model has no static gain"):
        space.static_gain([0.0])


@pytest.mark.parametrize("u", [pytest.param(None, marks=pytest.mark.slow), 0.3])
def test_responses_of_an_integrating_model(integrator, u):
    """From rest, or from where the level alone moves."""
    space = integrator.estimators_[0].to_state_space()
    response = space.step_response(30, u=u, y=0.1, amplitude=0.5)
    before = space.find_operating_point(y=0.1).u if u is None else np.array([u])
    x = space.find_operating_point(y=0.1).x
    for _ in range(2000):
        # all but the level settle
        x = np.append(x[0], space.f(x, before)[1:])
    x[0] += (0.1 - space.g(x, before)[0]) / space.jacobians(x, before)[2][0, 0]
    rows = np.tile(before, (30, 1))
    expected = space.simulate(rows + 0.5, x) - space.simulate(rows, x)
    np.testing.assert_allclose(response.mean, expected, atol=1e-10)
    assert response.std[-1] > 0.0
    ensemble = integrator.to_state_space()
    with pytest.raises(ValueError, match="rest at different inputs"):
        ensemble.step_response(30)
    assert ensemble.step_response(30, u=0.3).mean.shape == (30, 1)


def test_no_level_of_other_models(network, linear):
    for model in (network[0], linear):
        assert not model.to_state_space().is_integrating


def test_jacobians_are_those_of_complex_steps(network):
    model, u, y = network
    space = model.to_state_space()
    x, row = space.initial_state(u[:20], y[:20]), u[20]
    assert_jacobians_are_exact(space, x, row)


def test_a_linear_system_at_rest_and_its_poles(linear):
    space = linear.to_state_space(sampling_time=0.1)
    assert space.state_names == ["state0", "state1"]
    assert space.output_names == ["y"]
    point = space.find_operating_point(u=1.0)
    rest = np.linalg.solve(np.eye(2) - cases.A, cases.B)
    gain = float((cases.C @ rest + cases.D)[0, 0])
    still = float(space.find_operating_point(u=0.0).y[0])
    assert point.y[0] - still == pytest.approx(gain, rel=0.05)
    np.testing.assert_allclose(space.f(point.x, point.u), point.x)
    there = space.find_operating_point(y=point.y)
    np.testing.assert_allclose(there.u, 1.0, rtol=1e-6)
    model = space.linearize(point)
    poles = np.sort_complex(np.linalg.eigvals(model.A))
    expected = np.sort_complex(np.linalg.eigvals(cases.A))
    np.testing.assert_allclose(poles, expected, atol=0.02)
    assert model.C.shape == model.C_std.shape == (1, 2)
    static = space.static_gain([-1.0, 0.0, 1.0])
    np.testing.assert_allclose(np.ravel(static.slope), gain, rtol=0.05)
    assert (static.std > 0.0).all()


def test_responses_of_a_linear_system(linear):
    space = linear.to_state_space()
    response = space.step_response(40, u=0.0)
    expected = cases.simulate(np.ones((40, 1)), np.zeros(2))
    error = np.abs(response.mean - expected)
    assert error.max() < 0.1
    assert (error < 5.0 * response.std + 1e-9).all()
    impulse = space.impulse_response(40, u=0.0)
    np.testing.assert_allclose(
        np.cumsum(impulse.mean, axis=0), response.mean, atol=1e-6
    )


@pytest.mark.parametrize("combine", ["median", "mean"])
def test_a_graph_of_one_step(network, combine):
    model, u, y = network
    x = model.to_state_space().initial_state(u[:20], y[:20])
    assert_graph_is_the_model(model, u[20:40], x, combine)
