"""Fits whose errors have heavy tails: noise="student_t"."""

import functools
import pickle
import warnings

import numpy as np
import pytest
from fitted_models import fitted_network
from free_run_cases import fit, missing, output_error, rms, two_by_two
from grids import each_value_once, first_by_default
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesMLPRegressor
from skbayesnn.sparse_bayes.learning.likelihood import FREEDOM_BOUNDS, StudentT

STUDENT = dict(noise="student_t")


def fit_static(X, y, **options):
    model = SparseBayesMLPRegressor(**{"random_state": 0, "max_cycles": 60, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def regression(draw, n_samples=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, size=(n_samples, 2))
    truth = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
    return X, truth, truth + 0.2 * draw(rng, n_samples)


@functools.cache
def heavy_tailed(freedom, seed=0):
    """A record with errors of so many degrees of freedom, and a fit that knows."""
    X, _, y = regression(lambda rng, n: rng.standard_t(freedom, n), seed=seed)
    return X, y, fit_static(X, y, **STUDENT)


# what is learned of the errors


@pytest.mark.parametrize("freedom", first_by_default([3.0, 6.0]))
@pytest.mark.parametrize("seed", first_by_default(range(3)))
def test_degrees_of_freedom_and_variance_are_found(freedom, seed):
    _, _, model = heavy_tailed(freedom, seed)
    # Fisher's information leaves some 10 (3) to 20 % (6) of uncertainty
    assert 0.6 * freedom < model.degrees_of_freedom_ < 1.8 * freedom
    nu = model.degrees_of_freedom_
    scale = np.sqrt(model.noise_variance_ * (nu - 2.0) / nu)
    assert_allclose(scale, 0.2, rtol=0.08)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_of_gaussian_errors_it_makes_the_gaussian_fit(seed):
    X, truth, y = regression(lambda rng, n: rng.standard_normal(n), seed=seed)
    heavy, gaussian = fit_static(X, y, **STUDENT), fit_static(X, y)
    assert heavy.degrees_of_freedom_ > 25.0
    assert not hasattr(gaussian, "degrees_of_freedom_")
    assert_allclose(heavy.noise_variance_, gaussian.noise_variance_, rtol=0.02)
    assert rms(heavy.predict(X) - gaussian.predict(X)) < 0.02
    # a curvature with weights that vary is larger by a few nats
    difference = heavy.log_marginal_likelihood_ - gaussian.log_marginal_likelihood_
    assert -10.0 < difference < 5.0


@pytest.mark.slow
def test_evidence_prefers_heavy_tails_where_they_are():
    X, y, heavy = heavy_tailed(3.0)
    gaussian = fit_static(X, y)
    assert heavy.log_marginal_likelihood_ > gaussian.log_marginal_likelihood_ + 50.0


@pytest.mark.parametrize(
    *each_value_once(focus=["prediction", "simulation"], solver=["lbfgs", "lm"])
)
def test_the_objective_descends_within_every_cycle(solver, focus):
    u, y, _ = output_error(200)
    y[::40] += 3.0
    model = fit(u, y, focus=focus, solver=solver, max_cycles=40, **STUDENT)
    start, end = model.history_["objective_start"], model.history_["objective"]
    assert (end <= start + 1e-9 * np.abs(start)).all()
    assert FREEDOM_BOUNDS[0] <= model.degrees_of_freedom_ < 5.0


def test_the_search_of_the_degrees_of_freedom_finds_the_minimum():
    errors = 0.7 * np.random.default_rng(0).standard_t(4.0, 2000)

    def misfit(nu, noise=0.5):
        return -2.0 * stats.t.logpdf(errors, nu, scale=np.sqrt(noise)).sum()

    likelihood = StudentT()
    for _ in range(5):
        likelihood = likelihood.refined(lambda: errors, 0.5)
    grid = np.geomspace(*FREEDOM_BOUNDS, 400)
    best = grid[np.argmin([misfit(nu) for nu in grid])]
    assert_allclose(likelihood.degrees_of_freedom, best, rtol=0.02)
    # one call changes it by a factor of 2 at most, never beyond the bounds
    once = StudentT(degrees_of_freedom=100.0).refined(lambda: errors, 0.5)
    assert_allclose(once.degrees_of_freedom, 50.0, rtol=0.01)
    gross = np.r_[errors, 1e6]
    few = StudentT(degrees_of_freedom=2.6).refined(lambda: gross, 0.5)
    assert few.degrees_of_freedom >= FREEDOM_BOUNDS[0]
    # neither what is missing nor a run that diverged is an error of this kind
    with_nan = StudentT().refined(lambda: np.r_[errors, np.nan], 0.5)
    assert with_nan == StudentT().refined(lambda: errors, 0.5)
    assert StudentT().refined(lambda: np.r_[errors, np.inf], 0.5) == StudentT()


# wrong rows


def wrong_rows(y, kind, seed):
    """Two per cent of the rows of a record: a sensor that sticks, or that lies."""
    rng = np.random.default_rng(seed)
    y, n_wrong = y.copy(), round(0.02 * len(y))
    first = rng.integers(len(y) // 10, len(y) - n_wrong)
    part = slice(first, first + n_wrong)
    y[part] = y[first - 1] if kind == "stuck" else y.min() - 2.0 * y.std()
    return y


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stuck", "outlying"])
@pytest.mark.parametrize("focus", ["prediction", "simulation"])
def test_wrong_rows_cost_little(kind, focus):
    """The error against the truth without noise, as a geometric mean over records."""
    ratios = {"gaussian": [], "student_t": []}
    for seed in range(4):
        u, y, _ = output_error(400, seed, noise=0.03)
        new_u, new_y, x = output_error(seed=seed + 100, noise=0.03)
        arguments = dict(y=new_y) if focus == "prediction" else dict(y_init=x[:2])
        for noise, ratio in ratios.items():
            errors = [
                rms(
                    fit(u, target, focus=focus, noise=noise, max_cycles=60).predict(
                        new_u, **arguments
                    )
                    - x
                )
                for target in (y, wrong_rows(y, kind, seed))
            ]
            ratio.append(errors[1] / errors[0])
    mean = {noise: stats.gmean(ratio) for noise, ratio in ratios.items()}
    assert mean["student_t"] < 1.25
    assert mean["gaussian"] > 1.2 * mean["student_t"]


# bands and draws


@pytest.mark.parametrize("focus", ["prediction", "simulation"])
def test_draws_have_these_tails_and_the_reported_spread(focus):
    u, y, _ = output_error(400, noise=0.0, linear=True)
    y = y + 0.5 * np.random.default_rng(0).standard_t(3.0, len(y))
    options = dict(focus=focus, hidden_layer_sizes=(), reg_lambda=1.0, max_cycles=60)
    model = fit(u, y, 10, 0, **options, **STUDENT)
    nu = model.degrees_of_freedom_
    assert nu < 5.0
    arguments = dict(y=y) if focus == "prediction" else dict(y_init=y[:10])
    mean, std = model.predict(u, **arguments, return_std=True)
    drawn = model.sample_y(u, **arguments, n_samples=2000)[10:]
    error = (drawn - mean[10:, None]) / std[10:, None]
    inside = np.mean(np.abs(error) < 1.0)
    heavy = stats.t(nu, scale=np.sqrt((nu - 2.0) / nu))
    expected = heavy.cdf(1.0) - heavy.cdf(-1.0)
    assert_allclose(inside, expected, atol=0.03)
    gaussian = stats.norm.cdf(1.0) - stats.norm.cdf(-1.0)
    assert inside > gaussian + 0.03
    assert np.mean(np.abs(error) > 4.0) > 20.0 * 2.0 * stats.norm.sf(4.0)


def test_draws_of_a_static_model():
    X, _, model = heavy_tailed(3.0)
    mean, std = model.predict(X[:50], return_std=True)
    error = (model.sample_y(X[:50], n_samples=4000) - mean[:, None]) / std[:, None]
    nu = model.degrees_of_freedom_
    heavy = stats.t(nu, scale=np.sqrt((nu - 2.0) / nu))
    for quantile in (0.05, 0.25, 0.75, 0.95):
        assert_allclose(np.quantile(error, quantile), heavy.ppf(quantile), atol=0.05)


# with everything else


def test_one_number_serves_all_outputs():
    U, Y = two_by_two(noise=0.0)
    rng = np.random.default_rng(0)
    Y = Y + [0.5, 0.005] * rng.standard_t(3.0, Y.shape)
    for Y_seen in (Y, missing(Y, 90)):
        model = fit(U, Y_seen, 1, 1, noise_variance=[0.25, 2.5e-5], **STUDENT)
        assert isinstance(model.degrees_of_freedom_, float)
        nu = model.degrees_of_freedom_
        # a given variance is that of the scale
        variance = np.array([0.25, 2.5e-5]) * nu / (nu - 2.0)
        assert_allclose(model.noise_variance_, variance)


@pytest.mark.parametrize("focus", first_by_default(["prediction", "simulation"]))
def test_a_warm_start_goes_on_with_what_it_knew(focus):
    u, y, _ = output_error(300)
    y[::40] += 3.0
    model = fit(u, y, focus=focus, max_cycles=60, warm_start=True, **STUDENT)
    before = model.degrees_of_freedom_
    assert before < 5.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(max_cycles=1).fit(u, y)
        gaussian = clone(model).set_params(noise="gaussian").fit(u, y)
    assert not hasattr(gaussian, "degrees_of_freedom_")
    # from the start, one cycle would halve 10 at most
    assert_allclose(model.degrees_of_freedom_, before, rtol=0.1)


def test_members_of_an_ensemble_have_their_own():
    u, y, _ = output_error(200)
    y[::40] += 3.0
    model = fit(u, y, n_estimators=2, max_cycles=20, **STUDENT)
    first, second = (one.degrees_of_freedom_ for one in model.estimators_)
    assert model.degrees_of_freedom_ == first != second
    restored = pickle.loads(pickle.dumps(model))
    assert fitted_network(restored, 1).degrees_of_freedom == second
    assert_array_equal(
        restored.sample_y(u, y_init=y[:2]), model.sample_y(u, y_init=y[:2])
    )
