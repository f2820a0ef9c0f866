"""Trainings that are compared: by which chains, and what is told of their lead."""

from types import SimpleNamespace

import numpy as np
from training_points import trial_of

from skbayesnn.rbm.training import trials
from skbayesnn.rbm.training.trials import effort_of


def test_sizes_get_the_temperatures_of_the_one_with_most():
    plain, tempered = trial_of(16, -30.0), trial_of(32, -30.0, n_replicas=5)
    steps = trial_of(64, -30.0, n_gibbs_steps=10)
    expected = dict(n_replicas=5, n_gibbs_steps=10)
    assert effort_of([plain, tempered, steps]) == expected


def of_rounds(name, scores, has_ended=False):
    """A trial that had these scores after its rounds."""
    one = trial_of(8, max(scores))
    history = {"validation_log_likelihood": np.array(scores)}
    training = SimpleNamespace(history=history, n_iter=len(scores))
    outcome = one.outcome._replace(training=training)
    return one._replace(name=name, outcome=outcome, has_ended=has_ended)


def test_verbose_tells_the_lead_that_there_is():
    """An ended training gets no better, so that all of another one counts."""
    tree = of_rounds("tree", [-10.0, -9.0], has_ended=True)
    for scores, lead in [([-12.0, -11.0], 2.0), ([-12.0, -11.0, -9.4], 0.4)]:
        both = [tree, of_rounds("8 units", scores)]
        text = trials._place_of(both[1], both, None)
        expected = f"{lead:.2f} nats behind tree after {len(scores)} rounds"
        assert text.startswith(expected)
        assert ("tree had ended after 2" in text) == (len(scores) == 3)
    # two that go on are compared after as many rounds
    both = [of_rounds("tree", [-10.0, -9.0]), of_rounds("8 units", [-12.0, -9.5, -8.0])]
    text = trials._place_of(both[1], both, None)
    assert text == "0.50 nats behind tree after 2 rounds"
    # where one trains on, the best models count, as they do for the choice
    text = trials._place_of(both[1], both, trials.TRAINED_ON)
    assert text == "its best model is 1.00 nats ahead of that of tree"
