"""Trainings without settings: what they decide, check, repeat and tell."""

import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from interrupts import interrupt
from numpy.testing import assert_allclose, assert_array_equal
from rbm_estimators import (
    AUTOMATIC,
    arrays_of,
    assert_close_models,
    assert_same_model,
    assert_same_path,
    automatic,
    careful,
    copy_with_training,
    digits,
    independent_score,
    of_training,
    toy_data,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from threadpoolctl import threadpool_limits

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.exceptions import MixingWarning
from skbayesnn.rbm.learning import contrastive
from skbayesnn.rbm.likelihood import annealing
from skbayesnn.rbm.training import adaptive, job, pair_tree, sizes, tracking

pytestmark = pytest.mark.usefixtures("few_weighted_states")
of_each_kind = pytest.mark.parametrize("kind", AUTOMATIC)
# Of one kind by default, where both have the code in common.
mostly_kind_rounds = pytest.mark.parametrize(
    "kind", ["rounds", pytest.param("sizes", marks=pytest.mark.slow)]
)
mostly_rounds = pytest.mark.parametrize(
    "fitted", ["rounds", pytest.param("sizes", marks=pytest.mark.slow)], indirect=True
)
mostly_sizes = pytest.mark.parametrize(
    "fitted", [pytest.param("rounds", marks=pytest.mark.slow), "sizes"], indirect=True
)

ROUNDS = {
    "n_updates",
    "learning_rate",
    "n_gibbs_steps",
    "n_replicas",
    "weight_decay",
    "log_likelihood",
    "validation_log_likelihood",
    "log_partition_error",
    "mean_error",
    "correlation",
    "seconds",
}
SIZES = {"n_components", "change", "gain", "from_small_weights"}


@pytest.fixture(scope="module", params=AUTOMATIC)
def fitted(request):
    calls, rounds = [], []
    run_round = adaptive.run_round

    def counting(*arguments):
        result = run_round(*arguments)
        rounds.append(len(calls))
        return result

    with pytest.MonkeyPatch.context() as patch:
        count(patch, calls)
        patch.setattr(adaptive, "run_round", counting)
        model = automatic(request.param).fit(digits(40))
    return SimpleNamespace(
        kind=request.param, model=model, n_steps=len(calls), first_round=rounds[0]
    )


def test_fitted_attributes(fitted):
    model, history = fitted.model, fitted.model.history_
    assert set(history) == (ROUNDS if fitted.kind == "rounds" else ROUNDS | SIZES)
    assert {len(values) for values in history.values()} == {model.n_iter_}
    # the rounds of a winner begin within the comparison
    rounds = np.isfinite(history["learning_rate"])
    assert (np.diff(history["seconds"][rounds]) > 0.0).all()
    assert history["seconds"].max() == history["seconds"][-1]
    assert model.n_updates_ in history["n_updates"]
    assert model.n_gibbs_steps_ in history["n_gibbs_steps"]
    assert model.weight_decay_ in history["weight_decay"]
    assert model.components_.shape == (model.n_components_, 64)
    for name, kind in [("n_updates_", int), ("n_gibbs_steps_", int)]:
        assert type(getattr(model, name)) is kind
    assert type(model.weight_decay_) is float
    # the step size falls to zero in the last round
    assert 0.0 < history["learning_rate"][-1] < history["learning_rate"][-2]


@pytest.mark.slow
@mostly_rounds
def test_what_is_tracked_is_the_likelihood_of_held_out_rows(fitted):
    """Of a model that was not repeated on all rows."""
    X_val = digits(80)[40:]
    model = automatic(fitted.kind).fit(digits(40), X_val=X_val)
    history = model.history_
    error = 5.0 * history["log_partition_error"][-1] + 1e-3
    # the best round may be an earlier one
    best = np.nanmax(history["validation_log_likelihood"])
    assert model.score(X_val) == pytest.approx(best, abs=2 * error + 0.2)
    assert model.score(X_val) > independent_score(X_val, digits(40))


@pytest.mark.slow
def test_the_fit_is_repeated_on_all_rows(fitted):
    """Unless it is not wanted."""
    X = digits(40)
    never = of_training(fitted.kind, refit=False)
    partial = automatic(fitted.kind, **never).fit(X)
    assert_same_path(partial.history_, fitted.model.history_)
    assert not np.array_equal(partial.components_, fitted.model.components_)
    # base rates are of 40 or of 36 rows
    for model, n_rows in [(partial, 36), (fitted.model, 40)]:
        counts = (n_rows + 1) / (1.0 + np.exp(-model.base_intercept_)) - 0.5
        assert_allclose(counts, np.round(counts), atol=1e-6)


@mostly_kind_rounds
def test_a_fit_whose_held_out_rows_were_given_is_not_repeated(kind):
    X, X_val = digits(40), digits(80)[40:]
    once, again = (
        automatic(kind, **of_training(kind, max_updates=20, refit=refit))
        for refit in (False, True)
    )
    assert_same_model(once.fit(X, X_val=X_val), again.fit(X, X_val=X_val))


@pytest.mark.slow
@mostly_sizes
def test_the_repeated_fit_makes_the_same_updates(fitted, monkeypatch):
    """On the same rows it gives the same model."""

    def split(rows, fraction, seed):
        order = np.arange(len(rows))
        return rows.subset(order), rows.subset(order[::7])

    monkeypatch.setattr(job, "split_rows", split)
    both = []
    for refit in (False, True):
        calls = []
        with monkeypatch.context() as patch:
            count(patch, calls)
            model = automatic(fitted.kind, **of_training(fitted.kind, refit=refit))
            both.append(model.fit(digits(40)))
        both.append(len(calls))
    first, n_first, second, n_second = both
    assert_same_model(first, second)
    assert n_second == n_first + second.n_updates_ > n_first


def count(patch, calls):
    step = contrastive.step

    def counting(*arguments):
        calls.append(1)
        return step(*arguments)

    patch.setattr(contrastive, "step", counting)


@pytest.mark.parametrize(
    "convert",
    [
        np.asfortranarray,
        lambda X: X.astype(np.uint8),
        lambda X: sp.csr_array(X.astype(np.float32)),
    ],
    ids=["fortran", "uint8", "sparse"],
)
@pytest.mark.slow
@mostly_rounds
def test_same_model_for_the_same_content(fitted, convert):
    model = automatic(fitted.kind).fit(convert(digits(40)))
    assert_same_model(model, fitted.model)
    assert_same_path(model.history_, fitted.model.history_)


@pytest.mark.slow
@mostly_sizes
def test_random_state_decides(fitted):
    again = automatic(fitted.kind, random_state=np.random.RandomState(3))
    assert_same_model(again.fit(digits(40)), fitted.model)
    other = automatic(fitted.kind, random_state=4).fit(digits(40))
    assert not np.array_equal(other.components_[0], fitted.model.components_[0])


@pytest.mark.slow
@mostly_rounds
def test_threads_of_matrix_products_change_nothing(fitted):
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            model = automatic(fitted.kind, n_jobs=n_threads).fit(digits(40))
        assert_same_model(model, fitted.model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Nothing was learned")
@mostly_sizes
def test_probabilities(fitted):
    X = digits(40)
    same = automatic(fitted.kind, binarize=None).fit(X)
    assert_same_model(same, fitted.model)
    soft = np.where(X, 0.75, 0.25).astype(np.float32)
    model = automatic(fitted.kind, binarize=None).fit(soft)
    assert not np.allclose(model.components_[0], same.components_[0])
    with pytest.warns(DataConversionWarning, match="only binary rows"):
        assert np.isfinite(model.score(soft))


@pytest.mark.slow
@mostly_sizes
def test_copies_continue_in_the_same_way(fitted):
    first = automatic(fitted.kind, warm_start=True).fit(digits(40))
    second = pickle.loads(pickle.dumps(first))
    assert_same_model(second, fitted.model)
    assert_same_model(first.fit(digits(40)), second.fit(digits(40)))
    assert first.n_iter_ > fitted.model.n_iter_
    assert {len(values) for values in first.history_.values()} == {first.n_iter_}
    n_before = fitted.model.n_iter_
    assert_same_path(first.history_, fitted.model.history_, n_before)
    assert first.n_components_ == fitted.model.n_components_
    # it begins where the other ended
    later = first.history_["log_likelihood"][n_before:]
    assert later[0] > fitted.model.history_["log_likelihood"][0]
    third = pickle.loads(pickle.dumps(fitted.model))
    assert_same_model(third.partial_fit(digits(40)), third)


def test_a_partial_fit_continues(fitted):
    model = pickle.loads(pickle.dumps(fitted.model)).partial_fit(digits(40))
    assert model.n_iter_ == fitted.model.n_iter_ + 1
    assert not np.array_equal(model.components_[:5], fitted.model.components_[:5])
    new = automatic(fitted.kind)
    assert new.partial_fit(digits(40)).partial_fit(digits(40)).n_iter_ == 2
    assert new.n_components_ == 20 or fitted.kind == "sizes" and new.n_components_ <= 2


@mostly_rounds
@pytest.mark.parametrize("kind", ["truncated", "taken over"])
def test_a_model_that_came_otherwise_is_trained_on(fitted, kind):
    X, model = digits(40), fitted.model
    if kind == "truncated":
        first = model.truncate(10)
        assert first.n_updates_ == model.n_updates_
    else:
        rbm = model.truncate(10).to_bernoulli_rbm()
        first = type(model).from_bernoulli_rbm(rbm, X)
        first.set_params(**automatic(fitted.kind).get_params())
    few = of_training(fitted.kind, max_updates=20)
    first.set_params(warm_start=True, **few).fit(X)
    assert first.n_components_ == 10 and first.n_updates_ >= 0


@pytest.mark.parametrize(
    "kind", [pytest.param("rounds", marks=pytest.mark.slow), "sizes"]
)
def test_one_line_says_what_was_chosen(kind, capsys):
    few = of_training(kind, max_updates=20) if kind == "sizes" else {}
    model = automatic(kind, verbose=True, **few).fit(digits(40))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > model.n_iter_
    (chosen,) = (line for line in lines if line.startswith("chosen: "))
    assert chosen == lines[-1]
    found = re.match(
        r"chosen: (\d+) units, (\d+) updates, Gibbs steps (\d+), temperatures (\d+), "
        r"weight decay ([\d.e-]+), validation log-likelihood (-[\d.]+) nats",
        chosen,
    )
    values = [float(value) for value in found.groups()]
    assert values[:2] == [model.n_components_, model.n_updates_]
    assert values[2:4] == [model.n_gibbs_steps_, model.n_replicas_]
    assert values[4] == pytest.approx(model.weight_decay_, rel=0.1)
    best = np.nanmax(model.history_["validation_log_likelihood"])
    assert values[5] == pytest.approx(best, abs=0.5)


@pytest.mark.parametrize(
    ("max_updates", "is_told"),
    [(300, True), pytest.param(30000, False, marks=pytest.mark.slow)],
)
def test_a_training_that_its_limit_ended_says_so(max_updates, is_told, capsys):
    model = ContrastiveDivergenceRBM(
        4, max_iter="auto", max_updates=max_updates, random_state=0, verbose=True
    ).fit(digits(40))
    lines = capsys.readouterr().out.splitlines()
    assert ("ended by max_updates" in lines[-1]) == is_told
    assert lines[-2].startswith(f"refit: {model.n_updates_} updates on all 40 rows")


def shift_estimates(monkeypatch, ahead, back):
    """Annealing in both directions is off by so many nats."""
    run_both = annealing.run_both

    def shifted(*arguments, **keywords):
        pair = run_both(*arguments, **keywords)
        forward, reverse = pair.forward + ahead, pair.reverse - back
        return pair._replace(forward=forward, reverse=reverse)

    monkeypatch.setattr(annealing, "run_both", shifted)


@pytest.mark.slow
@of_each_kind
def test_directions_that_differ_are_told(kind, monkeypatch):
    # of a tree of 16 pairs, the likelihood is exact, in both directions
    monkeypatch.setattr(pair_tree, "MAX_FEATURES", 0)
    shift_estimates(monkeypatch, 0.0, 1.5)
    X = digits(40)
    # rows that are learned: with the lower estimate, it still has gained something
    n_updates = {"rounds": 600, "sizes": 200}[kind]
    model = automatic(kind, **of_training(kind, max_updates=n_updates))
    with pytest.warns(MixingWarning) as told:
        model.fit(X, X_val=X)
    (warning,) = told
    # of the line that called fit
    assert warning.filename == __file__
    message = str(warning.message)
    ahead, back = (float(v) for v in re.findall(r"(-[\d.]+)(?: nats| by)", message))
    assert ahead - back == pytest.approx(1.5, abs=0.5)
    # and what to do
    for advice in ("log_partition('both')", "fewer units", "n_gibbs_steps"):
        assert advice in message
    # the model is what it would be
    monkeypatch.undo()
    assert model.score(X) > independent_score(X)


@pytest.mark.slow
def test_states_that_annealing_misses_are_told(monkeypatch):
    """Both directions agree on too little; draws that follow the model find it all."""
    monkeypatch.setattr(tracking, "_ENUMERATED", 0)
    shift_estimates(monkeypatch, -50.0, -50.0)
    X = digits(40)
    with pytest.warns(
        MixingWarning, match="rows, the log partition function is at least"
    ) as told:
        automatic("rounds", max_updates=600).fit(X, X_val=X)
    (warning,) = told
    assert warning.filename == __file__ and "n_gibbs_steps" in str(warning.message)
    (missed,) = re.findall(r"([\d.]+) nats larger", str(warning.message))
    assert float(missed) == pytest.approx(50.0, abs=0.5)


@mostly_kind_rounds
def test_a_model_is_never_below_independent_features(kind, monkeypatch):
    """By its validation likelihood."""
    monkeypatch.setattr(tracking, "_ENUMERATED", 0)
    # the likelihood of a tree is exact
    monkeypatch.setattr(pair_tree, "MAX_FEATURES", 0)
    shift_estimates(monkeypatch, 1000.0, 1000.0)
    X = digits(40)
    few = of_training(kind, max_updates=40)
    with pytest.warns(MixingWarning, match="independent features.*Use fewer units"):
        model = automatic(kind, **few).fit(X)
    monkeypatch.undo()
    assert not model.components_.any() and not model.intercept_hidden_.any()
    assert model.n_components_ >= 16
    # of the rows that were not held out
    assert model.score(X) == pytest.approx(independent_score(X), abs=1.0)
    assert_allclose(model.transform(X), 0.5)


def test_where_nothing_is_to_be_learned():
    """The model is that of independent features, and says so; no weights are noise."""
    X = np.random.default_rng(0).random((20, 6)) < 0.4
    with pytest.warns(ConvergenceWarning, match="Nothing was learned") as told:
        model = automatic("rounds").fit(X)
    assert [warning.filename for warning in told] == [__file__]
    assert model.n_updates_ == 0 and not model.components_.any()
    assert_allclose(model.transform(X), 0.5)


@pytest.mark.parametrize("varies", [True, False])
def test_too_few_updates_to_learn_anything_are_told_of(varies, tmp_path):
    """Features that are copies had been said to be independent."""
    X = np.random.default_rng(0).random((60, 14)) < 0.3
    X[:, 1:4] = X[:, :1]
    X &= varies
    file = tmp_path / "rbm.npz"
    rbm = ContrastiveDivergenceRBM(2, max_updates=5, random_state=0, checkpoint=file)
    cause = "max_updates=5 .* increase it" if varies else "Either the features are ind"
    for _ in range(2):  # the second fit finds the result of the first one
        with pytest.warns(ConvergenceWarning, match=f"Nothing was learned.*{cause}"):
            rbm.fit(X)


@pytest.mark.parametrize("cls", [ContrastiveDivergenceRBM, FrankWolfeRBM])
@pytest.mark.parametrize("n_varied", [0, 1])
def test_features_of_which_none_varies_with_another(cls, n_varied):
    """Training would make constant ones more certain for as long as it may."""
    X = np.tile(np.random.default_rng(0).random(12) < 0.5, (50, 1))
    X[:20, :n_varied] ^= True
    with pytest.warns(ConvergenceWarning, match="Nothing was learned"):
        model = cls(random_state=0).fit(X)
    assert model.history_["n_updates"].max() <= 200
    assert not model.components_.any()
    assert model.score(X) == pytest.approx(independent_score(X), abs=0.1)


def test_more_features_than_a_float_has_powers_of_two():
    """Words of documents; the number of states is beyond the largest float."""
    rng = np.random.default_rng(0)
    X = rng.random((60, 1100)) < np.where(np.arange(60) < 30, 0.5, 0.02)[:, None]
    model = ContrastiveDivergenceRBM(1, max_updates=20, random_state=0).fit(X)
    assert model.score(X) > independent_score(X)


@pytest.mark.filterwarnings("ignore:Nothing was learned")
@pytest.mark.parametrize("seed", range(4))
def test_a_single_row_to_learn_from(seed):
    """The other one is held out; neither step nor decay makes the weights diverge."""
    X = np.random.default_rng(0).random((2, 6)) < 0.4
    model = ContrastiveDivergenceRBM(8, max_updates=300, random_state=seed).fit(X)
    assert np.isfinite(model.score(X))


@pytest.mark.slow
def test_a_good_start_stays_though_nothing_is_gained():
    rows = np.random.default_rng(0).permutation(digits(400))
    X, validation = rows[:300], rows[300:]
    model = automatic("rounds", warm_start=True, max_updates=600)
    model.fit(X, X_val=validation)
    before = model.score(validation)
    # steps that only stir up what has been learned
    model.set_params(learning_rate=30.0, max_updates=100).fit(X, X_val=validation)
    assert model.components_.any()
    assert model.score(validation) > before - 0.5


@pytest.mark.slow
@of_each_kind
def test_a_diverging_refit_keeps_the_old_fit(kind):
    X = digits(40)
    model = automatic(kind, **of_training(kind, max_updates=40)).fit(X)
    usual = model.get_params()
    before = copy_with_training(model)
    model.set_params(**of_training(kind, learning_rate=1e5))
    with pytest.raises(ValueError, match="diverged.*Reduce learning_rate=100000"):
        model.fit(X)
    assert_same_model(model, before)
    assert_same_path(model.history_, before.history_)
    model.set_params(**usual)
    assert_same_model(model.partial_fit(X), before.partial_fit(X))


# Before the first round has ended, within the rounds, and in the repetition.
BY_DEFAULT = {False: (0.01, 0.45), True: (0.1,)}


@pytest.mark.parametrize(
    ("warm_start", "fraction"),
    [
        pytest.param(
            warm_start,
            fraction,
            marks=[] if fraction in BY_DEFAULT[warm_start] else pytest.mark.slow,
        )
        for warm_start in (False, True)
        for fraction in (0.01, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9)
    ],
)
def test_interrupted_fit(fitted, fraction, warm_start, monkeypatch):
    """At a fraction of all updates: in each size, its end, and the repetition."""
    X, n_calls = digits(40), int(fraction * fitted.n_steps)
    model = automatic(fitted.kind, warm_start=warm_start)
    interrupt(monkeypatch, contrastive, n_calls)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    monkeypatch.undo()
    if not warm_start or n_calls < fitted.first_round:
        assert not [name for name in vars(model) if name.endswith("_")]
        return
    assert {len(values) for values in model.history_.values()} == {model.n_iter_}
    assert model.score(X) > independent_score(X) - 0.5
    n_iter, n_units = model.n_iter_, model.n_components_
    # and continues from there
    model.set_params(**of_training(fitted.kind, max_updates=20))
    assert model.fit(X).n_iter_ > n_iter
    assert model.n_components_ == n_units


@pytest.mark.slow
@mostly_rounds
def test_an_interrupt_of_the_repetition_keeps_the_best_round(fitted, monkeypatch):
    X = digits(40)
    model = automatic(fitted.kind, warm_start=True)
    with monkeypatch.context() as patch:
        n_calls = fitted.n_steps - fitted.model.n_updates_ // 2
        interrupt(patch, contrastive, n_calls)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
    never = of_training(fitted.kind, refit=False)
    expected = automatic(fitted.kind, **never).fit(X)
    for array, other in zip(arrays_of(model), arrays_of(expected), strict=True):
        assert_array_equal(array, other)


@pytest.mark.parametrize(
    "parameters, message",
    [
        (dict(alpha="learn"), "alpha='count' and init=None; got alpha='learn'"),
        (dict(alpha=2.0), "Set n_components to a number of units"),
        (
            dict(init=ContrastiveDivergenceRBM(3, max_iter=1)),
            "init=Contrastive.*Set n_components to a number of units",
        ),
        (
            dict(fine_tune=ContrastiveDivergenceRBM(max_iter=5)),
            "fine_tune needs max_iter='auto'; got max_iter=5.*n_components to a number",
        ),
        (dict(fine_tune=ContrastiveDivergenceRBM(max_updates=0)), "'max_updates'"),
    ],
    ids=str,
)
def test_what_a_search_for_a_size_cannot_do(parameters, message, monkeypatch):
    def step(*arguments):
        raise AssertionError("a step was taken")

    monkeypatch.setattr(contrastive, "step", step)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        FrankWolfeRBM(**parameters).fit(toy_data())


def test_one_row_is_too_few():
    for kind in AUTOMATIC:
        with pytest.raises(ValueError, match="no training rows of n_samples=1.*X_val"):
            automatic(kind).fit(digits(1))


def test_what_is_given_stays():
    X = digits(40)
    options = dict(n_gibbs_steps=2, weight_decay=0.01, learning_rate=0.05)
    model = automatic("rounds", max_updates=40, **options).fit(X)
    assert (model.n_gibbs_steps_, model.weight_decay_) == (2, 0.01)
    assert "correlation" not in model.history_
    assert set(model.history_["n_gibbs_steps"]) == {2}
    assert set(model.history_["weight_decay"]) == {0.01}
    # up to the rounding of a mean
    assert model.history_["learning_rate"].max() == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        pytest.param("rounds", 0, marks=pytest.mark.slow),
        ("sizes", 1),
        pytest.param("rounds", 1, marks=pytest.mark.slow),
        pytest.param("sizes", 0, marks=pytest.mark.slow),
    ],
)
def test_constant_data_have_nothing_to_learn(kind, value):
    X = np.full((40, 20), value)
    with pytest.warns(ConvergenceWarning, match="Nothing was learned"):
        model = automatic(kind).fit(X)
    assert np.isfinite(model.score(X))
    assert (model.sample(5, n_steps=5, random_state=0) == value).mean() > 0.9


