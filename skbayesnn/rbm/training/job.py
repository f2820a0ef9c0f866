"""What stays the same in a fit: its checked data, seed, checkpoint and callbacks."""

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

import numpy as np

from ..._callbacks import Callbacks
from ..._clock import Clock
from ..._parallel import n_threads
from ..._persistence import Checkpoint, Progress, open_checkpoint
from ..._random import Stream, draw_seed, generator
from ..._sklearn import one_blas_thread
from .. import threads
from ..learning import contrastive
from .given_rows import (
    check_rows,
    check_weights,
    counted_rows,
    result_dtype,
    warn_if_no_counts,
)
from .rows import Rows


class ModelCallbacks(Callbacks):
    """Callbacks that may ask for the model so far.

    ``attributes(rbm)`` gives its fitted attributes.
    """

    def __init__(self, estimator, X, y, attributes):
        super().__init__(estimator, X, y)
        self._attributes = attributes

    def end(self, context, rbm):
        """Tell that a part ends, with the model; whether a callback asks to stop."""

        def reconstruct():
            return {**self._attributes(rbm), "_training": None}

        return super().end(context, reconstruct)


class Job(NamedTuple):
    """What stays the same in a fit."""

    train: Rows
    """rows that are learned from"""
    validation: Rows | None
    """rows that are held out or given for validation"""
    dtype: np.dtype
    """of the fitted arrays"""
    seed: int
    """from which the streams of random numbers are derived"""
    checkpoint: Checkpoint
    callbacks: ModelCallbacks | None = None
    whole: Rows | None = None
    """training and held-out rows together; None if none were held out"""
    clock: Clock = Clock()
    """the time that is left"""


class Start(NamedTuple):
    """Where a training begins, unless a checkpoint has a later place."""

    make_state: Callable
    """gives the state of the solver; may be a long computation"""
    history: dict
    """entries of what came before, columns by name"""
    n_iter: int
    """number of these entries"""
    seconds: float = 0.0
    """duration of what came before in the same fit"""


def open_job(estimator, X, y, X_val, resumes, holds_out, sample_weight=None):
    """Check the data of a fit, open its checkpoint, and hold rows out if asked to."""
    rows = check_rows(estimator, X, reset=not resumes)
    _check_no_validation(y, rows)
    weights = check_weights(sample_weight, rows)
    given, X_given = None, None
    if X_val is not None:
        given = check_rows(estimator, X_val, reset=False, name="X_val")
        X_given = given.X
    seed = estimator._seed if resumes else draw_seed(estimator.random_state)
    data = {"X": rows.X, "X_val": X_given, "sample_weight": weights}
    checkpoint = open_checkpoint(estimator, data, seed)
    seed = checkpoint.seed
    rows = counted_rows(rows, weights, seed).in_canonical_order()
    train, validation = rows, given
    if given is None and holds_out:
        try:
            train, validation = hold_out(rows, estimator.validation_fraction, seed)
        except ValueError:
            checkpoint.close()
            raise
    dtype = estimator.components_.dtype if resumes else result_dtype(rows.X)
    whole = None if train is rows else rows
    clock = Clock(estimator.max_time)
    return Job(train, validation, dtype, seed, checkpoint, whole=whole, clock=clock)


def open_partial_job(estimator, X, resumes, sample_weight=None):
    """The same of a ``partial_fit``, which has no checkpoint and no callbacks."""
    n_lone = len(estimator.lone_states_) if resumes else 0
    if n_lone:
        raise ValueError(
            f"partial_fit cannot go on from this model: its {n_lone} lone_states_ have "
            "units whose probabilities it would change, as no chain finds these "
            "states. Set warm_start=True and call fit with all rows, or begin a new "
            "model by partial_fit."
        )
    rows = check_rows(estimator, X, reset=not resumes)
    weights = check_weights(sample_weight, rows)
    seed = estimator._seed if resumes else draw_seed(estimator.random_state)
    rows = counted_rows(rows, weights, seed).in_canonical_order()
    dtype = estimator.components_.dtype if resumes else result_dtype(rows.X)
    return Job(rows, None, dtype, seed, Checkpoint(None, {}, seed))


def _check_no_validation(y, rows):
    """Refuse validation rows in the place of the target, which would not be read."""
    # sparse matrices are no arrays
    shape = y.shape if hasattr(y, "shape") else np.asarray(y, dtype=object).shape
    if shape and shape[0] != len(rows):
        raise ValueError(
            f"y has {shape[0]} rows, and X has {len(rows)}. y is ignored: pass "
            "validation rows by name, fit(X, X_val=...)."
        )


def hold_out(rows, fraction, seed):
    """`split_rows`, with a warning where copies of a row tell what is held out."""
    warn_if_no_counts(rows)
    return split_rows(rows, fraction, seed)


def split_rows(rows, fraction, seed):
    """Training rows, and a fraction that is held out."""
    observations = rows.observations()
    counts = np.bincount(observations)
    order = generator(seed, Stream.VALIDATION_ROWS).permutation(len(counts))
    # until they are enough, the last observation with all of its rows
    n_before = np.cumsum(counts[order]) - counts[order]
    held_out = np.zeros(len(counts), dtype=bool)
    held_out[order[n_before < np.ceil(fraction * len(rows))]] = True
    if held_out.all():
        raise ValueError(
            f"validation_fraction={fraction} leaves no training rows of "
            f"n_samples={len(rows)}. Pass more rows, or validation rows as X_val."
        )
    is_held_out = held_out[observations]
    train, validation = map(np.flatnonzero, (~is_held_out, is_held_out))
    return rows.subset(train), rows.subset(validation)


def resume(job, stage, start):
    """The `Progress` that an earlier call of the same fit has left, else ``start``."""
    progress = job.checkpoint.load(stage)
    if progress is None:
        state = start.make_state()
        progress = Progress(state, start.history, start.n_iter, start.seconds, False)
        # the start may have been a long fit
        job.checkpoint.save(stage, progress)
    return progress


@contextmanager
def computing(n_jobs, learning_rate, limit_blas=True):
    """Compute with ``n_jobs`` threads for products of states, and one for BLAS.

    What is left for BLAS beside them are small sums: on one thread they are faster, by
    a factor of nine, and the same everywhere. A divergence becomes a `ValueError`.
    """
    blas = one_blas_thread() if limit_blas else nullcontext()
    try:
        with blas, threads.using(n_threads(n_jobs)):
            yield
    except contrastive.Diverged as error:
        raise ValueError(
            f"The weights diverged (largest magnitude {error.args[0]:.3g}, expected at "
            f"most {contrastive.MAX_WEIGHT:.0f}). Reduce "
            f"learning_rate={learning_rate}, momentum, weight_decay, the scale of init "
            "or, if units are added, radius."
        ) from error
