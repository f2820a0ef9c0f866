"""Fits of candidates: to the whole record, or without a fold, which is then scored."""

import warnings

import numpy as np
from scipy.linalg import LinAlgError
from sklearn.exceptions import ConvergenceWarning

from ... import _validation as checks
from ..learning.problem import CONSTANT_OUTPUT
from ..learning.result import Fit
from ..narx import SparseBayesNARXRegressor
from ..state_space_network import SparseBayesStateSpaceRegressor
from .held_out_errors import error_against
from .tasks import Score

# Cycles of the last stage of a fit that is only scored. All candidates get the same
# number; a fit that would go on is neither preferred nor rejected for it.
SCORED_CYCLES = 15
# Least squares need no more.
LINEAR_CYCLES = 5


def fit_or_score(task, settings, data, sample, start=None):
    """A model of the whole record, or the `Score` of a fit that does not see a fold.

    Parameters
    ----------
    task : Task
    settings : Settings
    data : CutRecord
        Through which the free run passes that is scored.
    sample : CutRecord
        What is fitted: the same record, or a part of it.
    start : Start or None
        From which a fit to the whole record goes on.

    Returns
    -------
    result : fitted estimator or Score
    """
    model = make_model(task.candidate, task.seed, settings)
    if task.fold is None:
        options = {} if start is None else {"start": start}
        return _fit(model, sample.to_fit(), **options)
    model.set_params(max_cycles=min(model.max_cycles, _scored_cycles(task.candidate)))
    seen = sample.to_fit(hidden=(sample.folds == task.fold)[:, None])
    try:
        checks.check_any_value(seen.Y, "y")
        _fit(model, seen)
    except (ValueError, FloatingPointError, LinAlgError):
        # nothing is left without the fold, or nothing that it could be fitted to
        return Score(np.inf, None)
    return _score(model, task, settings.focus, data, sample, seen)


def _scored_cycles(candidate):
    """The largest number of cycles of a fit that is only scored."""
    if candidate.max_cycles:
        # how long hidden states are fitted is a part of what is chosen
        return candidate.max_cycles
    return LINEAR_CYCLES if candidate.is_arx else SCORED_CYCLES


def _score(model, task, focus, data, sample, seen):
    """The `Score` of a model that was fitted to what it has ``seen``."""
    target = np.where((data.folds == task.fold)[:, None], data.Y, np.nan)
    error = error_against(model, data, target, focus)
    score = Score(error, model._model.ensemble.members[0])
    if task.candidate.model != "linear":
        score = score._replace(seen=error_against(model, sample, seen.Y, focus))
    if task.candidate.model == "states":
        score = score._replace(start=model._learned.start)
    return score


def to_store(result):
    """What a checkpoint keeps of a result of `fit_or_score`: a `Score` or a `Fit`."""
    if isinstance(result, Score):
        return result
    n_diverged = int(result.history_["n_diverged_starts"])
    return Fit((result._learned,), n_diverged, False)


def restored(stored, task, settings, sample):
    """The result of `fit_or_score` of which `to_store` has made what was stored."""
    if isinstance(stored, Score):
        return stored
    model = make_model(task.candidate, task.seed, settings)
    return _fit(model, sample.to_fit(), fit=stored)


def make_model(candidate, seed, settings):
    """The estimator that a candidate stands for."""
    if candidate.model == "states":
        parameters = dict(settings.states)
        if candidate.n_units:
            parameters["hidden_layer_sizes"] = candidate.n_units
        return SparseBayesStateSpaceRegressor(
            candidate.n_states,
            output=candidate.output,
            reg_lambda=candidate.reg_lambda,
            activation=candidate.activation,
            max_cycles=candidate.max_cycles,
            random_state=seed,
            **parameters,
        )
    parameters = dict(settings.lags)
    parameters["focus"] = candidate.fitted_to
    if candidate.model == "linear":
        parameters["hidden_layer_sizes"] = ()
    return SparseBayesNARXRegressor(
        candidate.input_lags(settings.input_names),
        min(candidate.lag, settings.longest_outputs),
        include_current_input=candidate.current_input,
        output=candidate.output,
        reg_lambda=candidate.reg_lambda,
        selection="evidence",
        random_state=seed,
        **parameters,
    )


def _fit(model, given, **earlier):
    """Fit a model to a `TrainingRecord`, without warnings that the search gives."""
    with warnings.catch_warnings():
        # that a fit has not converged shows in its error, or in the ensemble
        warnings.simplefilter("ignore", ConvergenceWarning)
        # the search has already told, once
        warnings.filterwarnings("ignore", CONSTANT_OUTPUT, UserWarning)
        return model._learn(given, **earlier)
