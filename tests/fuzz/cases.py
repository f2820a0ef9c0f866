"""Cases of parameters, data and calls, and the judgement of what comes of them.

    python tests/fuzz/cases.py KIND N_CASES SEED

prints how many were tried, refused and wrong, and each wrong one.
"""

import collections
import re
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[k]) for k in (0, 1)]

import calls as asked
import data
import numpy as np
import parameters as of_models
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from time_limits import TookTooLong, time_limit

from skbayesnn import FrankWolfeRBM
from skbayesnn.exceptions import DivergenceWarning

KINDS = list(of_models.TINY)
# Seconds for a case, usually some milliseconds: the first ones compile kernels.
LIMIT = 60.0
# Arguments of methods that a message may name, beside parameters.
ARGUMENTS = ["X", "y", "sessions", "horizon", "y_init", "X_init", "X_val"]
ARGUMENTS += ["n_samples", "n_steps", "n_chains", "betas", "random_state", "state", "V"]
# Checks of scikit-learn, SciPy and pandas that name the data by their shape or type.
BY_SHAPE = (
    r"array with|Expected 2D|inconsistent numbers of samples|[Ss]parse|"
    r"could not convert string|[Cc]omplex data|input array|input data|dtype|"
    r"n_features|features, but|can't convert complex|float\(\) argument"
)


class Case(NamedTuple):
    """Everything about a fit and a call that follows it."""

    kind: str
    parameters: dict
    X: data.Table
    y: data.Table | None
    call: str
    arguments: dict
    other_rows: bool


@st.composite
def cases(draw, kind):
    static, rbm = kind == "mlp", kind in ("cd", "fw")
    parameters = draw(of_models.parameters(kind))
    # a search needs stretches for its folds
    sizes = data.LONGER if kind in ("search", "system") else data.SIZES
    n_rows = draw(st.sampled_from(sizes))
    n_inputs = draw(st.sampled_from([1, 2, 3, 5] if static or rbm else [1, 2, 2, 3, 0]))
    # either the parameters are odd, or one of the tables
    odd = draw(st.sampled_from(["X", "y", "parameters", "parameters", "parameters"]))
    X = draw(data.tables(n_rows, n_inputs, sound=odd != "X"))
    n_outputs = draw(st.sampled_from([None, None, 1, 2]))
    y = None if rbm else draw(data.tables(n_rows, n_outputs, sound=odd != "y"))
    call = draw(st.sampled_from([one.__name__ for one in asked.CALLS[kind]]))
    other_rows = draw(st.booleans())
    return Case(kind, parameters, X, y, call, draw(asked.values()), other_rows)


def sound_values(case):
    """X, and y that depends on it."""
    n_rows, n_columns = case.X.n_rows, case.X.n_columns
    rng = np.random.default_rng(case.X.seed)
    if case.y is None:
        return (rng.random((n_rows, n_columns)) < 0.4).astype(float), None
    X = rng.normal(size=(n_rows, n_columns))
    y = np.tanh(X[:, :1].sum(axis=1)) + 0.1 * rng.normal(size=n_rows)
    if case.y.n_columns is None:
        return X, y
    return X, y[:, np.newaxis] + rng.normal(size=(n_rows, case.y.n_columns))


def make(case):
    """The estimator and the data."""
    estimator, _, tiny = of_models.TINY[case.kind]
    made = {k: of_models.made(k, v) for k, v in case.parameters.items()}
    n_components = made.get("n_components")
    if (
        estimator is FrankWolfeRBM
        and n_components == "auto"
        and made.get("fine_tune") is None
    ):
        # by itself it trains by up to 30,000 updates
        made["fine_tune"] = of_models.made("fine_tune", "rounds")
    X, y = sound_values(case)
    # without inputs: an autoregression
    X = data.make(case.X, X) if case.X.n_columns else None
    return estimator(**tiny | made), X, None if y is None else data.make(case.y, y)


def judge(case):
    """Run a case: "right", "refused" or "wrong", and why."""
    begin = time.monotonic()
    try:
        with time_limit(LIMIT), warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            outcome, why = _run(case)
    except TookTooLong:
        return "wrong", f"no end after {LIMIT} s"
    if time.monotonic() - begin > LIMIT:
        return "wrong", f"ended after {time.monotonic() - begin:.0f} s"
    for one in heard:
        numerical = issubclass(one.category, RuntimeWarning)
        if numerical and not issubclass(one.category, DivergenceWarning):
            place = f"{one.filename}:{one.lineno}"
            return "wrong", f"RuntimeWarning: {one.message} ({place})"
    return outcome, why


def _run(case):
    X = y = None
    try:
        model, X, y = make(case)
        model.fit(*((X,) if y is None else (X, y)))
    except Exception as error:
        return _refused(case, error, case.parameters)
    missing = case.kind in ("narx", "search", "system", "states")
    try:
        asked.fitted_numbers(model) if not missing else None
        if X is None:
            X = np.empty((len(y), 0))
        if case.other_rows and isinstance(X, np.ndarray) and X.ndim == 2:
            X, y = X[: len(X) // 2 + 1], None if y is None else y[: len(X) // 2 + 1]
        getattr(asked, case.call)(model, X, y, missing, case.arguments)
    except asked.Wrong as error:
        return "wrong", str(error)
    except Exception as error:
        return _refused(case, error, case.parameters, of_call=True)
    return "right", ""


def _refused(case, error, changed, of_call=False):
    """A documented exception that names an argument is no fault."""
    documented = isinstance(error, ValueError | TypeError)
    # a file that cannot be written
    documented |= isinstance(error, OSError) and "checkpoint" in changed
    named = [*changed, *ARGUMENTS]
    if isinstance(error, ValueError | TypeError) and of_call:
        named += ["n_components", "n_init"]
    words = "|".join(rf"\b{name}\b" for name in named)
    if documented and re.search(f"{words}|{BY_SHAPE}", str(error)):
        return "refused", f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))
    return "wrong", f"{type(error).__name__}: {error} ({where})"


def fuzz(kind, n_cases, number=0, collect=None):
    """Try many cases; a wrong one is an error, which hypothesis makes small.

    Unless all are collected, by a list.
    """
    counts = collections.Counter()

    @seed(number)
    @settings(
        max_examples=n_cases,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(kind))
    def run(case):
        outcome, why = judge(case)
        counts[outcome] += 1
        if outcome == "wrong" and collect is not None:
            collect.append((why, case))
        else:
            assert outcome != "wrong", why

    run()
    return counts


def main(kind, n_cases, number):
    wrong = []
    begin = time.perf_counter()
    counts = fuzz(kind, n_cases, number, wrong)
    seconds = time.perf_counter() - begin
    for why, case in wrong:
        print(f"{why}\n    {case}")
    print(
        f"{kind}: {counts.total()} tried, {counts['refused']} refused, "
        f"{counts['wrong']} wrong, {seconds:.1f} s"
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
