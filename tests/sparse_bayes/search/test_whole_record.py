"""Fits of the members to the whole record: which go on, and which stay."""

import numpy as np
import pytest
from search_cases import OF_LAGS, OF_STATES, choose, dynamic, quietly, record

from skbayesnn.sparse_bayes.dynamic_system import kind_of
from skbayesnn.sparse_bayes.search import runner, samples, whole_record
from skbayesnn.sparse_bayes.search.candidates import Table

pytestmark = pytest.mark.usefixtures("quick_states")


@pytest.mark.slow
def test_fits_of_hidden_states_go_on_from_those_that_were_scored(
    usual_starts, monkeypatch
):
    """Once for each good one, with what it has learned; what is left begins anew."""
    calls, fit = [], runner.fit_or_score

    def noted(task, settings, given, sample, start):
        result = fit(task, settings, given, sample, start)
        calls.append((task, start, result))
        return result

    monkeypatch.setattr(runner, "fit_or_score", noted)
    choose(monkeypatch, OF_STATES, OF_LAGS)
    model = quietly(dynamic(max_cycles=20, n_estimators=6), *record())
    scored = {t.fold: r for t, _, r in calls if t.candidate.max_cycles == 20}
    final = [call for call in calls if call[0].fold is None]
    assert {one.candidate.model for one, *_ in final} == {"states", "network"}
    went_on = []
    for task, start, member in final:
        if task.goes_on_from is None:
            assert start is None
            continue
        went_on.append(task.goes_on_from)
        assert start is scored[task.goes_on_from].start
        assert member in model.estimators_
    assert sorted(went_on) == [0, 1]
    assert [t.candidate.max_cycles for t, s, _ in final if s is not None] == [20, 20]


def test_poor_fits_and_those_of_few_cycles_do_not_go_on():
    few, long = OF_STATES._replace(max_cycles=15), OF_STATES._replace(max_cycles=200)
    table = Table(4)
    for fold, error in enumerate((0.1, 0.3, np.inf)):
        table.add(few, fold, 0.1)
        table.add(long, fold, error)
    starts = {(c, fold): object() for c in (few, long) for fold in range(3)}
    shares = {long: 3, few: 2, OF_LAGS: 1}
    tasks = whole_record._tasks_of_members(shares, table, starts, [7, 8, 9, 10, 11])
    assert [(t.candidate, t.seed, t.goes_on_from) for t in tasks] == [
        (long, 7, 0),
        (few, 7, None),
        (OF_LAGS, 7, None),
        (long, 8, None),
        (few, 8, None),
        (long, 9, None),
        (few, 9, None),
        (long, 10, None),
    ]
    begun = [start for start in tasks.values() if start is not None]
    assert begun == [starts[long, 0]]
    table.add(long, 3, 0.05)
    starts[long, 3] = object()
    # alone on its stretch
    tasks = whole_record._tasks_of_members({long: 2}, table, starts, [7, 8, 9])
    assert [t.goes_on_from for t in tasks] == [0, 3, None]


@pytest.mark.slow
def test_fits_to_fewer_rows_do_not_go_on(monkeypatch):
    tasks, fit = [], runner.fit_or_score

    def noted(task, *others):
        tasks.append((task, others[-1]))
        return fit(task, *others)

    monkeypatch.setattr(runner, "fit_or_score", noted)
    monkeypatch.setattr(samples, "NETWORK_ROWS", 149)
    choose(monkeypatch, OF_STATES)
    quietly(dynamic(max_cycles=20), *record())
    final = [(t.goes_on_from, start) for t, start in tasks if t.fold is None]
    assert final == [(None, None)] * 3


@pytest.mark.slow
def test_fits_that_err_far_more_than_they_should_are_left_out(monkeypatch):
    """A candidate was scored well, but its only fit to the record is a poor one."""

    poor = []

    def error(model, *others):
        return np.inf if kind_of(model) in poor else 0.0

    choose(monkeypatch, OF_LAGS, OF_STATES)
    monkeypatch.setattr(Table, "error", lambda *args, **options: 1.0)
    monkeypatch.setattr(whole_record, "error_over_record", error)
    for poor[:], kept in ((["states"], "network"), (["network"], "states")):
        model = quietly(dynamic(max_cycles=3), *record())
        assert model.kinds_ == [kept]
        assert model.estimator_weights_.sum() == pytest.approx(1.0)
    # all stay where all are poor
    poor[:] = ["network", "states"]
    assert quietly(dynamic(max_cycles=3), *record()).kinds_ == poor
