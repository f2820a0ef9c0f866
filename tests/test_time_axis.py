"""Stamps of rows: what they must be, and what follows from them."""

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from grids import each_value_once
from numpy.testing import assert_array_equal

from skbayesnn import SparseBayesNARXRegressor
from skbayesnn._time_axis import split_time
from skbayesnn.exceptions import SamplingWarning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 90
TIMES = pd.date_range("2024-05-01", periods=N, freq="90s")


def signals():
    rng = np.random.default_rng(1)
    u, y = rng.uniform(-1, 1, size=N), np.zeros(N)
    for t in range(1, N):
        y[t] = 0.8 * y[t - 1] + u[t - 1]
    return u, y + 0.01 * rng.standard_normal(N)


U, Y = signals()
FRAME = pd.DataFrame({"u": U}, index=TIMES)
LEVEL = pd.Series(Y, TIMES, name="level")
HOLES = np.r_[:30, 35:60, 70:N]


def model():
    return SparseBayesNARXRegressor(1, 1, hidden_layer_sizes=(), max_cycles=5, tol=1.0)


@pytest.fixture(scope="module")
def fitted():
    return model().fit(FRAME, LEVEL)


@pytest.mark.parametrize(
    "X, y, expected",
    [
        (FRAME, Y, 90.0),
        (U[:, None], LEVEL, 90.0),
        (FRAME.tz_localize("Europe/Berlin"), Y, 90.0),
        (FRAME.set_axis(TIMES - TIMES[0]), Y, 90.0),
        (FRAME.set_axis(TIMES.to_period("s")), Y, 90.0),
        (FRAME.reset_index(names="time"), Y, 90.0),
        (FRAME.assign(time=np.arange(N) * 0.25), Y, 0.25),
        (FRAME.assign(time=np.arange(N)).to_numpy(), Y, None),
        (FRAME.reset_index(drop=True), Y, None),
    ],
)
def test_sampling_time(X, y, expected):
    fitted = model().fit(X, y)
    assert getattr(fitted, "sampling_time_", None) == expected


def test_a_summer_time_has_every_hour_once():
    hours = pd.date_range("2024-10-26", periods=N, freq="h", tz="Europe/Berlin")
    assert model().fit(FRAME.set_axis(hours), Y).sampling_time_ == 3600.0
    as_column = FRAME.assign(time=hours)
    assert model().fit(as_column, Y).sampling_time_ == 3600.0


@pytest.mark.parametrize(
    "rows, problem",
    [
        (np.r_[:20, 40:50, 20:40, 50:N], "Times are not in order in 1 rows.* row 30"),
        (np.r_[:20, 19:N], "Times are repeated in 1 rows, the first of them row 20"),
    ],
)
def test_times_must_rise(fitted, rows, problem):
    X, y = FRAME.iloc[rows], LEVEL.iloc[rows]
    for call in (model().fit, fitted.predict, fitted.score):
        with pytest.raises(ValueError, match=problem):
            call(X, y)
        # as sessions they may begin anew
    first = np.flatnonzero(np.diff(rows) <= 0)[0] + 1
    sessions = np.arange(N + (len(rows) - N)) >= first
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        assert fitted.score(X, y, sessions=sessions) > 0.9


def test_a_missing_time_is_refused():
    stamps = TIMES.to_numpy().copy()
    stamps[4] = np.datetime64("NaT", "ns")
    with pytest.raises(ValueError, match="time is missing in 1 rows.* row 4"):
        model().fit(FRAME.set_axis(pd.DatetimeIndex(stamps)), Y)
    numbers = np.arange(N, dtype=float)
    numbers[7] = np.nan
    with pytest.raises(ValueError, match="time is missing in 1 rows.* row 7"):
        model().fit(FRAME.assign(time=numbers), Y)


def test_a_time_is_no_text():
    with pytest.raises(ValueError, match="column 'time' of X.*pandas.to_datetime"):
        model().fit(FRAME.assign(time=TIMES.astype(str)), Y)


