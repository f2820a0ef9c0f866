"""Callbacks of scikit-learn during a search."""

import numpy as np
import pytest
from grids import first_by_default
from numpy.testing import assert_array_equal
from search_cases import dynamic, errors_by_stretch, estimator, quietly, record
from sklearn.base import clone

from skbayesnn.sparse_bayes.search import candidate_scores

callbacks = pytest.importorskip(
    "sklearn.callback", reason="callbacks need scikit-learn 1.9 or later"
)

SEARCHES = {
    "lags": estimator(max_cycles=3),
    "kinds": dynamic(max_cycles=2),
}


class Recorder:
    """Names and numbers of the tasks of a fit; it may ask to stop after one."""

    def __init__(self, stop_at=None):
        self.begun, self.ended, self.limits, self.models = [], [], {}, []
        self.stop_at = stop_at
        self.is_torn_down = False

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.is_torn_down = True

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        path = self.path(context)
        self.begun.append(path)
        self.limits[path] = context.max_subtasks
        self.data = X, y

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        path = self.path(context)
        self.ended.append(path)
        self.models.append(fitted_estimator)
        return path == self.stop_at

    def path(self, context):
        own = ((context.task_name, context.task_id),)
        return own if context.parent is None else self.path(context.parent) + own


class Failing(Recorder):
    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        raise RuntimeError("in the middle")


@pytest.mark.parametrize("kind", first_by_default(SEARCHES))
def test_callbacks_see_rounds_and_their_fits(kind, monkeypatch):
    # no fit is begun anew
    monkeypatch.setattr(candidate_scores, "SETTLED", np.inf)
    u, y = record(100)
    recorder, plain = Recorder(), quietly(SEARCHES[kind], u, y)
    model = quietly(clone(SEARCHES[kind]).set_callbacks(recorder), u, y)
    assert_array_equal(model.predict(u), plain.predict(u))
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert recorder.is_torn_down and recorder.data[0] is u and recorder.data[1] is y
    # a bar of each round knows how many fits it has
    rounds = [path for path in recorder.begun if len(path) == 2]
    assert rounds[-1][1][0] == "ensemble"
    assert {path[1][0] for path in rounds[:-1]} == {"round"}
    for path in rounds:
        fits = [p for p in recorder.ended if len(p) == 3 and p[:2] == path]
        assert len(fits) == recorder.limits[path] > 0
    n_scored = np.isfinite(errors_by_stretch(model.cv_results_)[2:]).sum()
    n_fits = sum(recorder.limits[path] for path in rounds[:-1])
    # linear models without u(t), on both stretches, are not in the table
    assert n_fits == n_scored + {"lags": 0, "kinds": 2}[kind]
    # the last is the model itself
    assert_array_equal(recorder.models[-1].predict(u), model.predict(u))


def test_a_callback_ends_the_time():
    u, y = record(100)
    first = (("fit", 0), ("round", 0), ("fit", 1))
    recorder = Recorder(stop_at=first)
    model = quietly(clone(SEARCHES["lags"]).set_callbacks(recorder), u, y)
    assert np.isfinite(model.predict(u)).all()
    of_round = [p for p in recorder.ended if p[1:2] == (("round", 0),) and len(p) == 3]
    # the fit that finds the time over is told as well
    assert len(of_round) == 3
    assert np.isfinite(errors_by_stretch(model.cv_results_)[2:]).sum() == 2
    assert len(model.estimators_) == 1


def test_a_search_that_fails_tears_down():
    recorder = Recorder()
    model = clone(SEARCHES["lags"]).set_callbacks(recorder)
    with pytest.raises(ValueError, match="too short for a search with cv=3"):
        model.fit(*record(10))
    failing = Failing()
    u, y = record(100)
    with pytest.raises(RuntimeError, match="in the middle"):
        quietly(model.set_callbacks(failing), u, y)
    assert failing.is_torn_down
    assert not hasattr(model, "estimators_")
