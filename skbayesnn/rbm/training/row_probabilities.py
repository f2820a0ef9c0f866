"""Log probabilities of rows by a model, up to the partition function."""

import numpy as np

from ..._random import Stream, generator
from .. import model as rbm_model

# Training rows whose log-likelihood is compared with that of the validation rows.
MAX_MONITORED = 5000


def monitored_rows(train, seed, n_rows):
    """At most so many training rows, to compare the validation rows with."""
    if len(train) <= n_rows:
        return train
    order = generator(seed, Stream.MONITORED_ROWS).permutation(len(train))
    return train.subset(np.sort(order[:n_rows]))


def free_energy_gap(rbm, train, validation):
    """Mean log-likelihood of the training rows minus that of the validation rows."""
    return mean_log_probability(rbm, train) - mean_log_probability(rbm, validation)


def mean_log_probability(rbm, rows):
    """Mean unnormalised log probability, in nats per sample."""
    return float(log_probabilities(rbm, rows).mean())


def log_probabilities(rbm, rows):
    """Unnormalised log probability of each row, in nats."""
    return np.concatenate(
        [rbm_model.unnormalised_log_probability(rbm, V) for V in rows.blocks()]
    )


def error_of_lead(rows, one, other):
    """Standard error of the difference of two models' mean log-likelihoods of rows."""
    differences = log_probabilities(one, rows) - log_probabilities(other, rows)
    n = len(differences)
    return float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf


def has_risen(gaps, max_gap):
    """Whether the last gap exceeds the smallest by more than ``max_gap``."""
    return bool(gaps[-1] - np.nanmin(gaps) > max_gap)
