"""Fits of the candidates that a search has kept, to the whole record."""

from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._parallel import at_hand
from ..._warnings import warn_caller
from .candidates import LEAST_ERROR
from .held_out_errors import error_over_record
from .samples import has_more_rows, samples_to_fit
from .search_space import FEW_CYCLES
from .settled_starts import SETTLED, settled
from .tasks import Task

# A fit that errs so many times more over its record than its like did on stretches that
# they did not see ended in a worse optimum.
LOST = 3.0


class Members(NamedTuple):
    """Fits to the whole record, of the candidates that were kept.

    candidates : list of Candidate, the best first
    models : list of estimators, those of the best candidate first
    weights : (n_members,), sum to one
    """

    candidates: list
    models: list
    weights: np.ndarray


def learn_members(shares, scores, seeds, runner):
    """The `Members` of an ensemble.

    Each candidate is fitted from several starts. Those that ended in a worse optimum
    are left out, and so are all that err far more here than where they were scored.
    The latter take their weight along: a candidate that is lost from most of its starts
    is worth less than its held-out error says. A linear model has one optimum, and no
    second start.

    Parameters
    ----------
    shares : dict of Candidate to int
        How many members each candidate has; the best candidate first.
    scores : Scores
    seeds : list of int
        Of the starts, the same for all candidates.
    runner : Runner
    """
    data, focus = runner.data.value, runner.settings.focus
    fits = _fits_to_all(shares, scores, seeds, runner)
    members, weights, lost = [], [], []
    for candidate, n in shares.items():
        stay = settled(fits[candidate], n, data, focus)
        limit = LOST * scores.table.held_out(candidate)
        lost += [error_over_record(m, data, focus) > limit for m in stay]
        members += stay
        weights += [n / len(stay) for _ in stay]
    good = _good_members(members, lost)
    members = [m for m, is_good in zip(members, good, strict=True) if is_good]
    weights = np.array(weights)[good]
    return Members(list(shares), members, weights / weights.sum())


def _fits_to_all(shares, scores, seeds, runner):
    """Fits to the whole record: dict of Candidate to list of models."""
    data = runner.data.value
    samples = samples_to_fit(data)
    # what a fit to fewer rows has pruned would be missing
    more = has_more_rows(samples["states"].value, data)
    starts = {} if more else scores.starts
    begun = _tasks_of_members(shares, scores.table, starts, seeds)
    with at_hand(runner.data, *samples.values()):
        models = runner.run(list(begun), samples, begun=begun)
    fits = {candidate: [] for candidate in shares}
    # fewer than tasks when the time is over
    for task, model in zip(begun, models, strict=False):
        fits[task.candidate].append(model)
    return fits


def _good_members(members, lost):
    """Whether each member stays: neither lost nor diverged, as far as there are such.

    All stay, with a warning, where all have diverged.
    """
    # a model is that of a diverged start only if no other start was left
    stable = [not member._learned.diverged for member in members]
    good = [a and not b for a, b in zip(stable, lost, strict=True)]
    stable = good if any(good) else stable
    if not any(stable):
        warn_caller(
            "Every network of the ensemble diverged in free run over the whole "
            "record. Offer stronger reg_lambdas or other lags, or check whether "
            "the system is stable.",
            ConvergenceWarning,
        )
        stable = [True] * len(members)
    return stable


def _tasks_of_members(shares, table, starts, seeds):
    """Tasks of the fits to the whole record, and from where each of them goes on.

    Fits of hidden states go on from those that were scored: they take long, and of
    these it is known that they are in a good optimum. They begin anew where ``starts``
    is empty, because the scored fits have seen fewer rows. (On a hysteresis, of which
    they had seen 2,000 of 5,000 rows, fits that went on erred half as much again in
    free run.)

    Returns
    -------
    tasks : dict of Task to Start, or to None for fits that begin anew
    """
    tasks = {}
    for candidate, n in shares.items():
        n_starts = 1 if candidate.model == "linear" or n == 1 else n + 1
        folds = [*_good_folds(candidate, table, starts), *[None] * n_starts]
        for seed, fold in zip(seeds, folds[:n_starts], strict=False):
            task = Task(candidate, seed, None, fold)
            tasks[task] = starts.get((candidate, fold))
    # a start of each before the next ones: the time may be over before the last
    return dict(sorted(tasks.items(), key=lambda item: seeds.index(item[0].seed)))


def _good_folds(candidate, table, starts):
    """Folds from whose fits a fit to the whole record can go on, the best first.

    In these the error of the candidate is not far above the least one of all
    candidates. Fits of few cycles begin anew: with more cycles they would be another
    model, see `search_space.FEW_CYCLES`.
    """
    if candidate.max_cycles <= FEW_CYCLES:
        return []
    tried = np.array(list(table.errors.values()))
    least = np.where(np.isnan(tried), np.inf, tried).min(axis=0)
    ratio = table.errors[candidate] / np.maximum(least, LEAST_ERROR)
    good = [k for k in np.argsort(ratio).tolist() if ratio[k] <= SETTLED]
    return [k for k in good if (candidate, k) in starts]