@pytest.mark.slow
def test_a_fractional_model_is_trained():
    X = digits()
    init = careful(20, alpha=14.0, n_chains=200, n_corrective_steps=5)
    model = automatic("rounds", init=init, max_updates=80).fit(X)
    assert_allclose(model.unit_weights_, 0.7, rtol=1e-6)
    assert model.score(X) > independent_score(X)


def test_a_grown_model_is_fine_tuned():
    """By rows that the fine-tuner holds out; then the training is repeated on all."""
    X = digits(100)
    tuner = ContrastiveDivergenceRBM(max_updates=40, batch_size=50)
    plain = careful(6, n_chains=200, n_corrective_steps=20)
    tuned = clone(plain).set_params(fine_tune=tuner).fit(X)
    plain.fit(X)
    assert set(tuned.fine_tune_.history_) == ROUNDS
    assert tuned.fine_tune_.n_updates_ > 0
    assert tuned.score(X) > plain.score(X)
    assert_close_models(tuned, tuned.fine_tune_, rtol=0.0)
    # base rates are of all rows, in both
    assert_same_model(tuned, tuned.fine_tune_)
    assert not hasattr(clone(tuned), "fine_tune_")


class Recorder:
    """What a callback is told, and when it asks to stop."""

    def __init__(self, stop_at=None, n_ends=1):
        self.events, self.models = [], []
        self.stop_at, self.n_ends = stop_at, n_ends

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.events.append(("end", context.task_name))
        self.models.append(fitted_estimator)
        self.n_ends -= context.task_name == self.stop_at
        return context.task_name == self.stop_at and self.n_ends <= 0

    def ended(self, name):
        return self.events.count(("end", name))


