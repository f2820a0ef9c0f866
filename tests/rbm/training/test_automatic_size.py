"""Fits that choose their number of units, by data whose distribution is known."""

import contextlib
import io
import re
import warnings
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from grids import first_by_default
from interrupts import interrupt
from numpy.testing import assert_array_equal
from rbm_estimators import (
    assert_same_model,
    assert_same_path,
    automatic,
    digits,
    independent_score,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM, _persistence
from skbayesnn.exceptions import MixingWarning
from skbayesnn.rbm.learning import contrastive, growth
from skbayesnn.rbm.training import adaptive, gains, pair_tree, sizes, tracking

pytestmark = pytest.mark.usefixtures("few_weighted_states")

N_FEATURES, NOISE = 20, 0.05
# Modes of a mixture: k + 1 of them are what k units can hold.
MODES = np.random.default_rng(3).random((4, N_FEATURES)) < 0.5


def mixture_data(n_samples, seed=0):
    """Rows of one of the modes, through noise."""
    rng = np.random.default_rng(seed)
    V = MODES[rng.integers(len(MODES), size=n_samples)]
    return V ^ (rng.random(V.shape) < NOISE)


def mixture_score(X):
    """Mean log-likelihood of the distribution that they are drawn from."""
    flipped = (X[:, None] != MODES).sum(axis=2)
    logs = flipped * np.log(NOISE) + (N_FEATURES - flipped) * np.log1p(-NOISE)
    return np.mean([naive.log_sum(row) for row in logs]) - np.log(len(MODES))


def choosing(max_updates=300, **parameters):
    tuner = ContrastiveDivergenceRBM(max_updates=max_updates)
    defaults = dict(n_chains=100, n_search_rows=200, random_state=0)
    return FrankWolfeRBM(fine_tune=tuner, **{**defaults, **parameters})


def begin_with_one(patch):
    patch.setattr(sizes, "_FIRST", 1)
    patch.setattr(sizes, "MAX_UNITS", 8)
    patch.setattr(pair_tree, "MAX_FEATURES", 0)


@pytest.fixture
def from_one(monkeypatch):
    """Comparisons begin with one unit, are short, and have no tree."""
    begin_with_one(monkeypatch)


@pytest.fixture
def up_to_four(from_one, monkeypatch):
    """Short comparisons of one, two and four units, of which none leaves at once."""
    never_end(monkeypatch)
    monkeypatch.setattr(sizes, "MAX_UNITS", 4)
    monkeypatch.setattr(sizes, "_STAGES", (2, 3))


def never_end(monkeypatch):
    """Sizes double up to the limit."""
    monkeypatch.setattr(sizes, "_has_enough_units", lambda trials: False)


def compared_in(model):
    """Columns of the history, for the sizes alone."""
    history = model.history_
    of_sizes = np.isfinite(history["gain"])
    assert of_sizes[: of_sizes.sum()].all()
    return {name: values[of_sizes] for name, values in history.items()}


@pytest.mark.slow
def test_a_mixture_is_learned_by_a_few_units(from_one):
    """Close to the likelihood of the distribution itself, on new rows."""
    X, X_new = mixture_data(1000), mixture_data(2000, seed=1)
    model = choosing().fit(X)
    assert 2 <= model.n_components_ <= 8
    found, best = model.score(X_new), mixture_score(X_new)
    whole = best - independent_score(X_new, X)
    assert whole > 5.0
    assert best - found < 0.1 * whole


@pytest.fixture(scope="module")
def raced():
    """A fit by a comparison, and what it prints."""
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        begin_with_one(patch)
        model = choosing(verbose=True).fit(mixture_data(300))
    return model, printed.getvalue()


def test_the_race_is_recorded(raced):
    model, _ = raced
    compared = compared_in(model)
    # sizes double; then units that were searched run at that of the best
    n_random = len(compared["gain"]) - 1
    assert_array_equal(compared["n_components"][:-1], 2 ** np.arange(n_random))
    assert compared["n_components"][-1] == model.n_components_
    assert compared["change"][0] == 1
    assert_array_equal(compared["from_small_weights"], [1.0] * n_random + [0.0])
    assert (compared["n_updates"] <= 300).all()
    # gains are differences of the validation likelihood to the best before
    validation, gain = compared["validation_log_likelihood"], compared["gain"]
    for k in range(1, n_random):
        assert np.isclose(gain[k], validation[k] - validation[:k].max(), atol=1e-9)
    # a size that is left out would have gained little
    chosen = list(compared["n_components"]).index(model.n_components_)
    whole = validation[chosen] - (validation[0] - gain[0])
    assert whole > 1.0
    assert validation[chosen] > validation[:-1].max() - 0.02 * whole
    # the rounds of the winner begin within the comparison
    seconds = model.history_["seconds"]
    rounds = seconds[len(gain) :]
    assert (np.diff(rounds) > 0.0).all() and rounds[0] <= compared["seconds"].max()
    assert compared["seconds"].max() < rounds[-1] == seconds.max()


@pytest.mark.slow
def test_what_is_recorded_is_by_as_many_updates(from_one, monkeypatch):
    """Also where the winner trains on until it overtakes a tree."""
    never_end(monkeypatch)
    monkeypatch.setattr(sizes, "MAX_UNITS", 2)
    monkeypatch.setattr(sizes, "_STAGES", (2, 3))
    monkeypatch.setattr(pair_tree, "MAX_FEATURES", 100)
    train, trained = adaptive.train, []

    def ahead(settings, job, start, stage, task, **more):
        outcome = train(settings, job, start, stage, task, **more)
        if stage.startswith("tree of"):
            best = outcome.best._replace(validation=-1.0)
            outcome = outcome._replace(best=best)
        return outcome

    def train_both(run, tree, winner):
        trained.append(run(winner, 5, {}))
        return trained[-1]

    monkeypatch.setattr(adaptive, "train", ahead)
    monkeypatch.setattr(sizes, "_train_both", train_both)
    X = mixture_data(300)
    model = choosing(max_updates=800).fit(X, X_val=mixture_data(200, seed=1))
    compared = compared_in(model)
    (longer,) = trained
    assert longer.outcome.training.n_iter == 5
    assert (compared["n_updates"] <= 300).all()
    # the likelihoods are those of then
    validation, gain = compared["validation_log_likelihood"], compared["gain"]
    assert np.isclose(gain[1], validation[1] - validation[0], atol=1e-9)
    shown = validation[list(compared["n_components"]).index(longer.n_units)]
    assert shown == longer.score_after(3)


@pytest.fixture(scope="module")
def spied():
    """A fit whose every training is recorded: settings, arguments and outcome."""
    train, calls = adaptive.train, []

    def spy(settings, job, start, stage, task, **more):
        outcome = train(settings, job, start, stage, task, **more)
        calls.append(
            SimpleNamespace(settings=settings, stage=stage, outcome=outcome, **more)
        )
        return outcome

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptive, "train", spy)
        patch.setattr(sizes, "_FIRST", 1)
        patch.setattr(sizes, "MAX_UNITS", 4)
        # stages that a short fit reaches
        patch.setattr(sizes, "_STAGES", (2, 4, 6))
        model = choosing(max_updates=800).fit(mixture_data(300))
    return SimpleNamespace(model=model, calls=calls)


