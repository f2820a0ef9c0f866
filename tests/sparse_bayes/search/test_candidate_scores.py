"""Scores of candidates, and fits that are begun anew."""

import numpy as np
import pytest
from search_cases import FAST, LIMITS, estimator, quietly, record, start_seeds
from sklearn.metrics import root_mean_squared_error

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn._clock import Clock
from skbayesnn._parallel import Shared
from skbayesnn.sparse_bayes.search import candidate_scores, searched_ensemble
from skbayesnn.sparse_bayes.search.candidate_scores import judge
from skbayesnn.sparse_bayes.search.candidates import Candidate
from skbayesnn.sparse_bayes.search.search_space import SearchSpace
from skbayesnn.sparse_bayes.search.tasks import Score, Settings

ONE = Candidate("network", "simulation", 2, 3.0, True)
OTHER = ONE._replace(reg_lambda=30.0)
SEEDS = list(range(100, 108))


class Runner:
    """Gives the scores of a dict by candidate and seed."""

    def __init__(self, scores, max_time=None):
        self.scores, self.tasks = scores, []
        self.data, self.clock = Shared(None), Clock(max_time)
        self.settings, self.verbose = Settings("simulation", {}, {}), False

    def run(self, tasks, samples, fraction):
        self.tasks += tasks
        return [self.scores[task.candidate, task.seed] for task in tasks]


def judged(runner, *rounds):
    """The scores behind rounds of pairs."""

    def run_rounds(comparison, space):
        for pairs in rounds:
            comparison.evaluate(pairs)

    space = SearchSpace(LIMITS, kinds=("network",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidate_scores, "run_rounds", run_rounds)
        return judge(space, runner, SEEDS, {}, 4, 1.0)


def scores(seen, errors):
    """By seed, from the errors on what was seen and on the stretch."""
    pairs = zip(seen, errors, strict=True)
    found = [Score(error, f"network {k}", s) for k, (s, error) in enumerate(pairs)]
    return dict(zip(((ONE, seed) for seed in SEEDS), found, strict=False))


def test_a_poor_fit_is_begun_anew_once():
    """Where it errs far more on what it has seen than the others do."""
    seen = [0.1, 0.4, 0.14, 0.1, np.nan, 0.11, np.nan, np.nan]
    errors = [0.2, 0.9, 0.3, 0.2, np.nan, 0.25, np.nan, np.nan]
    runner = Runner(scores(seen, errors))
    pairs = [(ONE, fold) for fold in range(3)]
    found = judged(runner, pairs, [(ONE, 3)])
    assert [task.seed for task in runner.tasks] == [100, 101, 102, 105, 103]
    assert [task.fold for task in runner.tasks] == [0, 1, 2, 1, 3]
    np.testing.assert_array_equal(found.table.errors[ONE], [0.2, 0.25, 0.3, 0.2])
    assert found.networks[ONE, 1] == "network 5"
    assert found.starts == {}


def test_the_better_fit_on_what_was_seen_counts():
    """Whatever both err on the stretch; and there is no third one."""
    seen = [0.1, 0.4, 0.1, 0.1, np.nan, 0.5, np.nan, np.nan]
    errors = [0.2, 0.9, 0.2, 0.2, np.nan, 0.1, np.nan, np.nan]
    runner = Runner(scores(seen, errors))
    found = judged(runner, [(ONE, 0), (ONE, 1)], [(ONE, 2)])
    assert [task.seed for task in runner.tasks] == [100, 101, 105, 102]
    assert found.table.errors[ONE][1] == 0.9
    assert found.networks[ONE, 1] == "network 1"


def test_a_later_fit_may_show_that_an_earlier_one_is_poor():
    seen = [0.4, 0.1, np.nan, np.nan, 0.1, np.nan, np.nan, np.nan]
    errors = [0.9, 0.2, np.nan, np.nan, 0.3, np.nan, np.nan, np.nan]
    runner = Runner(scores(seen, errors))
    found = judged(runner, [(ONE, 0)], [(ONE, 1)])
    assert [task.seed for task in runner.tasks] == [100, 101, 104]
    assert found.table.errors[ONE][0] == 0.3


def test_candidates_are_not_compared_with_each_other():
    """Nor is anything begun anew of what has failed, or without time."""
    both = scores([0.1, 0.1], [0.2, 0.2])
    both |= {(OTHER, seed): Score(0.9, "poor", 0.4) for seed in SEEDS}
    runner = Runner(both)
    judged(runner, [(c, fold) for fold in range(2) for c in (ONE, OTHER)])
    assert len(runner.tasks) == 4
    failed = scores([0.1, 0.1], [0.2, 0.2])
    failed[ONE, 101] = Score(np.inf, None)
    runner = Runner(failed)
    found = judged(runner, [(ONE, 0), (ONE, 1)])
    assert len(runner.tasks) == 2 and (ONE, 1) not in found.networks
    late = Runner(scores([0.1, 0.9], [0.2, 0.2]), max_time=0.0)
    judged(late, [(ONE, 0), (ONE, 1)])
    assert len(late.tasks) == 2


def test_without_time_there_is_a_fit_of_what_may_be_kept():
    """Linear models tell the lags of networks, which are asked for."""
    arx = Candidate("linear", "prediction", 2, 0.0, True)
    both = scores([0.1, 0.1], [0.2, 0.2])
    both |= {(arx, seed): Score(0.3, "line", 0.3) for seed in SEEDS}
    late = Runner(both, max_time=0.0)
    found = judged(late, [(arx, 0)], [(ONE, 0)], [(ONE, 1)])
    assert [task.candidate for task in late.tasks] == [arx, ONE]
    assert found.not_tried == [(ONE, 1)]


@pytest.mark.parametrize(
    "focus", [pytest.param("simulation", marks=pytest.mark.slow), "prediction"]
)
def test_errors_on_what_a_fit_has_seen(focus, monkeypatch):
    """Recomputed with a model without that stretch."""
    u, y = record(120)
    found = {}

    def noted(*arguments):
        found["scores"] = judge(*arguments)
        return found["scores"]

    monkeypatch.setattr(searched_ensemble, "judge", noted)
    monkeypatch.setattr(candidate_scores, "SETTLED", np.inf)
    cv = quietly(estimator((2,), (3.0,), focus=focus), u, y)
    fits = found["scores"].fits
    (linear,) = {c for c, _ in fits if c.model == "linear"}
    assert {score.seen for (c, _), score in fits.items() if c == linear} == {0.0}
    (network,) = {c for c, _ in fits if c.model == "network" and c.fitted_to == focus}
    fold = np.arange(120) * FAST["cv"] // 120
    for held_out, seed in enumerate(start_seeds(FAST["cv"])):
        seen = np.where(fold == held_out, np.nan, y)
        model = SparseBayesNARXRegressor(
            *(2, 2),
            reg_lambda=3.0,
            include_current_input=True,
            selection="evidence",
            random_state=seed,
            focus=focus,
            **{
                name: getattr(cv, name) for name in ("hidden_layer_sizes", "n_restarts")
            },
            max_cycles=cv.max_cycles,
        )
        quietly(model, u, seen)
        path = model.predict(u, y, horizon=1 if focus == "prediction" else None)
        rows = (fold != held_out) & (np.arange(120) >= 2)
        expected = root_mean_squared_error(y[rows], path[rows]) / y.std()
        assert fits[network, held_out].seen == pytest.approx(expected, rel=1e-6)
