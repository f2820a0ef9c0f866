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
    """Fits of the candidates that were kept to the whole record.

    candidates : list of Candidate, the best first
    models : list of estimators, those of the best candidate first
    weights : (n_members,), sum to one
    """

    candidates: list
    models: list
    weights: np.ndarray


def learn_members(shares, scores, seeds, runner):
    """The `Members` of an ensemble, so many of each candidate as `shares` says.

    Each candidate is fitted from several starts, of which those that ended in a worse
    optimum are left out, and all that err far more here than where they were scored.
    The latter take their weight along: a candidate that is lost from most of its starts
    is worth less than its held-out error says. A linear model has one optimum, and no
    second start.
    """
    table = scores.table
    data, focus = runner.data.value, runner.settings.focus
    samples = samples_to_fit(data)
    more = has_more_rows(samples["states"].value, data)
    starts = {} if more else scores.starts
    begun = _tasks_of_members(shares, table, starts, seeds)
    tasks = list(begun)
    with at_hand(runner.data, *samples.values()):
        models = runner.run(tasks, samples, begun=begun)
    members, weights, lost = [], [], []
    for candidate, n in shares.items():
        pairs = zip(tasks, models, strict=False)
        of_this = [model for task, model in pairs if task.candidate == candidate]
        of_this = settled(of_this, n, data, focus)
        limit = LOST * table.held_out(candidate)
        lost += [error_over_record(m, data, focus) > limit for m in of_this]
        members += of_this
        weights += [n / len(of_this) for _ in of_this]
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
    members = [m for m, good in zip(members, stable, strict=True) if good]
    weights = np.array(weights)[stable]
    return Members(list(shares), members, weights / weights.sum())


def _tasks_of_members(shares, table, starts, seeds):
    """Fits to the whole record: dict of Task to Start, None for those that begin anew.

    Fits of hidden states that were scored go on: they take long, and of these it is
    known that they are in a good optimum. (Not those to fewer rows: what they have
    pruned is missing. On a hysteresis, of which they had seen 2,000 of 5,000 rows,
    errors of a free run were half as large again.)
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
    """Stretches behind whose fits a fit to the whole record goes on, the best first.

    Those whose error is not far above that of the best candidate. Fits of few cycles
    begin anew, because more of them are another model.
    """
    if candidate.max_cycles <= FEW_CYCLES:
        return []
    tried = np.array(list(table.errors.values()))
    least = np.where(np.isnan(tried), np.inf, tried).min(axis=0)
    ratio = table.errors[candidate] / np.maximum(least, LEAST_ERROR)
    good = [k for k in np.argsort(ratio).tolist() if ratio[k] <= SETTLED]
    return [k for k in good if (candidate, k) in starts]
