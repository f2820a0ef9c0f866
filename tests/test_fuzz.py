"""Fits of every kind: a finite result, or an error that names what was wrong."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from time_limits import TookTooLong, time_limit

FOLDER = Path(__file__).with_name("fuzz")

# hypothesis asks the garbage collector for a reference to its generator. One in a
# module that was imported with the tests is frozen, and is not shown.
pytestmark = pytest.mark.filterwarnings("ignore:It looks like .register_random. was")

# Half of what is tried has to get to the end, or it would be refusals that are tested.
MAX_REFUSED = 0.6
# The kinds in the proportion of their times; so many that the share of the refused ones
# is not that of a few.
A_FEW = {"mlp": 40, "narx": 40, "search": 5, "system": 2, "states": 10}
A_FEW |= {"cd": 40, "fw": 10}
CHECKED = {"mlp": 180, "narx": 170, "search": 20, "system": 15, "states": 40}
CHECKED |= {"cd": 100, "fw": 40}
MANY = {"mlp": 3500, "narx": 3500, "search": 500, "system": 500, "states": 800}
MANY |= {"cd": 1700, "fw": 800}


@pytest.fixture(scope="module")
def cases():
    """What is tried. Its import takes a second, and is left to who runs these tests."""
    sys.path.append(str(FOLDER))
    import cases

    return cases


def check_kind(cases, kind, n_cases, number):
    counts = cases.fuzz(kind, n_cases, number)
    print(f"{kind}: {counts.total()} tried, {counts['refused']} refused, 0 wrong")
    assert counts.total() >= 0.9 * n_cases
    if n_cases >= 40:
        assert counts["refused"] < MAX_REFUSED * counts.total()


@pytest.mark.parametrize("kind", A_FEW)
def test_a_few(cases, kind):
    check_kind(cases, kind, A_FEW[kind], number=0)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", MANY)
def test_many(cases, kind, part):
    check_kind(cases, kind, MANY[kind] // 4, number=part + 1)


@pytest.mark.slow
def test_with_bounds_checks(tmp_path):
    """In processes of their own: the compiler heeds the flag when it is imported."""
    environment = os.environ | {
        "NUMBA_BOUNDSCHECK": "1",
        # kernels that were compiled without checks are not to be found
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    for kind, n_cases in CHECKED.items():
        command = [sys.executable, FOLDER / "cases.py", kind, str(n_cases), "9"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        assert f"{kind}: {n_cases} tried" in done.stdout, done.stdout
        assert " 0 wrong" in done.stdout, done.stdout


@pytest.mark.parametrize("kind", A_FEW)
def test_all_parameters_are_tried(cases, kind):
    estimator, table, tiny = cases.of_models.TINY[kind]
    assert estimator().get_params(deep=False).keys() <= table.keys() | tiny.keys()
    for name, values in cases.of_models.ACCEPTED[kind].items():
        assert values, name


def case(cases, **changes):
    table = cases.data.Table(40, 2, 1.0, 0.0, "float64", "array", "none", 0)
    usual = cases.Case("mlp", {}, table, table._replace(n_columns=None), "score", {}, 0)
    return usual._replace(**changes)


def test_what_is_wrong_is_seen(cases, monkeypatch):
    """The judgement itself: each kind of fault."""
    assert cases.judge(case(cases)) == ("right", "")
    outcome, why = cases.judge(case(cases, parameters={"tol": -1.0}))
    assert outcome == "refused" and "tol" in why
    model, _, _ = cases.of_models.TINY["mlp"]

    def answers(found):
        monkeypatch.setattr(model, "predict", found)
        return cases.judge(case(cases, call="predict"))

    cases_of_fault = {
        "shape (3,)": lambda self, X: np.zeros(3),
        "dtype float32": lambda self, X: np.zeros(40, np.float32),
        "holds [nan": lambda self, X: np.full(40, np.nan),
        "RuntimeWarning: divide by zero": lambda self, X: 1.0 / np.zeros(40),
        "ZeroDivisionError": lambda self, X: 1 / 0,
        "ValueError: invalid literal": lambda self, X: int("no number"),
    }
    for why, found in cases_of_fault.items():
        outcome, text = answers(found)
        assert outcome == "wrong" and why in text, text
    monkeypatch.setattr(cases, "LIMIT", 0.05)
    outcome, text = answers(lambda self, X: time.sleep(5.0))
    assert outcome == "wrong" and text == "no end after 0.05 s"


def test_limits_may_be_nested():
    begin = time.monotonic()

    def outer():
        with time_limit(0.1):
            with time_limit(10.0):
                pass
            while time.monotonic() - begin < 10.0:
                pass

    with pytest.raises(TookTooLong, match=r"0\.1"):
        outer()
    assert time.monotonic() - begin < 5.0


def test_a_process_that_hangs_in_compiled_code_is_ended():
    hang = "from time_limits import hard_limit\nimport ctypes\n"
    # with the lock of the interpreter: no other thread of Python runs
    hang += "with hard_limit(0.5): ctypes.PyDLL(None).sleep(20)"
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", hang],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    )
    assert time.monotonic() - begin < 15.0
    assert done.returncode != 0 and "Timeout" in done.stderr
