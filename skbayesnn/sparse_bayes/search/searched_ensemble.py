"""A whole search: candidates are judged, some are kept, and form an ensemble."""

from typing import NamedTuple

import numpy as np

from ..._clock import Clock
from ..._parallel import Shared
from ..._persistence import open_checkpoint
from ..._random import draw_seed
from ..dynamic_predictor import DynamicModel
from ..learning.problem import warn_if_constant
from ..prediction.bands import gaps_of
from ..prediction.ensemble import Ensemble
from ..record_end import end_for
from .calibration import band_factor, for_drift
from .candidate_scores import judge
from .ensemble_size import MOST, enough_members
from .held_out_runs import by_stretch
from .members import close_to_best, rivals, share_out
from .one_step_errors import explained_by_lags
from .reference_errors import reference_errors
from .results import COLUMNS, summarize
from .runner import Runner
from .samples import samples_to_score
from .short_runs import warn_of_short_runs
from .whole_record import Members, learn_members

# At least so many candidates tell how many networks an ensemble needs: one alone would
# not show how far others scatter.
LEAST_COMPARED = 3
# Fraction of ``max_time`` for the search; the rest is for the ensemble.
SEARCH_TIME = 0.6


class Found(NamedTuple):
    """What a search has found.

    model : DynamicModel
        The ensemble.
    members : Members
    results : dict
        ``cv_results_``.
    cut_short : bool
        Whether the time was over before all candidates were tried.
    explained_one_step : float
        See `one_step_errors`; NaN for models that are chosen to predict one step ahead.
    """

    model: DynamicModel
    members: Members
    results: dict
    cut_short: bool
    explained_one_step: float


def search_members(
    estimator, data, settings, space, callbacks, fit_task, columns=COLUMNS
):
    """The search and its ensemble, `Found`, with the parameters of an estimator.

    Parameters
    ----------
    estimator : SparseBayesNARXRegressorCV or DynamicSystemRegressor
    data : CutRecord
    settings : Settings
    space : SearchSpace
    callbacks, fit_task : Callbacks, and their context of the fit
    columns : tuple of str
        Of ``cv_results_``.
    """
    given, n_members = data.given, estimator.n_estimators
    warn_if_constant(given.Y)
    if settings.focus == "simulation":
        warn_of_short_runs(data)
    named = {"X": given.U, "y": given.Y, "sessions": given.starts}
    seed, clock = draw_seed(estimator.random_state), Clock(estimator.max_time)
    with open_checkpoint(estimator, named, seed) as checkpoint:
        parallel = estimator.n_jobs, estimator.verbose
        options = clock, checkpoint, *parallel, callbacks, fit_task
        runner = Runner(Shared(data), settings, *options)
        most = MOST if n_members == "auto" else n_members
        n_folds = int(data.folds.max()) + 1
        seeds = start_seeds(checkpoint.seed, 2 * max(n_folds, most))
        samples = samples_to_score(data)
        scores = judge(space, runner, seeds, samples, n_folds, SEARCH_TIME)
        shares = choose_members(scores, n_members, data, settings.focus)
        members = learn_members(shares, scores, seeds, runner)
    references = reference_errors(data, settings.focus)
    results = summarize(scores.table, list(shares), references, columns)
    model = make_searched_model(members, scores, data, space.may_be_nonlinear)
    explained = np.nan
    if settings.focus == "simulation":
        explained = explained_by_lags(model.ensemble, given)
    return Found(model, members, results, bool(scores.not_tried), explained)


def choose_members(scores, n_members, data, focus):
    """How many members of the ensemble each candidate has: dict of Candidate to int.

    Parameters
    ----------
    scores : Scores
    n_members : int or "auto"
        Members of all candidates together.
    data : CutRecord
    focus : {"simulation", "prediction"}
    """
    table = scores.table.comparable()
    close = close_to_best(table)
    if n_members == "auto":
        compared = rivals(table)[: max(len(close), LEAST_COMPARED)]
        networks = by_stretch(scores.networks, compared)
        n_members = enough_members(networks, data, focus)
    return share_out(close, table, n_members)


def start_seeds(seed, n_seeds):
    """Seeds of the folds, and of the starts of the members."""
    return [
        int(s) for s in np.random.SeedSequence(seed).generate_state(n_seeds) % 2**31
    ]


def make_searched_model(members, scores, data, may_be_nonlinear):
    """The `DynamicModel` of the `Members` that a search has chosen.

    ``may_be_nonlinear`` tells whether nonlinear models were asked for, too. If an input
    has two levels, no error tells these from linear ones, which are chosen.
    """
    networks = tuple(model._model.ensemble.members[0] for model in members.models)
    ensemble = Ensemble(networks, members.weights)
    networks = by_stretch(scores.networks, members.candidates)
    factor = band_factor(networks, ensemble, data)
    factor = for_drift(factor, scores.table, members.candidates)
    best, given = members.models[0]._model, data.given
    last = slice(given.starts[-2], None)
    end = end_for(ensemble, given.U[last], given.Y[last], given.end_time)
    gaps = gaps_of(given.U) if may_be_nonlinear else None
    bands = best.bands._replace(factor=factor, gaps=gaps)
    return best._replace(ensemble=ensemble, bands=bands, end=end)