@pytest.mark.slow
def test_the_winner_trains_on_from_where_it_is(spied):
    *compared, last = spied.calls
    assert last.stage == "training" and last.outcome.measured is not None
    ends = {id(call.outcome.adapting): call for call in compared}
    winner = ends[id(last.adapting)]
    rounds = winner.outcome.training.history
    assert len(rounds["n_updates"]) > 0
    # its rounds follow the entries of the comparison
    history = spied.model.history_
    n_compared = np.isfinite(history["gain"]).sum()
    for name in set(rounds) - {"seconds"}:
        later = history[name][n_compared:][: len(rounds[name])]
        assert_array_equal(later, rounds[name])
    best = last.outcome.best
    before = winner.outcome.adapting.best.path
    assert best.path[: len(before)] == before


@pytest.mark.slow
def test_trials_go_on_from_stage_to_stage(spied):
    """Nothing is trained twice, and what has ended runs no more."""
    *compared, _ = spied.calls
    by_stage = {call.stage: call for call in compared}
    assert len(by_stage) == len(compared)
    later = [call for call in compared if "rounds" in call.stage]
    assert later
    for call in later:
        n_rounds = call.n_rounds
        before = call.stage.split(",")[0]
        if n_rounds == 6:
            before += ", 4 rounds"
        earlier = by_stage[before].outcome
        assert not gains.overfits_or_cools(call.settings, earlier.adapting)
        assert earlier.training.n_iter < call.outcome.training.n_iter <= n_rounds
        columns = call.outcome.training.history["n_updates"]
        old = earlier.training.history["n_updates"]
        assert_array_equal(columns[: len(old)], old)
    # no cool-down in a comparison, and no estimate in both directions
    for call in compared:
        assert call.outcome.measured is None
        assert (call.outcome.training.history["learning_rate"] > 0.05).all()


