"""Fitted lagged models of every kind, small and quick, and records for them."""

import warnings

import numpy as np
from fitted_models import make_ensemble
from grids import without_by_default
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import SparseBayesNARXRegressor


def record(n_inputs=1, n_outputs=1, n_rows=120, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n_rows, n_inputs))
    y = np.zeros((n_rows, n_outputs))
    for t in range(2, n_rows):
        drive = np.tanh(u[t - 1].sum()) if n_inputs else rng.normal()
        y[t] = (
            0.6 * y[t - 1] - 0.2 * y[t - 2, ::-1] + drive * (1 + np.arange(n_outputs))
        )
        y[t] += 0.05 * rng.normal(size=n_outputs)
    return u, 3.0 + 2.0 * y


MODELS = {
    "default": {},
    "holes": {"input_lags": [1, 4], "output_lags": [2, 5]},
    "no current input": {"include_current_input": False, "output_lags": 1},
    "autoregression": {"n_inputs": 0, "output_lags": [1, 3]},
    "FIR": {"output_lags": 0, "input_lags": 3},
    "static": {"output_lags": 0, "input_lags": 0},
    "two by two": {"n_inputs": 2, "n_outputs": 2, "input_lags": 1, "output_lags": 3},
    "linear": {"hidden_layer_sizes": ()},
    "no skip": {"skip_connection": False},
    "deep relu": {"hidden_layer_sizes": (4, 3), "activation": "relu"},
    "pruned away": {"kappa_weight": 1e3},
    "ensemble": {"n_estimators": 3},
    "difference": {"output": "difference", "output_lags": 3},
    "difference, two by two": {
        "output": "difference",
        "n_inputs": 2,
        "n_outputs": 2,
        "input_lags": {"x0": 2, "x1": [0, 3]},
        "output_lags": {"y0": [1, 3], "y1": 2},
    },
    "logistic, not scaled": {"activation": "logistic", "normalize": False},
    "ensemble, two by two": {"n_estimators": 2, "n_inputs": 2, "n_outputs": 2},
}


def fit(n_inputs=1, n_outputs=1, **parameters):
    u, y = record(n_inputs, n_outputs)
    defaults = {"hidden_layer_sizes": (4,), "max_cycles": 8, "random_state": 0}
    model = SparseBayesNARXRegressor(**{**defaults, **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(u if n_inputs else None, y[:, 0] if n_outputs == 1 else y)


def with_members_of_other_lags():
    """An ensemble as a search over lags forms it."""
    model = fit(input_lags=2, output_lags=[1, 4])
    others = [fit(input_lags=0, output_lags=1), fit(output_lags=3)]
    make_ensemble(model, others, np.array([0.4, 0.35, 0.25]))
    return model


NAMES = [*MODELS, "other lags"]
# The default tests leave these out: others have each of their options, too.
COVERED = ("default", "FIR", "two by two", "ensemble", "difference")
# The names for `parametrize`, and for fixtures.
TRIED = without_by_default(COVERED, NAMES)


def fit_model(name):
    """The model of one of the `NAMES`."""
    return with_members_of_other_lags() if name == "other lags" else fit(**MODELS[name])


def new_record(model, seed=1):
    u, y = record(model.n_features_in_, model.n_outputs_, 60, seed)
    return u, y[:, 0] if model._model.single_output else y
