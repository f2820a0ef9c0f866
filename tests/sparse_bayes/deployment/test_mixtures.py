"""Ensembles of lags and of hidden states as one state space, and as ONNX."""

import numpy as np
import pytest
from complex_steps import assert_jacobians_are_exact
from mixtures import DIFFERENCES, MIXTURES, lags, mix, states
from numpy.testing import assert_allclose
from onnx_runs import assert_graph_is_the_model

from skbayesnn.datasets import make_coupled_drives

N_KNOWN = 20


@pytest.fixture(scope="module")
def data():
    return make_coupled_drives(80, return_X_y=True, random_state=0)


@pytest.fixture(scope="module", params=MIXTURES)
def mixture(request, data):
    return mix(*MIXTURES[request.param], *data), *data


def test_a_simulation_is_the_free_run(mixture):
    model, u, y = mixture
    space = model.to_state_space()
    assert space.n_outputs == 1 and space.n_states == len(space.state_names)
    assert len(set(space.state_names)) == space.n_states
    x = space.initial_state(u[:N_KNOWN], y[:N_KNOWN])
    expected = model.predict(u, y_init=y[:N_KNOWN])[N_KNOWN:]
    assert_allclose(space.simulate(u[N_KNOWN:], x)[:, 0], expected, atol=1e-12)
    start = dict(y_init=y[:N_KNOWN], return_state=True)
    _, state = model.predict(u[:N_KNOWN], **start)
    assert_allclose(space.initial_state(state=state), x, atol=1e-12)
    assert_allclose(space.simulate(u)[:, 0], model.predict(u), atol=1e-10)


def test_differences(data):
    u, y = data
    model = mix(*DIFFERENCES, u, y)
    space = model.to_state_space()
    assert space.is_integrating
    x = space.initial_state(u[:N_KNOWN], y[:N_KNOWN])
    expected = model.predict(u, y_init=y[:N_KNOWN])[N_KNOWN:]
    assert_allclose(space.simulate(u[N_KNOWN:], x)[:, 0], expected, atol=1e-12)
    # of networks on lags, levels alone are summed up
    named = [name for name in space.state_names if name.startswith("state")]
    assert {name[-3:] for name in named} == {"[1]"}
    with pytest.raises(ValueError, match="rest at different inputs"):
        space.find_operating_point()
    alone = [one.to_state_space() for one in model.estimators_]
    # the median is that of the network with most of the weight
    found, *expected = (one.step_response(5, u=0.2) for one in [space, *alone])
    assert_allclose(found.mean, expected[1].mean, atol=1e-12)
    assert not np.allclose(found.mean, expected[0].mean)


def test_names_of_states(data):
    space = mix(*MIXTURES["states first"], *data).to_state_space()
    hidden = [name for name in space.state_names if name.startswith("state")]
    assert hidden == ["state0[0]", "state1[0]"]
    rest = [name for name in space.state_names if name not in hidden]
    assert rest == [
        *(f"x0(t-{k})" for k in (1, 2, 3)),
        *(f"y[1](t-{k})" for k in (1, 2, 3)),
    ]


def test_jacobians_are_those_of_complex_steps(mixture):
    model, u, y = mixture
    space = model.to_state_space()
    x, row = space.initial_state(u[:N_KNOWN], y[:N_KNOWN]), u[N_KNOWN]
    assert_jacobians_are_exact(space, x, row)


def test_rest_and_responses_are_those_of_the_networks(data):
    """Of linear networks, which have one point of rest."""
    u, y = data
    networks = [lags(2, hidden_layer_sizes=()), states(2, hidden_layer_sizes=())]
    model = mix(networks, [0.7, 0.3], u, y)
    space = model.to_state_space()
    point = space.find_operating_point(u=u.mean())
    assert_allclose(space.f(point.x, point.u), point.x, atol=1e-9)
    # the median is that of the network with most of the weight
    first = networks[0].to_state_space()
    assert_allclose(point.y, first.find_operating_point(u=u.mean()).y)
    linear, alone = (
        space.linearize(point),
        first.linearize(first.find_operating_point(u=u.mean())),
    )
    assert_allclose(linear.C_std[linear.C_std > 0.0], alone.C_std[alone.C_std > 0.0])
    found, expected = space.step_response(5), first.step_response(5)
    assert_allclose(found.mean, expected.mean, atol=1e-12)
    gain = space.static_gain([0.0, 1.0])
    assert_allclose(gain.y, first.static_gain([0.0, 1.0]).y)


@pytest.mark.parametrize("combine", ["median", "mean"])
def test_a_graph_of_one_step(mixture, combine):
    model, u, y = mixture
    x = model.to_state_space().initial_state(u[:N_KNOWN], y[:N_KNOWN])
    assert_graph_is_the_model(model, u[N_KNOWN : N_KNOWN + 10], x, combine)


def test_rows_that_do_not_tell_the_state(data):
    u, y = data
    model = mix(*MIXTURES["lags and states"], u, y)
    space = model.to_state_space()
    with pytest.raises(ValueError, match="at least 4 rows, as many as the longest lag"):
        space.initial_state(u[:3], y[:3])
    holes = y[:10].copy()
    holes[-2] = np.nan
    with pytest.raises(ValueError, match="no missing values in their last 4 rows"):
        space.initial_state(u[:10], holes)
