"""Whether a training has learned anything that is not chance."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from training_points import default_settings, ended, small_job

from skbayesnn import ContrastiveDivergenceRBM
from skbayesnn.rbm.training import final_check, gains, start
from skbayesnn.rbm.training.candidate_trainings import Candidate

pytestmark = pytest.mark.usefixtures("few_weighted_states")


@pytest.mark.parametrize(
    ("begins_at", "learned"), [("random", False), ("model", True), ("tree", True)]
)
def test_a_random_start_is_not_learned_though_it_is_better_by_chance(
    begins_at, learned
):
    """Of rows that have chosen among many rounds."""
    a_job, settings = small_job(), default_settings()
    rbm = start.start_model("random", 4, a_job.train, 0)
    independent, chance = final_check._independent(a_job, rbm)
    outcome = ended(a_job, rbm, 0, independent + chance + 2e-3)
    candidate = Candidate(None, begins_at=begins_at, outcome=outcome)
    found = final_check.check(settings, a_job, candidate)
    assert found.learned == learned
    assert found.training.state.rbm.weights.any() == learned


def test_what_has_not_left_its_start_has_learned_nothing(monkeypatch):
    """Though the best of its rounds gains a little on the rows that chose it."""
    monkeypatch.setattr(gains, "PLATEAU_UPDATES", 1000)
    X = np.random.default_rng(1).random((400, 5)) < 0.4
    with pytest.warns(ConvergenceWarning, match="Nothing was learned"):
        model = ContrastiveDivergenceRBM(8, max_updates=2500, random_state=2).fit(X)
    assert not model.components_.any() and model.n_updates_ == 0
    scores = model.history_["validation_log_likelihood"]
    assert scores.max() > scores[0]