def test_indices_must_not_contradict_each_other(fitted):
    later = LEVEL.set_axis(TIMES + pd.Timedelta("90s"))
    with pytest.raises(ValueError, match="contradict each other in 90 rows.* row 0"):
        model().fit(FRAME, later)
    with pytest.raises(ValueError, match="contradict each other"):
        fitted.predict(FRAME, later)
    # times of a zone are told in universal time, and say so
    zone = "Europe/Berlin"
    with pytest.raises(ValueError, match=r"row 0: \S+ UTC and \S+ UTC\. Join"):
        model().fit(FRAME.tz_localize(zone), later.tz_localize(zone))
    numbered, order = FRAME.reset_index(drop=True), np.r_[1, 0, 2:N]
    with pytest.raises(ValueError, match="same rows in another order, from row 0 on"):
        model().fit(numbered, LEVEL.reset_index(drop=True).iloc[order])
    # another numbering is no contradiction, nor is an index beside none
    model().fit(numbered, pd.Series(Y, np.arange(N) + 5))
    model().fit(FRAME, LEVEL.reset_index(drop=True))


def test_holes_are_warned_of_and_make_sessions(fitted):
    X, y = FRAME.iloc[HOLES], LEVEL.iloc[HOLES]
    hole = "Most rows are 90 s apart in time; 2 of the steps differ. The first of these"
    for call in (model().fit, fitted.predict, fitted.score):
        with pytest.warns(SamplingWarning, match=hole):
            call(X, y)
    sessions = np.repeat([0, 1, 2], [30, 25, 20])
    inferred = model().fit(X, y, sessions="infer")
    told = model().fit(X, y, sessions=sessions)
    assert_array_equal(inferred.posterior_covariance_, told.posterior_covariance_)
    for method in (fitted.predict, fitted.score, fitted.sample_y):
        assert_array_equal(
            method(X, y, sessions="infer"), method(X, y, sessions=sessions)
        )
    with pytest.raises(ValueError, match="'infer' splits.*index of times"):
        model().fit(U[:, None], Y, sessions="infer")


def test_holes_in_sessions_that_were_passed_are_said_to_be_there(fitted):
    X, y = FRAME.iloc[HOLES], LEVEL.iloc[HOLES]
    # of the two holes one separates the sessions
    ids = np.repeat(["a", "b"], [30, 45])
    problem = (
        "1 of the steps differ.*the sessions that were passed contain these holes: "
        "begin a new id after each, .* sessions='infer', in place of ids, begins"
    )
    for call in (model().fit, fitted.predict, fitted.score):
        with pytest.warns(SamplingWarning, match=problem):
            call(X, y, sessions=ids)
    # "infer" leaves none, but may leave rows too near to each other
    X = X.set_axis(X.index.where(np.arange(75) != 20, X.index[19] + pd.Timedelta("9s")))
    with pytest.warns(SamplingWarning, match="1 of the steps .* resample the records"):
        model().fit(X, y.to_numpy(), sessions="infer")


def test_another_sampling_time_is_warned_of(fitted):
    with pytest.warns(SamplingWarning, match="180 s apart, and 90 s in the training"):
        fitted.predict(FRAME.iloc[::2], LEVEL.iloc[::2])


def test_an_index_that_jumps_is_warned_of(fitted):
    numbered = FRAME.reset_index(drop=True)
    shuffled = np.random.default_rng(0).permutation(N)
    drawn = np.sort(np.random.default_rng(0).integers(N, size=N))
    for rows in (shuffled, drawn, HOLES):
        with pytest.warns(SamplingWarning, match="does not count up evenly"):
            model().fit(numbered.iloc[rows], Y[rows])
    # every tenth row, or the second part of a record, does
    model().fit(numbered.iloc[::3], Y[::3])
    model().fit(numbered.iloc[30:], Y[30:])
    sessions = np.repeat([0, 1, 2], [30, 25, 20])
    model().fit(numbered.iloc[HOLES], Y[HOLES], sessions=sessions)


def test_a_record_of_times_alone_is_an_autoregression():
    times = pd.DataFrame({"time": TIMES})
    fitted = model().fit(times, Y)
    assert fitted.n_features_in_ == 0 and fitted.sampling_time_ == 90.0
    assert fitted.predict(times, Y).shape == (N,)
    assert fitted.predict(times[:5], y_init=Y[:2]).shape == (5,)


