"""Callbacks of scikit-learn during a fit."""

import numpy as np
import pytest
from interrupts import interrupt
from rbm_estimators import CLASSES, assert_same_model, small, toy_data
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn.rbm.learning import contrastive, growth

callbacks = pytest.importorskip(
    "sklearn.callback", reason="callbacks need scikit-learn 1.9 or later"
)


class Recorder:
    """What a callback is told; it goes along to estimators within."""

    max_propagation_depth = None

    def __init__(self, stop_at=None):
        self.events, self.models, self.data = [], [], []
        self.stop_at = stop_at

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.events.append(("begin", context.task_name, context.max_subtasks))
        self.data.append((X, y))

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, fitted_estimator=None
    ):
        self.events.append(("end", context.task_name, context.task_id))
        self.models.append(fitted_estimator)
        self.data.append((X, y))
        return (context.task_name, context.task_id) == self.stop_at

    def ends(self, name):
        return [event[2] for event in self.events if event[:2] == ("end", name)]


def leaves(name, n):
    return [e for i in range(n) for e in (("begin", name, 0), ("end", name, i))]


def test_callbacks_see_epochs():
    X, y, recorder = toy_data(), np.arange(300), Recorder()
    model = small(ContrastiveDivergenceRBM, max_iter=3).set_callbacks(recorder)
    model.fit(X, y)
    assert recorder.events == [
        "setup",
        ("begin", "fit", 3),
        *leaves("epoch", 3),
        ("end", "fit", 0),
        "teardown",
    ]
    assert all(given[0] is X and given[1] is y for given in recorder.data)
    assert_same_model(model, small(ContrastiveDivergenceRBM, max_iter=3).fit(X))


def test_callbacks_see_units_and_fine_tuning():
    X, recorder = toy_data(), Recorder()
    tuner = ContrastiveDivergenceRBM(max_iter=2)
    model = small(FrankWolfeRBM, fine_tune=tuner).set_callbacks(recorder).fit(X)
    assert recorder.events == [
        "setup",
        ("begin", "fit", 2),
        ("begin", "growth", 3),
        *leaves("unit", 3),
        ("end", "growth", 0),
        # the task of the fine-tuner takes the place of this one
        ("begin", "fit", 2),
        *leaves("epoch", 2),
        ("end", "fit", 1),
        ("end", "fit", 0),
        "teardown",
    ]
    assert_same_model(model, small(FrankWolfeRBM, fine_tune=tuner).fit(X))
    assert not hasattr(model.fine_tune_, "_skl_callbacks")


@pytest.mark.parametrize("cls", CLASSES)
def test_callbacks_get_the_model_so_far(cls):
    X, recorder = toy_data(), Recorder()
    model = small(cls).set_callbacks(recorder).fit(X)
    *parts, last = recorder.models
    assert_same_model(last, model)
    if cls is FrankWolfeRBM:
        assert [part.n_components_ for part in parts] == [1, 2, 3, 3]
    else:
        # constant: an epoch is the same in a shorter fit
        options = dict(schedule="constant", momentum=0.5)
        recorder = Recorder()
        small(cls, **options).set_callbacks(recorder).fit(X)
        parts = recorder.models
        for n, part in enumerate(parts[:-1], 1):
            assert_same_model(part, small(cls, max_iter=n, **options).fit(X))
    for part in parts:
        assert part.transform(X).shape == (300, part.n_components_)
        assert np.isfinite(part.score(X))


def test_a_growth_without_units_has_a_model_for_callbacks():
    recorder = Recorder()
    X = np.random.default_rng(0).random((300, 4)) < 0.5
    model = FrankWolfeRBM(2, tol=1.0, random_state=0, n_iter_no_change=2)
    with pytest.warns(ConvergenceWarning):
        model.set_callbacks(recorder).fit(X)
    assert [part.n_components_ for part in recorder.models] == [1, 1, 1]


