"""Searches that were killed go on where they were."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import search_cases
from numpy.testing import assert_array_equal
from search_cases import assert_same_ensemble, estimator, quietly, record

from skbayesnn import _persistence
from skbayesnn.sparse_bayes.search import runner


class Fits:
    """Counts fits; behind a limit the search is killed."""

    def __init__(self):
        self.tasks, self.limit, self.fit = [], None, runner.fit_or_score

    def __call__(self, task, *arguments):
        if len(self.tasks) == self.limit:
            raise KeyboardInterrupt
        self.tasks.append(task)
        return self.fit(task, *arguments)


@pytest.fixture
def fits(monkeypatch):
    counted = Fits()
    monkeypatch.setattr(runner, "fit_or_score", counted)
    monkeypatch.setattr(_persistence, "INTERVAL", 0.0)
    return counted


def search(path, **options):
    return estimator((1, 2), (3.0,), max_cycles=3, checkpoint=path, **options)


def assert_same(model, expected, u, y):
    assert_same_ensemble(model, expected)
    assert_array_equal(model.band_factor_, expected.band_factor_)
    for one, other in zip(
        model.predict(u, y_init=y[:2], return_std=True),
        expected.predict(u, y_init=y[:2], return_std=True),
        strict=True,
    ):
        assert_array_equal(one, other)


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        pytest.param(
            dict(focus="prediction", noise="student_t"), marks=pytest.mark.slow
        ),
        pytest.param(
            dict(
                output="difference",
                hidden_layer_sizes=(2, 2),
                groups=("element", "row"),
            ),
            marks=pytest.mark.slow,
        ),
        pytest.param(dict(hidden_layer_sizes=()), marks=pytest.mark.slow),
    ],
    ids=["networks", "one step", "differences", "linear"],
)
def test_a_killed_search_loses_one_fit(fits, tmp_path, options):
    u, y = record(60)
    expected = quietly(search(None, **options), u, y)
    everything, path = list(fits.tasks), tmp_path / "search"
    # among the folds, and among the fits to the whole record
    for n_done in (5, len(everything) - 1):
        fits.limit, fits.tasks = n_done, []
        path.unlink(missing_ok=True)
        with pytest.raises(KeyboardInterrupt):
            quietly(search(path, **options), u, y)
        fits.limit, fits.tasks = None, []
        model = quietly(search(path, **options), u, y)
        assert fits.tasks == everything[n_done:]
        assert_same(model, expected, u, y)
        assert [p.name for p in tmp_path.iterdir()] == ["search"]
    # a search that was finished
    fits.tasks = []
    again = quietly(search(path, **options), u, y)
    assert not fits.tasks
    assert_same(again, expected, u, y)


@pytest.mark.slow
def test_names_and_times_are_those_of_the_data(fits, tmp_path):
    pd = pytest.importorskip("pandas")
    u, y = record(60)
    times = pd.date_range("2026-01-01", periods=60, freq="1s")
    X = pd.DataFrame({"valve": u[:, 0]}, index=times)
    y = pd.Series(y, index=times, name="level")
    expected = quietly(search(None), X, y)
    for _ in range(2):
        model = quietly(search(tmp_path / "search"), X, y)
        assert model.lag_relevance_ == expected.lag_relevance_
        for member in model.estimators_:
            assert list(member.feature_names_in_) == ["valve"]
            assert member.output_lags_.keys() == {"level"}
            assert member.sampling_time_ == expected.sampling_time_
        following = X[:2].set_axis(times[:2] + 60 * times.freq)
        assert model.forecast(2, following).time[0] == times[-1] + times.freq


def test_another_search_is_refused(fits, tmp_path):
    u, y = record(60)
    path = tmp_path / "search"
    quietly(search(path), u, y)
    content = path.read_bytes()
    other = np.where(np.arange(60) == 30, y + 1.0, y)
    sessions = np.repeat([0, 1], 30)
    for model, data, options, what in [
        (search(path), (u, other), {}, "the values of y"),
        (search(path), (u + 1.0, y), {}, "the values of X"),
        (search(path), (u, y), {"sessions": sessions}, "sessions"),
        (search(path, noise="student_t"), (u, y), {}, "noise"),
    ]:
        with pytest.raises(ValueError, match=f"of another fit.*{what}"):
            quietly(model, *data, **options)
    assert path.read_bytes() == content
    path.write_bytes(content[:-100])
    with pytest.raises(ValueError, match="no checkpoint, or a damaged one"):
        quietly(search(path), u, y)
    with pytest.raises(OSError, match="cannot be written"):
        quietly(search(tmp_path / "nowhere" / "search"), u, y)


def test_the_seed_of_the_file_counts(fits, tmp_path):
    u, y = record(60)
    path = tmp_path / "search"
    first = quietly(search(path).set_params(random_state=None), u, y)
    again = quietly(search(path).set_params(random_state=None), u, y)
    assert_same(again, first, u, y)


@pytest.mark.slow
def test_kills_at_any_time(tmp_path):
    u, y = record(60)
    options = dict(cv=4, n_estimators=4)
    begin = time.perf_counter()
    expected = quietly(search(None, **options), u, y)
    duration = time.perf_counter() - begin
    path, rng, n_found = tmp_path / "search", np.random.default_rng(0), 0
    code = f"""
import sys
sys.path.insert(0, {str(Path(search_cases.__file__).parent)!r})
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_search_checkpoint import _persistence, quietly, record, search
_persistence.INTERVAL = 0.0
u, y = record(60)
quietly(search(None, **{options!r}), u[:50], y[:50])
print("ready", flush=True)
quietly(search({str(path)!r}, **{options!r}), u, y)
"""
    for _ in range(10):
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.0, 0.6 * duration))
            process.kill()
        n_found += path.exists()
    assert n_found >= 5
    assert_same(quietly(search(path, **options), u, y), expected, u, y)
    assert [p.name for p in tmp_path.iterdir()] == ["search"]


def test_more_time_goes_on(fits, tmp_path):
    """With what was fitted in the time before, to the result without a limit."""
    u, y = record(60)
    expected = quietly(search(None), u, y)
    n_whole = len(fits.tasks)
    hurried = quietly(search(tmp_path / "file", max_time=1e-9), u, y)
    n_hurried = len(fits.tasks) - n_whole
    assert 0 < n_hurried < n_whole
    for max_time in (1e9, None):
        hurried.set_params(max_time=max_time)
        assert_same(quietly(hurried, u, y), expected, u, y)
    # a member of what was the best by then may be none in the end
    n_more = len(fits.tasks) - n_whole - n_hurried
    assert n_whole - n_hurried <= n_more < n_whole
