"""The state space of a fitted model: its equations, derivatives and initial states."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from complex_steps import assert_jacobians_are_exact
from fitted_models import equations_of
from lagged_models import MODELS, TRIED, fit, fit_model, new_record
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesNARXRegressor

N_BEFORE = 6
LINEAR = SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=())


@pytest.fixture(scope="module", params=TRIED)
def model(request):
    return fit_model(request.param)


@pytest.fixture(scope="module")
def simple():
    return fit()


def outputs(y):
    return np.reshape(y, (len(y), -1))


def test_its_run_is_that_of_the_model(model):
    u, y = new_record(model)
    space = model.to_state_space()
    before = u[:N_BEFORE], y[:N_BEFORE]
    simulated = space.simulate(u[N_BEFORE:], space.initial_state(*before))
    expected = model.stream(*before).run(u[N_BEFORE:])
    assert_allclose(simulated, outputs(expected), rtol=1e-10)
    assert_allclose(space.simulate(u), outputs(model.predict(u)), rtol=1e-10)


def test_it_goes_on_from_the_state_of_a_run(model):
    u, _ = new_record(model)
    space = model.to_state_space()
    head, state = model.predict(u[:20], return_state=True)
    start = space.initial_state(state=state)
    ours, x = space.simulate(u[:20], return_state=True)
    assert_allclose(x, start, rtol=1e-10)
    whole = model.predict(u)
    assert_allclose(space.simulate(u[20:], start), outputs(whole)[20:], rtol=1e-10)


def test_the_state_holds_no_more_than_the_networks_read(model):
    """Every entry changes some later output, or the model has none."""
    space = model.to_state_space()
    x, u = space.initial_state(), equations_of(space).means[0]
    rng = np.random.default_rng(0)
    assert len(space.state_names) == space.n_states == len(x)
    reads = np.zeros(space.n_states, dtype=bool)
    # not all units of a relu are on at once
    for step, _ in itertools.product(equations_of(space).steps, range(20)):
        v = np.concatenate([x, u]) + rng.normal(size=len(x) + len(u))
        reads |= (step.derivative(v) != 0.0).any(axis=0)[: space.n_states]
    layout = equations_of(space).layout
    ends = np.cumsum([*layout.input_depth, *layout.output_depth.ravel()])
    depths = np.diff(ends, prepend=0)
    # the last of each delay line is read, and so the others are needed
    assert reads[ends[depths > 0] - 1].all()


@pytest.mark.parametrize("seed", range(2))
def test_jacobians_are_exact(model, seed):
    """Against complex steps, and these against central differences."""
    space, rng = model.to_state_space(), np.random.default_rng(seed)
    x = space.initial_state() + rng.normal(size=space.n_states)
    u = equations_of(space).means[0] + rng.normal(size=space.n_inputs)
    ours, both = assert_jacobians_are_exact(space, x, u)
    v = np.concatenate([x, u])
    steps = 1e-6 * np.eye(len(v))
    differences = [(both(v + e) - both(v - e)) / 2e-6 for e in steps]
    expected = np.reshape(differences, (len(v), -1)).T
    assert_allclose(ours, expected.reshape(ours.shape), rtol=1e-5, atol=1e-7)


def test_f_and_g_are_the_step(simple):
    space = simple.to_state_space()
    x, u = space.initial_state(), 0.3
    following, y = space.step(x, u)
    assert_array_equal(space.f(x, u), following)
    assert_array_equal(space.g(x, u), y)
    assert following.dtype == np.float64


def test_names_and_pickles():
    space = fit(n_inputs=2, n_outputs=2, n_estimators=2, output_lags=1).to_state_space()
    assert space.state_names[-1] == "y1[1](t-1)"
    assert space.state_names[0] == "x0(t-1)"
    x, u = space.initial_state(), np.ones(2)
    read = pickle.loads(pickle.dumps(space))
    assert_array_equal(read.f(x, u), space.f(x, u))


def test_what_they_are_is_printed(simple):
    names = "input_names=['x0'], output_names=['y'], sampling_time=2.0)"
    system = simple.to_state_space(sampling_time=2.0)
    n_states = f"n_states={system.n_states}"
    assert repr(system) == f"StateSpaceModel({n_states}, {names}"
    linear = system.linearize(x=np.zeros(system.n_states), u=0.0)
    assert repr(linear) == f"LinearizedModel({n_states}, {names}"


def test_a_new_fit_does_not_disturb_it():
    model = fit()
    u, y = new_record(model)
    space = model.to_state_space()
    expected = space.simulate(u)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(u, -3 * y)
    assert_array_equal(space.simulate(u), expected)


def test_errors(simple):
    u, y = new_record(simple)
    space = simple.to_state_space()
    with pytest.raises(ValueError, match="at least 2 rows, as many"):
        space.initial_state(u[:1], y[:1])
    with pytest.raises(ValueError, match="both X_init and y_init"):
        space.initial_state(u)
    with pytest.raises(ValueError, match="both X_init and y_init"):
        space.initial_state(y_init=y)
    with pytest.raises(ValueError, match="of the same rows"):
        space.initial_state(u, y[:-1])
    y[-1] = np.nan
    with pytest.raises(ValueError, match="no missing values"):
        space.initial_state(u, y)
    with pytest.raises(ValueError, match="u must hold 1 inputs"):
        space.f(space.initial_state())
    with pytest.raises(ValueError, match=f"x must hold {space.n_states} states"):
        space.f([1.0], 2.0)
    with pytest.raises(ValueError, match=r"X must have shape \(n_rows, 1\)"):
        space.simulate(u[:, 0])


def test_it_runs_in_python_control(simple):
    control = pytest.importorskip("control")
    u, _ = new_record(simple)
    space = simple.to_state_space(sampling_time=0.5)
    system = space.to_control()
    assert system.dt == 0.5 and system.input_labels == ["x0"]
    start = space.initial_state()
    response = control.input_output_response(
        system, 0.5 * np.arange(len(u)), u[:, 0], X0=start
    )
    assert_allclose(response.outputs, simple.predict(u), rtol=1e-10)


def test_names_of_signals_are_compared():
    u, y = new_record(fit(**MODELS["two by two"]))
    X, Y = pd.DataFrame(u, columns=["a", "b"]), pd.DataFrame(y, columns=["p", "q"])
    space = LINEAR.fit(X, Y).to_state_space()
    swapped, x = X[["b", "a"]], space.initial_state(X, Y)
    for call in (
        lambda: space.simulate(swapped),
        lambda: space.step(x, swapped.iloc[0]),
        lambda: space.initial_state(swapped, Y),
        lambda: space.initial_state(X, Y[["q", "p"]]),
    ):
        with pytest.raises(ValueError, match="another order than . had in fit"):
            call()
    with pytest.raises(ValueError, match="X has other inputs than X had in fit"):
        space.simulate(X.rename(columns={"a": "c"}))
    assert_array_equal(x, space.initial_state(u, y))
    assert_array_equal(space.simulate(X), space.simulate(u))
    assert_array_equal(space.step(x, X.iloc[0])[1], space.step(x, u[0])[1])
    # the times of the rows are no signal
    timed = [frame.assign(time=np.arange(len(frame))) for frame in (X, Y)]
    assert_array_equal(space.initial_state(*timed), x)
    assert_array_equal(space.simulate(timed[0]), space.simulate(u))
    # there is nothing to compare with
    unnamed = LINEAR.fit(u, y).to_state_space()
    assert_array_equal(unnamed.simulate(swapped), unnamed.simulate(u[:, ::-1]))
