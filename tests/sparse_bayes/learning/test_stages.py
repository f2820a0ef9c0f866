"""Stages of a fit: horizons of the free runs, from short to long."""

import itertools

import numpy as np
import pytest
from free_run_cases import fit, output_error


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("auto", [1, 8, 32, 128, np.inf]),
        ((1, 8, 32, 128, None), [1, 8, 32, 128, np.inf]),
        ((None,), [np.inf]),
        ((1,), [1]),
        ([3, 9], [3, 9]),
        (np.array([1, 5]), [1, 5]),
        ((1, 1000), [1, 1000]),
        # a stage longer than the record would repeat the last
        ((1, 500, 1000, None), [1, np.inf]),
        ((2, np.inf), [2, np.inf]),
        ((1.0, 4.0), [1, 4]),
    ],
    ids=str,
)
def test_horizon_schedule(schedule, expected):
    u, y, _ = output_error(200)
    model = fit(u, y, horizon_schedule=schedule, max_cycles=3)
    horizons = [horizon for horizon, _ in itertools.groupby(model.history_["horizon"])]
    assert horizons == expected
    assert np.isfinite(model.predict(u, y)).all()


@pytest.mark.parametrize(
    "schedule",
    [
        (),
        (0,),
        (-1, 5),
        (1.5,),
        (2, 1),
        (1, 1),
        (None, 5),
        (None, None),
        (np.nan,),
        (1, np.nan),
        ("a",),
        "all",
        5,
        None,
        [[1, 2], [3, 4]],
    ],
    ids=str,
)
def test_bad_horizon_schedule(schedule):
    u, y, _ = output_error(50)
    with pytest.raises(ValueError, match="horizon_schedule"):
        fit(u, y, horizon_schedule=schedule)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(solver="adam"), "solver='adam'.*focus='simulation'"),
        (dict(weighting="validation"), "weighting='validation' needs"),
        (dict(focus="both"), "focus"),
        (dict(initial_conditions="zero"), "initial_conditions"),
        (dict(n_estimators=0), "n_estimators"),
        (dict(selection="best"), "selection"),
        (dict(validation_fraction=1.0), "validation_fraction"),
        (dict(validation_fraction=0.99, selection="validation"), "y without its"),
        (dict(reg_lambda=[1.0, 2.0]), "reg_lambda"),
    ],
)
def test_bad_parameters(options, message):
    u, y, _ = output_error(50)
    with pytest.raises(ValueError, match=message):
        fit(u, y, **options)


def test_verbose_prints_the_horizon(capsys):
    u, y, _ = output_error(60)
    fit(u, y, verbose=True, max_cycles=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cycle 1: objective")
    assert lines[-1].startswith("horizon inf, cycle 2: objective")
