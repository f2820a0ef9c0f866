"""The outcome of a fit: the attributes of its estimator.

Files that earlier versions have saved hold the name of this module.
"""

from typing import NamedTuple

import numpy as np

from ..._saved_state import saved_as

# Training rows that an estimator keeps.
_KEPT = 2000


@saved_as("Seen")
class Seen(NamedTuple):
    """What an estimator keeps of its training data."""

    rates: np.ndarray
    """(n_features,) fraction of ones, float64"""
    n_samples: int
    """number of rows"""
    some: np.ndarray = np.zeros((0, 0), dtype=np.uint8)
    """(n_some, n_bytes) at most 2,000 of the rows, a bit for each feature; none in
    files of earlier versions"""

    @classmethod
    def of(cls, rows):
        """Of the rows alone."""
        return cls(rows.mean(), len(rows), _bits(rows.spread(_KEPT)))

    @classmethod
    def of_states(cls, states):
        """Of states, in place of data."""
        rates = states.mean(axis=0, dtype=np.float64)
        return cls(rates, len(states), _bits(states[:_KEPT]))

    @property
    def states(self):
        """The rows that were kept, (n_some, n_features) uint8."""
        if not len(self.some):
            return np.zeros((0, len(self.rates)), dtype=np.uint8)
        return np.unpackbits(self.some, axis=1, count=len(self.rates))

    @classmethod
    def by_fit(cls, job, repeats):
        """Of the rows behind the model of a fit: all, if its training is repeated."""
        return cls.of(job.whole if repeats and job.whole is not None else job.train)

    def add(self, rows):
        """With more rows."""
        n_samples = self.n_samples + len(rows)
        fraction = len(rows) / n_samples
        rates = self.rates + fraction * (rows.mean() - self.rates)
        n_kept = min(_KEPT, len(self.some) + len(rows))
        # each part as many as its fraction of the rows, or what there is
        n_new = min(len(rows), max(round(fraction * n_kept), n_kept - len(self.some)))
        n_old = n_kept - n_new
        old = self.some[np.arange(n_old) * len(self.some) // max(n_old, 1)]
        new = _bits(rows.spread(n_new))
        some = np.concatenate([old, new]) if len(old) else new
        return Seen(rates, n_samples, some)


def _bits(states):
    """States, or probabilities of them, with a bit for each value."""
    return np.packbits(states > 0.5, axis=1)


def model_attributes(seen, dtype, seed, rbm, lone_states=()):
    """Fitted attributes that a model determines.

    ``lone_states`` (n_lone, n_features) have the last units.
    """
    shape = len(lone_states), rbm.weights.shape[1]
    return {
        "components_": rbm.weights.astype(dtype),
        "intercept_hidden_": rbm.hidden.astype(dtype),
        "intercept_visible_": rbm.visible.astype(dtype),
        "unit_weights_": rbm.unit_weights.astype(dtype),
        "base_intercept_": rbm.units.natural_parameters(seen.rates, seen.n_samples),
        "n_components_": len(rbm.weights),
        "_seen": seen,
        "_seed": int(seed),
        "_units": rbm.units,
        "lone_states_": np.array(lone_states, dtype=bool).reshape(shape),
        "_estimates": {},
    }


def store(estimator, training, attributes, continues=False):
    """Set the fitted attributes of an estimator; whether another call is to go on."""
    vars(estimator).update(
        attributes,
        history_=training.history,
        n_iter_=training.n_iter,
        _training=training.state,
        _continues=continues,
    )
