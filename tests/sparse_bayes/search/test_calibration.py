"""The factor of the bands of a searched ensemble."""

import warnings

import numpy as np
import pytest
from free_run_cases import inside_range
from numpy.testing import assert_allclose, assert_array_equal

from skbayesnn import (
    SparseBayesNARXRegressor,
    SparseBayesNARXRegressorCV,
    SparseBayesStateSpaceRegressor,
)
from skbayesnn.sparse_bayes.learning.session_parts import stretches
from skbayesnn.sparse_bayes.prediction.ensemble import Ensemble
from skbayesnn.sparse_bayes.search import calibration
from skbayesnn.sparse_bayes.search.calibration import band_factor, for_drift
from skbayesnn.sparse_bayes.search.candidates import Candidate, Table
from skbayesnn.sparse_bayes.search.cut_record import CutRecord
from skbayesnn.sparse_bayes.training_record import TrainingRecord


def output_error(n, seed=0):
    """A linear system whose output is measured with white noise."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((n, 1))
    x = np.zeros(n)
    for t in range(1, n):
        x[t] = 0.8 * x[t - 1] + u[t - 1, 0]
    return u, x + 0.3 * rng.standard_normal(n)


def data_of(u, y, n_stretches=5, sessions=None):
    starts = np.array([0, len(y)]) if sessions is None else sessions
    given = TrainingRecord(u, y[:, None], starts, True, {})
    return CutRecord(given, stretches(starts, n_stretches))


@pytest.fixture(scope="module")
def network():
    u, y = output_error(2000)
    model = SparseBayesNARXRegressor(
        1, 1, focus="simulation", hidden_layer_sizes=(), include_current_input=False
    )
    return model.fit(u, y)._model.ensemble.members[0]


def with_std(network, times, of_noise=None):
    """The network, with other standard deviations: those of its weights and noise."""
    fitted = network.fitted
    of_noise = times if of_noise is None else of_noise
    fitted = fitted._replace(
        free_run_std=of_noise * fitted.free_run_std,
        covariance=times**2 * fitted.covariance,
    )
    return network._replace(fitted=fitted)


def alone(network, folds, times=1.0, of_noise=None):
    """A network as what saw no fold, and as the ensemble whose bands are judged."""
    ensemble = Ensemble.single(*with_std(network, times, of_noise))
    return {fold: [network] for fold in folds}, ensemble


def test_true_bands_keep_their_width(network):
    data = data_of(*output_error(3000, seed=1))
    factor = band_factor(*alone(network, range(5)), data)
    assert factor.shape == (1,)
    assert_allclose(factor, 1.0, atol=0.1)


@pytest.mark.parametrize("is_linear", [False, True])
def test_narrow_bands_are_widened_and_wide_ones_narrowed(
    network, is_linear, monkeypatch
):
    assert calibration._is_linear(Ensemble.single(*network))
    monkeypatch.setattr(calibration, "_is_linear", lambda ensemble: is_linear)
    monkeypatch.setattr(calibration, "widening", lambda parts: 1.5)
    data = data_of(*output_error(3000, seed=1))
    found = [
        band_factor(*alone(network, range(5), times), data) for times in (0.25, 0.5)
    ]
    assert_allclose(found[0], 2.0 * found[1], rtol=1e-6)
    # weights that are known better than they seem to be
    weights = alone(network, range(5), 200.0, of_noise=1.0)
    # those of a linear model are only made wider, as errors that are few make all
    if is_linear:
        assert_allclose(band_factor(*weights, data), 1.5, rtol=1e-6)
    else:
        assert band_factor(*weights, data) < 0.5 * 1.5


def test_stretches_full_of_noise_do_not_narrow_what_else_is_unknown(
    network, monkeypatch
):
    """Where noise alone makes bands too wide, no factor is learned that cannot act."""
    monkeypatch.setattr(calibration, "_is_linear", lambda ensemble: False)
    monkeypatch.setattr(calibration, "widening", lambda parts: 1.0)
    data = data_of(*output_error(3000, seed=1))
    for times in 4.0, 40.0:
        noise = alone(network, range(5), 1.0, of_noise=times)
        assert_allclose(band_factor(*noise, data), 1.0, rtol=0.01)


@pytest.mark.parametrize("kind", ["network", "states"])
def test_what_has_hidden_units_or_states_is_not_linear(kind, network):
    u, y = output_error(200)
    model = {
        "network": SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=1),
        "states": SparseBayesStateSpaceRegressor(1, hidden_layer_sizes=()),
    }[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        member = model.set_params(max_cycles=1, random_state=0).fit(u, y)
    members = network, member._model.ensemble.members[0]
    assert not calibration._is_linear(Ensemble(members, np.full(2, 0.5)))


def test_only_held_out_rows_count(network):
    u, y = output_error(1000, seed=1)
    data = data_of(u, y)
    expected = band_factor(*alone(network, [2]), data)
    elsewhere = (data.folds != 2) & (np.arange(1000) > 5)
    spoiled = y + 50.0 * elsewhere
    assert_array_equal(band_factor(*alone(network, [2]), data_of(u, spoiled)), expected)


def test_missing_values(network):
    u, y = output_error(1000, seed=1)
    y[[0, 1, 300, 450]] = np.nan
    factor = band_factor(*alone(network, [1, 2]), data_of(u, y))
    assert_allclose(factor, 1.0, atol=0.25)
    # nothing is left to compare with
    y[:] = np.nan
    assert_array_equal(band_factor(*alone(network, [1]), data_of(u, y)), [1.0])


def test_several_sessions(network):
    u, y = output_error(1000, seed=1)
    sessions = np.array([0, 400, 403, 1000])
    factor = band_factor(*alone(network, [0, 1]), data_of(u, y, 2, sessions))
    assert_allclose(factor, 1.0, atol=0.2)


@pytest.mark.slow
def test_a_search_learns_the_factor():
    u, y = output_error(400)
    model = SparseBayesNARXRegressorCV(
        (1, 2), (2.0,), cv=4, n_estimators=1, hidden_layer_sizes=(2,), random_state=0
    )
    model.fit(u, y)
    assert model.band_factor_.shape == (1,)
    assert 0.5 < model.band_factor_[0] < 2.0
    new_u, new_y = output_error(2000, seed=3)
    new_u = new_u.clip(u.min(), u.max())
    mean, std = model.predict(new_u, return_std=True)
    bands = model._model.bands._replace(factor=np.ones(1))
    model._model = model._model._replace(bands=bands)
    _, alone = model.predict(new_u, return_std=True)
    inside = inside_range(mean, y, model.max_lag_)
    (network,) = model.estimators_
    least = np.sqrt(network.noise_variance_)
    expected = np.maximum(model.band_factor_ * alone[inside], least)
    # what the noise of the outputs before a run adds is forgotten soon
    assert_allclose(std[inside][100:], expected[100:])
    assert (std[inside] >= (1.0 - 1e-7) * expected).all()
    assert (least < alone[inside]).all()


def test_bands_hold_what_the_candidates_drift():
    one = Candidate("network", "simulation", 5, 6.0, False)
    other = one._replace(lag=10)
    table = Table(2)
    for candidate, error in [(one, 0.1), (other, 0.2)]:
        for fold in range(2):
            table.add(candidate, fold, error)
    factor = np.array([0.6, 1.5])
    assert for_drift(factor, table, [one, other]) is factor
    table.drifts = {one: 0.0, other: 0.0}
    assert for_drift(factor, table, [one, other]) is factor
    table.drifts = {one: 0.1, other: 0.4}
    wider = for_drift(factor, table, [one, other])
    assert_allclose(wider, np.sqrt(1.0 + (1.0 + 4.0) / 2.0) * np.array([1.0, 1.5]))
    assert_array_equal(factor, [0.6, 1.5])