def assert_nested(events):
    """Each task ends, within the one in which it began."""
    assert events[0] == "setup" and events[-1] == "teardown"
    open_tasks = []
    for event, name in events[1:-1]:
        if event == "begin":
            open_tasks.append(name)
        else:
            assert open_tasks.pop() == name
    assert not open_tasks


@mostly_sizes
def test_callbacks_see_rounds(fitted, callbacks):
    recorder = Recorder()
    model = automatic(fitted.kind).set_callbacks(recorder).fit(digits(40))
    assert_same_model(model, fitted.model)
    assert_nested(recorder.events)
    *parts, last = recorder.models
    assert_same_model(last, model)
    n_sizes = np.isfinite(model.history_.get("gain", np.zeros(0))).sum()
    n_rounds = model.n_iter_ - n_sizes
    assert recorder.ended("round") > n_rounds if n_sizes else n_rounds
    for part in parts:
        assert part.transform(digits(40)).shape == (40, part.n_components_)


@pytest.mark.parametrize(
    "kind, task, n_ends",
    [
        pytest.param("rounds", "round", 1, marks=pytest.mark.slow),
        pytest.param("rounds", "round", 3, marks=pytest.mark.slow),
        ("sizes", "round", 2),
        pytest.param("sizes", "16 units", 1, marks=pytest.mark.slow),
        ("sizes", "32 units", 1),
    ],
)
def test_a_callback_may_stop(kind, task, n_ends, callbacks, tmp_path, monkeypatch):
    """Such a fit counts as finished."""
    recorder = Recorder(task, n_ends)
    model = automatic(kind, checkpoint=tmp_path / "state").set_callbacks(recorder)
    model.fit(digits(40))
    assert_nested(recorder.events)
    assert recorder.ended(task) == n_ends
    assert model.score(digits(40)) > independent_score(digits(40)) - 0.5
    assert model.n_updates_ >= 0
    monkeypatch.setattr(contrastive, "step", None)
    again = clone(model).set_callbacks().fit(digits(40))
    assert_same_model(again, model)
    assert again.n_iter_ == model.n_iter_


