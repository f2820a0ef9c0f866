"""The fits of a search: run in parallel, reported, and kept in a checkpoint."""

from typing import NamedTuple

from joblib import delayed

from ..._callbacks import Callbacks
from ..._clock import Clock
from ..._parallel import Shared, in_order, with_shared
from ..._persistence import Checkpoint, Progress
from .candidate_fits import fit_or_score, restored, to_store
from .tasks import Settings


class Runner(NamedTuple):
    """What all fits of a search have in common.

    data : Shared of CutRecord
        The whole record, through which free runs are scored.
    settings : Settings
    verbose : whether to print a line per fit of a network
    callbacks : what the callbacks of the search are told
    fit_task : their context of the whole search
    """

    data: Shared
    settings: Settings
    clock: Clock
    checkpoint: Checkpoint
    n_jobs: int | None
    verbose: bool
    callbacks: Callbacks
    fit_task: object

    def run(self, tasks, samples, fraction=1.0, begun=None):
        """Fitted models, or a `Score` for tasks with a fold, in their order.

        Behind this fraction of the time no further fit begins but the first. A callback
        that asks to stop ends the time.

        Parameters
        ----------
        tasks : list of Task
            Of one round: all with a fold, or all without.
        samples : dict of str to Shared of CutRecord
            What linear models and networks are fitted to.
        begun : dict of Task to Start
            Where those begin that go on from another fit.
        """
        if not tasks:
            return []
        found = {task: self.checkpoint.load(task.name) for task in tasks}
        missing = [task for task in tasks if found[task] is None]
        jobs = self._jobs(missing, samples, fraction, begun or {})
        fits = in_order(jobs, self.n_jobs)
        results, n_fitted, begin = [], 0, self.clock.passed
        a_round = self._begin_round(tasks)
        for task in tasks:
            part = self.callbacks.begin(a_round.subcontext("fit"))
            sample = samples[task.candidate.model]
            if found[task] is None:
                # the time may be over
                result = next(fits, None)
                if result is None:
                    self.callbacks.end(part)
                    break
                n_fitted += 1
                self._keep(task, result)
            else:
                stored = found[task].state
                result = restored(stored, task, self.settings, sample.value)
            results.append(result)
            if self.callbacks.end(part):
                self.clock.stop()
            # linear models take no time: `candidate_scores` tells of all at once
            if self.verbose and (task.fold is None or not task.candidate.is_arx):
                a_fit = (self.clock.passed - begin) / max(n_fitted, 1)
                _report(task, result, len(missing) - n_fitted, a_fit)
        # joblib warns about a generator that is not exhausted
        next(fits, None)
        if self.callbacks.end(a_round):
            self.clock.stop()
        return results

    def _begin_round(self, tasks):
        """The context of fits that are scored, or of those of the ensemble."""
        of_ensemble = any(task.fold is None for task in tasks)
        name = "ensemble" if of_ensemble else "round"
        context = self.fit_task.subcontext(name, max_subtasks=len(tasks))
        return self.callbacks.begin(context)

    def _jobs(self, tasks, samples, fraction, begun):
        for number, task in enumerate(tasks):
            if number and self.clock.over(fraction):
                return
            sample = samples[task.candidate.model]
            arguments = task, self.settings, self.data, sample, begun.get(task)
            yield delayed(with_shared)(fit_or_score, *arguments)

    def _keep(self, task, result):
        # a fit to the whole record takes longest, and is the last of a search
        at_once = task.fold is None
        progress = Progress(to_store(result), {}, 0, self.clock.passed, at_once)
        self.checkpoint.save(task.name, progress)


def _report(task, result, n_left, a_fit):
    where = "whole record" if task.fold is None else f"stretch {task.fold + 1}"
    what = "fitted" if task.fold is None else f"error {result.error:.4g}"
    text = f"{task.candidate}, {where}: {what}"
    if n_left:
        fits = "fit" if n_left == 1 else "fits"
        text += f"; {n_left} more {fits} in this round, about {n_left * a_fit:.0f} s"
    print(text)