@pytest.mark.parametrize(
    ("gaps", "likelihoods", "expected"),
    [
        # the chains of the winner move; those of the first smaller size; those of none
        pytest.param([0.1], [-9.0], 0, marks=pytest.mark.slow),
        pytest.param([5.0, 0.1], [-9.0, -8.0], 1, marks=pytest.mark.slow),
        ([5.0, 5.0, 5.0], [-8.0, -7.0, -9.0], 1),
    ],
    ids=range(3),
)
def test_smaller_sizes_follow_where_chains_do_not_move(
    gaps, likelihoods, expected, up_to_four, monkeypatch
):
    train, ended = adaptive.train, []

    def with_gaps(settings, job, start, stage, task, **more):
        outcome = train(settings, job, start, stage, task, **more)
        if outcome.measured is None:
            return outcome
        gap, least = gaps[len(ended)], likelihoods[len(ended)]
        measured = tracking.Measured(least, least + gap, least, 0.1, 0.0)
        rbm = contrastive.model(settings.update, outcome.best.state)
        ended.append((stage, more["adapting"], outcome, rbm))
        return outcome._replace(measured=measured)

    monkeypatch.setattr(adaptive, "train", with_gaps)
    data = mixture_data(200), mixture_data(50, seed=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MixingWarning)
        model = choosing(max_updates=300).fit(data[0], X_val=data[1])
    # what is returned in the end is in doubt or not
    assert bool(caught) == (gaps[expected] > 1.0)
    n_units = [len(rbm.weights) for *_, rbm in ended]
    assert len(ended) == len(gaps) and n_units == sorted(set(n_units))[::-1]
    of_others = [f"training, {n} units" for n in n_units[1:]]
    assert [stage for stage, *_ in ended] == ["training", *of_others]
    # each goes on from where the comparison has left it
    assert all(adapting.current.n_updates > 0 for _, adapting, *_ in ended)
    *_, outcome, rbm = ended[expected]
    assert model.n_components_ == len(rbm.weights)
    assert_array_equal(model.components_, rbm.weights)
    rounds = outcome.training.history["n_updates"]
    assert_array_equal(model.history_["n_updates"], rounds)


