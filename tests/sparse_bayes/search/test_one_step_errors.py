"""Simulators that predict badly one step ahead."""

from types import SimpleNamespace

import numpy as np
import pytest
from search_cases import quietly

from skbayesnn import DynamicSystemRegressor, SparseBayesNARXRegressor
from skbayesnn.sparse_bayes.search import searched_ensemble
from skbayesnn.sparse_bayes.search.one_step_errors import explained_by_lags


def disturbed(n=300):
    """Most of the output is a disturbance that lasts."""
    rng = np.random.default_rng(0)
    u, y, lasting = rng.uniform(-1, 1, size=(n, 1)), np.zeros(n), 0.0
    for t in range(1, n):
        lasting = 0.95 * lasting + 0.3 * rng.standard_normal()
        y[t] = u[t - 1, 0] + lasting
    return u, y


def given(u, y, *ends):
    starts = np.array([0, *ends, len(y)])
    return SimpleNamespace(U=u, Y=y.reshape(len(y), -1), starts=starts)


def fitted(output_lags):
    model = SparseBayesNARXRegressor(2, output_lags, hidden_layer_sizes=(), tol=1.0)
    return quietly(model, *disturbed())._model.ensemble


def test_errors_that_last_are_explained():
    u, y = disturbed()
    without, with_lags = fitted(0), fitted(2)
    explained = explained_by_lags(without, given(u, y))
    # of a first-order process with .95, whose inputs are known
    assert 0.8 < explained < 0.95
    assert explained_by_lags(with_lags, given(u, y)) < 0.1
    # of two outputs, in units of each
    both = np.column_stack([y, 1e6 * y])
    model = SparseBayesNARXRegressor(2, 0, hidden_layer_sizes=(), tol=1.0)
    model = quietly(model, u, both)._model.ensemble
    assert explained_by_lags(model, given(u, both)) == pytest.approx(
        explained, abs=0.01
    )


def test_rows_that_tell():
    """Those of the longest session; missing ones are left out."""
    u, y = disturbed()
    ensemble = fitted(0)
    whole = explained_by_lags(ensemble, given(u, y))
    noise = np.random.default_rng(1).standard_normal(40)
    longer = np.r_[noise, y], np.r_[noise[:, None], u]
    assert explained_by_lags(ensemble, given(*longer[::-1], 40)) == whole
    y[[50, 120]] = np.nan
    assert explained_by_lags(ensemble, given(u, y)) == pytest.approx(whole, abs=0.02)
    assert np.isnan(explained_by_lags(ensemble, given(u[:12], y[:12])))
    assert np.isnan(explained_by_lags(ensemble, given(u, np.full(300, np.nan))))


@pytest.mark.parametrize("n_rows", [20, 30, 45])
def test_few_rows_do_not_tell(n_rows):
    """White errors are explained by nearly as many weights as rows."""
    ensemble = fitted(2)
    for first in range(0, 250, 25):
        part = slice(first, first + n_rows)
        u, y = (values[part] for values in disturbed())
        assert not explained_by_lags(ensemble, given(u, y)) > 0.5


@pytest.mark.parametrize(
    "focus, explained, told",
    [("simulation", 0.7, True), ("simulation", 0.4, False), ("prediction", 0.7, False)],
)
def test_the_summary_says_so(focus, explained, told, monkeypatch):
    monkeypatch.setattr(searched_ensemble, "explained_by_lags", lambda *_: explained)
    model = DynamicSystemRegressor(
        ("linear",), lags=(1, 2), focus=focus, n_estimators=1, cv=2, random_state=0
    )
    summary = quietly(model, *disturbed()).summary_
    assert ("explains 70%" in summary and "focus='prediction'" in summary) == told
