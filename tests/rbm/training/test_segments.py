"""Updates of an automatic training, one segment after another."""

from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rbm_models import random_states
from training_points import job_of, settings_of

from skbayesnn.rbm.learning import contrastive
from skbayesnn.rbm.training import (
    segments,
)
from skbayesnn.rbm.training.path import Segment
from skbayesnn.rbm.training.start import start_model, start_training


@pytest.mark.parametrize("n_before", [0, 1, 3, 4, 9])
def test_batches_continue_where_they_were(n_before):
    """Each epoch has every row once, in a new order."""
    job = job_of(random_states(22, 3))
    batches = [list(b) for b in islice(segments.batches_from(job, 3, 0), 12)]
    for epoch in range(3):
        rows = np.concatenate(batches[4 * epoch : 4 * epoch + 4])
        assert_array_equal(np.sort(rows), np.arange(11))
    assert batches[:4] != batches[4:8]
    later = islice(segments.batches_from(job, 3, n_before), 12 - n_before)
    assert [list(batch) for batch in later] == batches[n_before:]


@pytest.mark.parametrize("n_replicas", [1, 3])
def test_segments_make_the_updates_of_one(n_replicas):
    """At a constant step size; the given state stays as it is."""
    settings = settings_of(batch_size=7)
    job = job_of(random_states(60, 8))
    rbm = start_model("random", 5, job.train, 0)
    start = start_training(rbm, job.train, 7, 0)
    kept = contrastive.copy(start)

    def run(state, n_updates, n_before):
        segment = Segment(n_updates, 0.1, 0.1, 2, 0.01, n_replicas)
        state, _, rate = segments.run_segment(
            settings, job, contrastive.copy(state), segment, n_before
        )
        assert 0.0 < rate <= 0.1 + 1e-9
        return state

    whole = run(start, 20, 0)
    parts = run(run(start, 13, 0), 7, 13)
    assert_array_equal(whole.rbm.weights, parts.rbm.weights)
    assert whole.step == parts.step == start.step + 20
    assert contrastive.n_replicas(whole) == n_replicas
    for one, other in zip(start.rbm[:3], kept.rbm[:3], strict=True):
        assert_array_equal(one, other)
    assert not np.array_equal(whole.rbm.weights, start.rbm.weights)


@pytest.mark.parametrize("n_before", [0, 20_000])
def test_steps_fall_with_the_root_of_their_number(n_before):
    """Behind the first 2,000, also of a training that is continued."""
    job, settings = job_of(random_states(60, 8)), settings_of(learning_rate=0.1)
    rbm = start_model("random", 5, job.train, 0)
    state = start_training(rbm, job.train, 7, 0)._replace(step=1 + n_before)
    segment = Segment(3, 0.1, 0.1, 1, 0.0, 1)
    _, _, rate = segments.run_segment(settings, job, state, segment, 0)
    expected = 0.1 * np.sqrt(0.1) if n_before else 0.1
    assert rate == pytest.approx(expected, rel=1e-3)