@pytest.mark.parametrize(
    ("overfits", "likelihoods", "expected"),
    [
        # the winner does not; the next size is worse; is better; so is one more
        pytest.param(False, [-9.0], 0, marks=pytest.mark.slow),
        pytest.param(True, [-9.0, -9.5], 0, marks=pytest.mark.slow),
        (True, [-9.0, -8.0, -8.5], 1),
        pytest.param(True, [-9.0, -8.0, -7.0], 2, marks=pytest.mark.slow),
    ],
    ids=range(4),
)
def test_larger_sizes_follow_where_a_model_overfits(
    overfits, likelihoods, expected, up_to_four, monkeypatch
):
    monkeypatch.setattr(sizes, "_chosen", lambda trials: trials[0])
    train, further, last = adaptive.train, [], []

    def measured(settings, job, start, stage, task, **more):
        outcome = train(settings, job, start, stage, task, **more)
        if not stage.endswith(", trained on"):
            rbm = contrastive.model(settings.update, outcome.best.state)
            last.append((stage, more["adapting"], rbm))
            return outcome
        value = likelihoods[len(further)]
        decay = 0.1 if overfits else 0.0
        best = outcome.best._replace(validation=value)
        plan = outcome.adapting.plan._replace(weight_decay=decay)
        adapting = outcome.adapting._replace(best=best, plan=plan)
        further.append((stage, adapting))
        return outcome._replace(best=best, adapting=adapting)

    monkeypatch.setattr(adaptive, "train", measured)
    data = mixture_data(200), mixture_data(50, seed=1)
    model = choosing(max_updates=600).fit(data[0], X_val=data[1])
    tried = [f"{n} units, trained on" for n in (1, 2, 4)]
    assert [stage for stage, _ in further] == tried[: len(likelihoods)]
    # only the best of them trains on, from where it has begun to overfit
    stage, begun, rbm = last[-1]
    assert_array_equal(model.components_, rbm.weights)
    assert stage == "training" and begun is further[expected][1]
    assert last[-2][0] != "training"
    assert model.n_components_ == [1, 2, 4][expected]
    # what the comparison has shown is by as many updates for all sizes
    assert len(set(compared_in(model)["n_updates"])) == 1


@pytest.mark.parametrize(
    "end", first_by_default(["after a round", "at once", "by a callback"])
)
def test_what_is_complete_outlives_the_end_of_another_training(
    end, from_one, monkeypatch
):
    never_end(monkeypatch)
    monkeypatch.setattr(sizes, "MAX_UNITS", 2)
    monkeypatch.setattr(sizes, "_STAGES", (2, 3))
    train, complete = adaptive.train, []

    def ended(settings, job, start, stage, task, **more):
        if complete and end == "at once":
            raise KeyboardInterrupt
        outcome = train(settings, job, start, stage, task, **more)
        if outcome.measured is None:
            return outcome
        if not complete:
            complete.append(contrastive.model(settings.update, outcome.best.state))
            measured = tracking.Measured(-2.0, -2.0, -7.0, 0.1, 0.0)
            return outcome._replace(measured=measured)
        how = {"stopped" if "callback" in end else "interrupted": True}
        return outcome._replace(training=outcome.training._replace(**how))

    monkeypatch.setattr(adaptive, "train", ended)
    data = mixture_data(200), mixture_data(50, seed=1)
    model = choosing(max_updates=300, warm_start=True)
    if end == "by a callback":
        with pytest.warns(MixingWarning, match="do not move between the modes"):
            model.fit(data[0], X_val=data[1])
    else:
        with pytest.raises(KeyboardInterrupt):
            model.fit(data[0], X_val=data[1])
    (rbm,) = complete
    assert_array_equal(model.components_, rbm.weights)


@pytest.mark.slow
@pytest.mark.parametrize("n_steps", [650, 1050])
def test_a_race_is_resumed_at_any_stage(n_steps, from_one, monkeypatch, tmp_path):
    """Within the second, and in the last training."""
    monkeypatch.setattr(sizes, "MAX_UNITS", 2)
    monkeypatch.setattr(sizes, "_STAGES", (2, 3))
    monkeypatch.setattr(_persistence, "INTERVAL", 0.0)
    never_end(monkeypatch)
    X = mixture_data(200)
    whole = choosing(max_updates=400).fit(X)
    assert {100.0, 200.0, 300.0} < set(whole.history_["n_updates"])
    model = choosing(max_updates=400, checkpoint=tmp_path / "state")
    with monkeypatch.context() as patch:
        interrupt(patch, contrastive, n_steps)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
    resumed = clone(model).fit(X)
    assert_same_model(resumed, whole)
    assert_same_path(resumed.history_, whole.history_)