@pytest.mark.parametrize("cls", CLASSES)
def test_a_callback_may_stop(cls):
    X = toy_data()
    options = {FrankWolfeRBM: {}, ContrastiveDivergenceRBM: {"schedule": "constant"}}
    name = {FrankWolfeRBM: "unit", ContrastiveDivergenceRBM: "epoch"}[cls]
    size = {FrankWolfeRBM: "n_components", ContrastiveDivergenceRBM: "max_iter"}[cls]
    recorder = Recorder(stop_at=(name, 1))
    model = small(cls, **options[cls]).set_callbacks(recorder).fit(X)
    assert recorder.ends(name) == [0, 1] and recorder.events[-1] == "teardown"
    assert model.n_iter_ == 2
    assert_same_model(model, small(cls, **{size: 2}, **options[cls]).fit(X))


def test_a_callback_may_stop_a_part():
    X, tuner = toy_data(), ContrastiveDivergenceRBM(max_iter=3)
    model = small(FrankWolfeRBM, fine_tune=tuner)
    of_growth = clone(model).set_callbacks(Recorder(("growth", 0))).fit(X)
    assert of_growth.n_components_ == 3 and not hasattr(of_growth, "fine_tune_")
    of_units = clone(model).set_callbacks(Recorder(("unit", 0))).fit(X)
    assert of_units.n_components_ == 1 and of_units.fine_tune_.n_iter_ == 3
    of_epochs = clone(model).set_callbacks(Recorder(("epoch", 1))).fit(X)
    assert of_epochs.n_components_ == 3 and of_epochs.fine_tune_.n_iter_ == 2


@pytest.mark.parametrize("cls", CLASSES)
def test_callbacks_end_with_a_fit_that_fails(cls, monkeypatch):
    recorder = Recorder()
    model = small(cls).set_callbacks(recorder)
    module = {FrankWolfeRBM: growth, ContrastiveDivergenceRBM: contrastive}[cls]
    interrupt(monkeypatch, module, 2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(toy_data())
    assert recorder.events[-1] == "teardown"
    assert not any("callback_fit_ctx" in name for name in vars(model))


@pytest.mark.parametrize("cls", CLASSES)
def test_callbacks_reach_an_rbm_in_a_pipeline(cls):
    X, recorder = toy_data(), Recorder()
    model = make_pipeline(small(cls), LogisticRegression())
    model.set_callbacks(recorder).fit(X, X[:, 0])
    name = {FrankWolfeRBM: "unit", ContrastiveDivergenceRBM: "epoch"}[cls]
    assert recorder.ends(name) == list(range(model[0].n_iter_))
    assert recorder.events.count("setup") == 1


@pytest.mark.parametrize("cls", CLASSES)
def test_scores_of_each_part(cls):
    X = toy_data()

    def fit_quality(model, X, y):
        return model.pseudo_likelihood(X).mean()

    monitor = callbacks.ScoringMonitor(scoring={"quality": fit_quality})
    # which asks for a y
    model = small(cls).set_callbacks(monitor).fit(X, np.zeros(len(X)))
    name = {FrankWolfeRBM: "unit", ContrastiveDivergenceRBM: "epoch"}[cls]
    rows = [r for r in monitor.get_logs().data if r["task_name"] == name]
    assert len(rows) == model.n_iter_
    assert rows[-1]["quality"] == model.pseudo_likelihood(X).mean()
    assert len({row["quality"] for row in rows}) == len(rows)


def test_progress_bars_with_the_time_left(capsys, monkeypatch):
    pytest.importorskip("rich", reason="ProgressBar needs rich")
    monkeypatch.setenv("COLUMNS", "120")
    X = toy_data()
    tuner, bar = ContrastiveDivergenceRBM(max_iter=2), callbacks.ProgressBar()
    small(FrankWolfeRBM, fine_tune=tuner).set_callbacks(bar).fit(X)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    bars = [" ".join(line[:3]) for line in lines]
    assert [*dict.fromkeys(bars[-3:])] == [
        "FrankWolfeRBM - fit",
        "FrankWolfeRBM - growth",
        "FrankWolfeRBM - fine-tuning",
    ]
    for line in lines[-3:]:
        assert line[-2] == "100%" and line[-1].startswith("0:00:")