@pytest.mark.slow
def test_a_callback_may_stop_a_later_stage_of_the_comparison(callbacks, monkeypatch):
    """Before larger sizes have run."""
    monkeypatch.setattr(sizes, "MAX_UNITS", 32)
    monkeypatch.setattr(sizes, "_STAGES", (2, 3))
    recorder = Recorder("16 units, 3 rounds")
    model = automatic("sizes", fine_tune__max_updates=400).set_callbacks(recorder)
    model.fit(digits(40))
    assert_nested(recorder.events)
    tasks = [event for event in recorder.events[1:-1] if "units" in event[1]]
    assert tasks[-1] == ("end", "16 units, 3 rounds")
    assert ("end", "16 units") in tasks
    # nothing follows, and what was known is kept
    assert_array_equal(model.history_["n_components"], [16])
    assert_array_equal(model.history_["n_updates"], [300])
    assert model.n_components_ == 16


@mostly_kind_rounds
def test_callbacks_end_with_a_fit_that_fails(kind, callbacks, monkeypatch):
    recorder = Recorder()
    model = automatic(kind).set_callbacks(recorder)
    interrupt(monkeypatch, contrastive, 100)
    with pytest.raises(KeyboardInterrupt):
        model.fit(digits(40))
    assert recorder.events[-1] == "teardown"
    assert not any("callback_fit_ctx" in name for name in vars(model))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Nothing was learned")
def test_progress_bars(callbacks, capsys, monkeypatch):
    pytest.importorskip("rich", reason="ProgressBar needs rich")
    monkeypatch.setenv("COLUMNS", "120")
    for kind in AUTOMATIC:
        model = automatic(kind, **of_training(kind, max_updates=20))
        model.set_callbacks(callbacks.ProgressBar()).fit(digits(40))
        name = type(AUTOMATIC[kind]).__name__
        assert f"{name} - fit" in capsys.readouterr().out