def resume_an_overfit_in(stage, monkeypatch, tmp_path):
    """A fit that overfits, after one that was interrupted in this stage is the same.

    Returns the model, and the stages that took updates.
    """
    monkeypatch.setattr(_persistence, "INTERVAL", 0.0)
    monkeypatch.setattr(sizes, "_chosen", lambda trials: trials[0])
    monkeypatch.setattr(
        sizes, "_compare_start", lambda run, winner, stages, new: winner
    )
    monkeypatch.setattr(
        sizes, "_compare_tree", lambda run, winner, stages, tree: winner
    )
    train, step, stages, taken = adaptive.train, contrastive.step, [], []

    def counted(settings, job, start, stage, *arguments, **more):
        stages.append(stage)
        return train(settings, job, start, stage, *arguments, **more)

    def counted_step(*arguments):
        taken.append(stages[-1])
        return step(*arguments)

    rng = np.random.default_rng(0)
    data = [rng.random((n, 30)) < 0.3 for n in (30, 60)]
    with monkeypatch.context() as patch:
        patch.setattr(adaptive, "train", counted)
        patch.setattr(contrastive, "step", counted_step)
        whole = choosing(max_updates=2000).fit(data[0], X_val=data[1])
    n_steps = (taken.index(stage) + len(taken) - taken[::-1].index(stage)) // 2
    model = choosing(max_updates=2000, checkpoint=tmp_path / "state")
    with monkeypatch.context() as patch:
        interrupt(patch, contrastive, n_steps)
        with pytest.raises(KeyboardInterrupt):
            model.fit(data[0], X_val=data[1])
    resumed = clone(model).fit(data[0], X_val=data[1])
    assert_same_model(resumed, whole)
    assert_same_path(resumed.history_, whole.history_)
    assert whole.n_iter_ == len(whole.history_["n_updates"])
    return whole, set(taken)


def test_verbose_compares_sizes_after_as_many_rounds(raced):
    lines = raced[1].splitlines()
    assert "1 units: the first of the sizes" in lines
    place = lines.index(
        next(line for line in lines if re.search(r"after \d+ rounds", line))
    )
    gap, side = re.match(
        r"2 units: ([\d.]+) nats (ahead of|behind) 1 units after \d+ rounds",
        lines[place],
    ).groups()
    scores = {"1 units": [], "2 units": []}
    for line in lines[:place]:
        found = re.match(r"(\d units).*, (-[\d.]+) on validation rows", line)
        if found:
            scores[found[1]].append(float(found[2]))
    n_rounds = len(scores["2 units"])
    lead = max(scores["2 units"]) - max(scores["1 units"][:n_rounds])
    assert (float(gap), side) == (
        pytest.approx(abs(lead), abs=0.011),
        "ahead of" if lead > 0.0 else "behind",
    )


@pytest.mark.filterwarnings("ignore:Nothing was learned")
@pytest.mark.slow
@pytest.mark.parametrize("place", ["2 units", "1 units", "training"])
def test_an_overfit_is_resumed_at_any_stage(place, up_to_four, monkeypatch, tmp_path):
    """Within the winner's further training, that of another, and the last one."""
    stage = place if place == "training" else f"{place}, trained on"
    _, taken = resume_an_overfit_in(stage, monkeypatch, tmp_path)
    assert {"1 units, trained on", "2 units, trained on", "training"} <= taken


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Nothing was learned")
def test_halves_of_the_smallest_size_follow(up_to_four, monkeypatch, tmp_path):
    """They are no part of the comparison that the history tells."""
    monkeypatch.setattr(sizes, "_FIRST", 4)
    whole, taken = resume_an_overfit_in("2 units", monkeypatch, tmp_path)
    assert {"4 units, trained on", "2 units", "training"} <= taken
    assert compared_in(whole)["n_components"].tolist() == [4]


@pytest.mark.slow
def test_noise_needs_no_more_than_the_first_size(from_one):
    X = np.random.default_rng(0).random((300, 12)) < 0.3
    with pytest.warns(ConvergenceWarning, match="Nothing was learned"):
        model = choosing(max_updates=200).fit(X)
    assert model.n_components_ == 1
    assert len(compared_in(model)["gain"]) <= 4
    assert model.score(X) == pytest.approx(independent_score(X), abs=0.1)


