"""Trainings that are compared, in stages that are as long for each of them.

A `Trial` is a number of units and a start. It is trained for some rounds, pauses, and
can go on from where it is.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..learning import contrastive
from . import adaptive, gains
from .job import Start

# A smaller gain may be chance, nats.
LEAST = 0.02
# Fraction of the whole gain by which trials differ without a meaning for the training
# that follows.
_HARDLY = 0.01
# The same, as a fraction of what twice the updates have gained the best: at first, all
# sizes learn the same, and large ones more slowly.
_HARDLY_SO_FAR = 0.1
# Name of the stage in which a trial trains for longer than the others.
TRAINED_ON = "trained on"


class Trial(NamedTuple):
    """A size and its start, with how far it came."""

    name: str
    """as it is printed, and called in the checkpoint"""
    n_units: int
    """hidden units"""
    make_state: Callable
    """``make_state(job, n_units)`` gives the first state of a training"""
    outcome: adaptive.Outcome | None = None
    """of its rounds so far; None before the first"""
    gain: float = 0.0
    """what the last doubling of its updates has gained, nats"""
    has_ended: bool = False
    """whether the validation rows lose, a weight decay was given, or the step size
    falls: by more updates alone it becomes no better"""
    compared_with: "Trial | None" = None
    """the best one before it, with which another start than random weights is compared;
    None for random weights"""
    is_tree: bool = False
    """whether it starts at a model of pairs alone"""

    @property
    def score(self):
        """Validation log-likelihood of the best model so far, nats."""
        return self.outcome.best.validation

    @property
    def n_iter(self):
        """Rounds so far."""
        return 0 if self.outcome is None else self.outcome.training.n_iter

    @property
    def is_on_plateau(self):
        """Whether it is still where it started, and may yet leave."""
        has_gained = gains.has_left(self.outcome.first_score, self.score)
        n_updates = self.outcome.training.history["n_updates"][-1]
        may_leave = n_updates < gains.PLATEAU_UPDATES and not self.has_ended
        return may_leave and not has_gained

    def score_after(self, n_rounds):
        """The score that it had after so many rounds."""
        scores = self.outcome.training.history["validation_log_likelihood"]
        return max(self.outcome.first_score, scores[:n_rounds].max())


class Ended(Exception):
    """The comparison has ended: by Ctrl-C, a callback, or as its time is over.

    The argument is the last training, or the best one where the time is over.
    """


def run_trial(
    settings,
    job,
    task,
    trials,
    trial,
    n_rounds,
    effort=None,
    *,
    stage=None,
    until=gains.overfits_or_cools,
):
    """Train a trial on for so many rounds at most, and keep it in ``trials``.

    Parameters
    ----------
    trials : dict
        All that ran, by name; updated.
    n_rounds : int or inf
        All told, with those of earlier stages.
    effort : dict or None
        Changes of the plan, as `effort_of` gives them; None for a new trial.
    stage : str or None
        Name of the stage; by default the number of rounds.
    until : callable
        Of `adaptive.train`: the trial pauses where it is true.

    Returns
    -------
    trial : Trial

    Raises
    ------
    Ended
        If Ctrl-C or a callback ends the fit, with the trial kept before; or before
        another training, if the time for them is over.
    """
    if trials and job.clock.over(adaptive.COMPARED):
        raise Ended(best_of(trials.values()).outcome.training)
    name, adapting = trial.name, None
    if trial.outcome and until(settings, trial.outcome.adapting):
        return trial
    start = Start(partial(trial.make_state, job, trial.n_units), {}, 0)
    if trial.outcome is not None:
        name = f"{name}, {stage or f'{n_rounds} rounds'}"
        training, adapting = trial.outcome.training, trial.outcome.adapting
        adapting = adapting._replace(plan=adapting.plan._replace(**effort))
        start = start._replace(history=training.history, n_iter=training.n_iter)
    start = start._replace(seconds=elapsed(trials.values()))
    size_task = job.callbacks.begin(task.subcontext(name, max_subtasks=None))
    outcome = adaptive.train(
        settings, job, start, name, size_task,
        adapting=adapting, n_rounds=n_rounds, until=until,
    )  # fmt: skip
    training = outcome.training
    if not training.interrupted:
        rbm = contrastive.model(settings.update, outcome.best.state)
        stopped = job.callbacks.end(size_task, rbm) or training.stopped
        outcome = outcome._replace(training=training._replace(stopped=stopped))
    has_ended = gains.overfits_or_cools(settings, outcome.adapting)
    gain = 0.0 if has_ended else gains.gain_since(outcome.adapting, 0.5)
    gain = 0.0 if np.isnan(gain) else gain
    trial = trial._replace(outcome=outcome, gain=gain, has_ended=has_ended)
    trials[trial.name] = trial
    if settings.verbose:
        print(f"{name}: {_place_of(trial, trials.values(), stage)}")
    if outcome.training.interrupted or outcome.training.stopped:
        raise Ended(outcome.training)
    return trial


def _place_of(trial, trials, stage):
    """How a trial does beside the best of the others, in words."""
    others = [one for one in trials if one.name != trial.name]
    if not others:
        return "the first of the sizes"
    best = best_of(others)
    if stage == TRAINED_ON:
        # each by its best model, however long that was trained: so they are chosen
        lead = trial.score - best.score
        return f"its best model is {_lead(lead)} that of {best.name}"
    # one that has trained for longer is ahead for that alone, unless the other one has
    # ended and gets no better
    both = trial, best
    rounds = [one.n_iter for one in both]
    going_on = [n for n, one in zip(rounds, both, strict=True) if not one.has_ended]
    n_rounds = min(going_on, default=max(rounds))
    lead = trial.score_after(n_rounds) - best.score_after(n_rounds)
    text = f"{_lead(lead)} {best.name} after {n_rounds} rounds"
    for one, n in zip(("it", best.name), rounds, strict=True):
        if n < n_rounds:
            text += f"; {one} had ended after {n}"
    return text


def _lead(lead):
    return f"{abs(lead):.2f} nats {'ahead of' if lead >= 0.0 else 'behind'}"


def elapsed(trials):
    """Duration of all that has run, seconds."""
    ends = [one.outcome.training.history["seconds"][-1] for one in trials]
    return max(ends, default=0.0)


def records_of(trials):
    """Entries of the history: each start with its gain over the best before.

    That of a start other than random weights is over the one that it is compared with,
    after as many rounds.
    """
    records, best = [], None
    for one in trials:
        training, point = one.outcome.training, one.outcome.best
        before = best.score if best else one.outcome.first_score
        if one.compared_with is not None:
            best = one.compared_with
            before = best.score_after(training.n_iter)
        records.append(
            {
                "n_components": one.n_units,
                "change": one.n_units - (best.n_units if best else 0),
                "gain": one.score - before,
                "from_small_weights": float(one.compared_with is None),
                "n_updates": training.history["n_updates"][-1],
                "log_likelihood": point.log_likelihood,
                "validation_log_likelihood": point.validation,
                "seconds": training.history["seconds"][-1],
            }
        )
        best = one if best is None or one.score > best.score else best
    return records


def best_of(trials):
    return max(trials, key=lambda one: one.score)


def whole_gain(trials):
    """What the best of them has gained, nats."""
    best = best_of(trials)
    return best.score - best.outcome.first_score


def hardly(trials):
    """Difference without a meaning, nats."""
    so_far = _HARDLY_SO_FAR * best_of(trials).gain
    return max(LEAST, _HARDLY * whole_gain(trials), so_far)


def near_best(trials):
    """Those that are hardly behind the best."""
    least = best_of(trials).score - hardly(trials)
    return [one for one in trials if one.score >= least]


def effort_of(trials):
    """Temperatures and Gibbs steps for all of them: those of the one with the most.

    Which size needs them first is chance, and with them a model is ahead.
    """
    of_trials = [one.outcome.adapting.plan for one in trials]
    return {
        name: max(getattr(plan, name) for plan in of_trials)
        for name in ("n_replicas", "n_gibbs_steps")
    }