@pytest.mark.parametrize("kind", ["index", "column"])
def test_rows_from_which_a_run_starts_have_their_times(kind):
    """Without X_init they are the first of X; with it they come before."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 200)
    y = np.convolve(u, [0.0, 1.0, 0.5])[:200]
    index = pd.date_range("2030-01-01", periods=200, freq="s")
    if kind == "index":
        X, s = pd.DataFrame({"u": u}, index=index), pd.Series(y, index=index)
    else:
        X = pd.DataFrame({"time": index, "u": u})
        s = pd.DataFrame({"time": index, "y": y})
    model = SparseBayesNARXRegressor(2, 2, hidden_layer_sizes=()).fit(X, s)
    model.predict(X[100:120], y_init=s[100:110])
    model.predict(X[100:120], X_init=X[90:100], y_init=s[90:100])
    # arrays have no times
    model.predict(X[100:120], y_init=y[90:100])
    for message, arguments in (
        (
            "y_init begins at 2030-01-01T00:01:30.* at 2030-01-01T00:01:40",
            {"y_init": s[90:100]},
        ),
        ("contradict", {"X_init": X[90:100], "y_init": s[10:20]}),
        ("X must follow on", {"X_init": X[95:105], "y_init": s[95:105]}),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(X[100:120], **arguments)
    # behind a gap, and with one inside
    gap = (
        "X_init ends at .*01:19.* of X begin 21 s later, .*01:40.* sampling time is 1 s"
    )
    with pytest.warns(SamplingWarning, match=gap):
        model.predict(X[100:120], X_init=X[70:80], y_init=s[70:80])
    with_hole = np.r_[80:85, 90:100]
    before = {"X_init": X.iloc[with_hole], "y_init": s.iloc[with_hole]}
    hole = "Most rows are 1 s apart in time; 1 of the steps differ.* row 5"
    for call in (lambda **rows: model.predict(X[100:120], **rows), model.stream):
        with pytest.warns(SamplingWarning, match=hole):
            call(**before)
    with pytest.warns(SamplingWarning, match=hole):
        model.forecast(5, X[100:105], X_past=before["X_init"], y_past=before["y_init"])
    with pytest.raises(ValueError, match="X_init and y_init contradict"):
        model.stream(X_init=X[90:100], y_init=s[10:20])


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_times_in_another_column_are_refused(frames, zone):
    """Libraries make numbers of them, which would be a signal."""
    stamps = pd.Series(TIMES.tz_localize(zone))
    if frames.__name__ == "polars":
        stamps = frames.Series(TIMES.to_numpy()).dt.replace_time_zone(zone)
    frame = frames.DataFrame({"stamp": stamps, "u": U})
    with pytest.raises(ValueError, match="column 'stamp' of X holds times.*'time'"):
        model().fit(frame, Y)
    named = frames.DataFrame({"time": stamps, "other": stamps, "u": U})
    with pytest.raises(ValueError, match="column 'other' of X holds times"):
        model().fit(named, Y)


ZONE = "Europe/Berlin"


def test_forecasts_keep_the_time_zone():
    record, future = FRAME.tz_localize(ZONE), FRAME[30:].tz_localize(ZONE)
    level = LEVEL.tz_localize(ZONE)
    fitted = model().set_output(predict="pandas").fit(record[:30], level[:30])
    for arguments in (
        {"X_future": future},
        {"X_future": future.reset_index(drop=True)},
        {"X_future": future, "X_past": record[:30], "y_past": level[:30]},
    ):
        ahead = fitted.forecast(**arguments)
        assert (ahead.y_pred.index == future.index).all()
        assert str(ahead.y_pred.index.tz) == ZONE
        pd.testing.assert_index_equal(ahead.lower.index, ahead.y_pred.index)
    assert ahead.time[0] == future.index[0].tz_convert("UTC").to_datetime64()
    # of another place
    other = fitted.forecast(X_future=future.tz_convert("Asia/Tokyo")).y_pred
    assert str(other.index.tz) == "Asia/Tokyo"
    np.testing.assert_array_equal(other, ahead.y_pred)


def test_forecasts_of_polars_keep_the_time_zone():
    polars = pytest.importorskip("polars")
    stamps = polars.Series(TIMES.to_numpy()).dt.replace_time_zone("UTC")
    stamps = stamps.dt.convert_time_zone(ZONE)
    record = polars.DataFrame({"time": stamps, "u": U})
    fitted = model().set_output(predict="polars").fit(record[:30], Y[:30])
    ahead = fitted.forecast(X_future=record[30:]).y_pred
    assert ahead["time"].dtype.time_zone == ZONE
    assert (ahead["time"] == stamps[30:]).all()


CALENDARS = {
    "months": pd.date_range("2000-01", periods=N, freq="MS"),
    "ends of months": pd.date_range("2000-01", periods=N, freq="ME"),
    "two months": pd.date_range("2000-01", periods=N, freq="2MS"),
    "quarters": pd.date_range("2000-02", periods=N, freq="QS-FEB"),
    "years": pd.date_range("1900", periods=N, freq="YS"),
    "working days": pd.bdate_range("2024-03-04", periods=N),
    "periods of months": pd.period_range("2000-01", periods=N, freq="M"),
    "periods of quarters": pd.period_range("2000-02", periods=N, freq="Q-NOV"),
    "months in Berlin": pd.date_range("2000-01", periods=N, freq="MS", tz=ZONE),
    "days in Berlin": pd.date_range("2024-01-05", periods=N, freq="D", tz=ZONE),
    "weeks": pd.date_range("2024-01-05", periods=N, freq="2W"),
}


PLANNED = FRAME.reset_index(drop=True)


def universal(index):
    index = index.to_timestamp() if hasattr(index, "to_timestamp") else index
    return (index if index.tz is None else index.tz_convert(None)).to_numpy()


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.SamplingWarning")
@pytest.mark.parametrize(
    *each_value_once(
        name=list(CALENDARS), given=["index", "index without frequency", "column"]
    )
)
def test_forecasts_go_on_by_the_calendar(name, given):
    index = CALENDARS[name]
    X, n = FRAME.set_axis(index), 80
    if given == "index without frequency" and not hasattr(index, "to_timestamp"):
        X.index = index.copy()
        X.index.freq = None
    elif given == "column":
        stamps = index.to_timestamp() if hasattr(index, "to_timestamp") else index
        X = X.set_axis(stamps).reset_index(names="time")
    fitted = model().fit(X, Y)
    ahead = fitted.forecast(X_future=PLANNED[n:], X_past=X[:n], y_past=Y[:n])
    assert_array_equal(ahead.time, universal(index)[n:])


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.SamplingWarning")
@pytest.mark.parametrize("index", CALENDARS.values(), ids=CALENDARS)
def test_forecasts_go_on_by_the_calendar_of_the_training_record(index):
    X, n = FRAME.set_axis(index), 80
    fitted = pickle.loads(pickle.dumps(model().fit(X[:n], Y[:n])))
    assert_array_equal(fitted.forecast(X_future=PLANNED[n:]).time, universal(index)[n:])
    # a fit to a record without a calendar forgets that of the last one
    fitted.fit(FRAME[:n], Y[:n])
    assert_array_equal(fitted.forecast(X_future=PLANNED[n:]).time, TIMES[n:])


@pytest.mark.filterwarnings("ignore::skbayesnn.exceptions.SamplingWarning")
@pytest.mark.parametrize("name", ["months", "quarters", "years", "ends of months"])
def test_months_that_follow_no_calendar_give_no_times(name):
    # in the last rows one is missing
    X = FRAME.set_axis(CALENDARS[name])[np.arange(N) != N - 5]
    fitted = model().fit(X, np.delete(Y, N - 5))
    assert fitted.forecast(X_future=PLANNED[:4]).time is None
    past = dict(X_past=X, y_past=np.delete(Y, N - 5))
    assert fitted.forecast(X_future=PLANNED[:4], **past).time is None


def test_months_that_differ_in_length_are_no_other_speed():
    X = FRAME.set_axis(CALENDARS["months"])
    fitted = model().fit(X, Y)
    for rows in (slice(1, 3), slice(13, 15), slice(30, N)):
        assert np.isfinite(fitted.predict(X[rows], Y[rows])).all()
    with pytest.warns(SamplingWarning, match="The rows are .* apart"):
        fitted.predict(FRAME.set_axis(CALENDARS["two months"]), Y)


def test_a_level_of_times_beside_others_is_refused():
    levels = [["mon", "tue"], pd.timedelta_range(0, periods=N // 2, freq="4s")]
    index = pd.MultiIndex.from_product(levels, names=["batch", "time"])
    frame = FRAME.set_axis(index)
    with pytest.raises(ValueError, match="2 levels.*'batch'.*X.droplevel[(]0[)]"):
        model().fit(frame, Y)
    sessions = index.get_level_values(0)
    assert model().fit(frame.droplevel(0), Y, sessions=sessions).sampling_time_ == 4.0
    with pytest.raises(ValueError, match="X.droplevel[(]1[)]"):
        model().fit(frame.swaplevel(), Y)
    # levels of which none is a time
    numbers = pd.MultiIndex.from_product([["a", "b"], range(N // 2)])
    fitted = model().fit(FRAME.set_axis(numbers), Y)
    assert not hasattr(fitted, "sampling_time_")


# texts in the index


def calls_on(fitted):
    """Calls that read times of X and y, or of X alone."""
    return {
        "fit": lambda X, y: model().fit(X, y),
        "predict": fitted.predict,
        "free run": lambda X, y: fitted.predict(X, y_init=np.asarray(y)[:1]),
        "score": fitted.score,
        "init": lambda X, y: fitted.predict(X, y_init=y[:9], X_init=X[:9]),
        "stream": lambda X, y: fitted.stream(X[:9], y[:9]),
        "sample_y": lambda X, y: fitted.sample_y(X, y, n_samples=1),
        "past": lambda X, y: fitted.forecast(X_future=U[:3, None], X_past=X, y_past=y),
        "future": lambda X, y: fitted.forecast(X_future=X),
    }


@pytest.mark.parametrize(
    "call, name",
    [
        ("fit", "X"),
        ("predict", "X"),
        ("free run", "X"),
        ("init", "X"),
        ("stream", "X_init"),
        ("score", "X"),
        ("sample_y", "X"),
        ("past", "X_past"),
        ("future", "X_future"),
    ],
)
def test_texts_that_look_like_times_are_warned_of_once(call, name):
    fitted = model().fit(U[:, None], Y)
    X = pd.DataFrame(U[:, None], index=TIMES.astype(str))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calls_on(fitted)[call](X, pd.Series(Y, X.index))
    texts = [str(w.message) for w in caught if w.category is SamplingWarning]
    assert texts == [
        f"The index of {name} holds texts that look like times ({X.index[0]!r}). They "
        "are not read. Use pd.read_csv(..., parse_dates=True), or "
        f"{name}.index = pd.to_datetime({name}.index)."
    ]
    here = [w.filename for w in caught if w.category is SamplingWarning]
    assert here == [__file__]


def test_texts_of_y_are_warned_of_where_x_has_no_index():
    y = pd.Series(Y, TIMES.strftime("%d.%m.%Y %H:%M:%S"))
    with pytest.warns(SamplingWarning, match="The index of y holds texts"):
        model().fit(U[:, None], y)
    # numbers of rows are an index, and times are known
    model().fit(pd.DataFrame({"u": U}), y)
    assert model().fit(FRAME.set_axis(TIMES.astype(str)), LEVEL).sampling_time_ == 90.0


@pytest.mark.parametrize(
    "label",
    ["{}", "a{}", "12", "2026", "1.2.{}", "2026.5", "run 2026-{}", "A2026", "x/1/20"],
)
def test_names_and_numbers_are_no_times(label):
    index = pd.Index([label.format(k) for k in range(N)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SamplingWarning)
        model().fit(FRAME.set_axis(index), Y)


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-02 08:00:00",
        "2026-03-02T08:00:00.25+01:00",
        "02.03.2026 08:00",
        "3/2/2026",
        "3/2/26",
        "02-Mar-2026",
        "2026-03",
        "2026Q1",
        "08:00:00",
    ],
)
def test_many_formats_of_times_are_known(text):
    X = FRAME.set_axis(pd.Index([text] * N))
    with pytest.warns(SamplingWarning, match="holds texts that look like times"):
        model().fit(X, Y)
    problem = "sessions='infer' splits a record where time has a hole. The index of X"
    with pytest.raises(ValueError, match=problem):
        model().fit(X, Y, sessions="infer")


def test_an_index_that_is_not_computed_yet_is_left_alone():
    class Lazy:
        dtype = np.dtype(object)

        def __len__(self):
            raise AssertionError("all rows are computed")

    frame = SimpleNamespace(index=Lazy())
    assert split_time(frame, "X") == (frame, None)