@pytest.mark.slow
def test_sizes_are_compared_where_something_is_learned(from_one):
    """With small steps, nothing tells sizes apart in the first 400 updates."""
    X, X_val = mixture_data(600), mixture_data(300, seed=1)
    tuner = ContrastiveDivergenceRBM(learning_rate=0.01, max_updates=3000)
    model = choosing().set_params(fine_tune=tuner).fit(X, X_val=X_val)
    alone = clone(tuner).set_params(n_components=1, max_updates=400, random_state=0)
    rounds = alone.fit(X, X_val=X_val).history_
    base = independent_score(X_val)
    assert rounds["validation_log_likelihood"].max() < base + 0.003 * abs(base)
    compared = compared_in(model)
    assert compared["n_updates"][0] > 400 and compared["gain"][0] > 0.003 * abs(base)
    assert model.n_components_ > 1


@pytest.mark.filterwarnings("ignore:Nothing was learned")
@pytest.mark.parametrize(
    "n_rows, expected", [(5, 4), pytest.param(21, 18, marks=pytest.mark.slow)]
)
def test_there_are_no_more_units_than_rows(n_rows, expected, monkeypatch):
    never_end(monkeypatch)
    model = automatic("sizes").fit(digits(n_rows))
    assert compared_in(model)["n_components"].max() == expected


def test_there_is_a_largest_size(from_one, monkeypatch):
    monkeypatch.setattr(sizes, "MAX_UNITS", 3)
    never_end(monkeypatch)
    model = choosing(max_updates=60).fit(mixture_data(200))
    assert_array_equal(compared_in(model)["n_components"][:-1], [1, 2, 3])
    # partial fits stop there as well
    model = choosing(n_corrective_steps=0, unit_penalty=0.01)
    for _ in range(5):
        model.partial_fit(mixture_data(200))
    assert 1 <= model.n_components_ <= 3


@pytest.mark.parametrize("are_better", first_by_default([True, False]))
def test_units_that_were_searched_start_the_training_if_they_gain(
    are_better, from_one, monkeypatch
):
    """The comparison and the last training go by the start that has won."""
    train, starts = adaptive.train, []

    def judged(settings, job, start, stage, task, **more):
        outcome = train(settings, job, start, stage, task, **more)
        starts.append((stage, np.abs(start.make_state().rbm.weights).max()))
        if "searches" in stage:
            change = 5.0 if are_better else -5.0
            best = outcome.best
            best = best._replace(validation=best.validation + change)
            outcome = outcome._replace(best=best)
        return outcome

    monkeypatch.setattr(adaptive, "train", judged)
    model = choosing(max_updates=100).fit(mixture_data(300))
    *compared, (last, of_last) = starts
    assert last == "training"
    of_random = [size for stage, size in compared if "searches" not in stage]
    (of_searched,) = {size for stage, size in compared if "searches" in stage}
    # small directions, but not as small as random weights
    assert of_searched > 2.0 * max(of_random)
    assert of_last in ([of_searched] if are_better else of_random)
    # its gain is over the winner
    assert np.sign(compared_in(model)["gain"][-1]) == (1.0 if are_better else -1.0)


@pytest.mark.slow
def test_searched_units_differ(monkeypatch):
    """Each was found on rows of its own; together they are no model."""
    found = []
    search = growth.diverse_units

    def spy(*arguments):
        found.append(search(*arguments))
        return found[-1]

    monkeypatch.setattr(growth, "diverse_units", spy)
    model = automatic("sizes", fine_tune__max_updates=20).fit(digits(40))
    (rbm, *_) = found
    assert len(rbm.weights) == compared_in(model)["n_components"][-1]
    assert len(np.unique(rbm.weights, axis=0)) == len(rbm.weights)
    # the search ends where other rows gain no more: the same again for the same seed
    assert_same_model(clone(model).fit(digits(40)), model)
