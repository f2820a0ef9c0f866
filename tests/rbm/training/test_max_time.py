"""Automatic trainings that may take so many seconds."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn._clock import Clock

EPOCHS_IN_TIME = ContrastiveDivergenceRBM(max_iter=3, max_time=1)


def rows(n_samples=120, n_features=14, rate=0.5):
    """Three features, each with copies."""
    some = np.random.default_rng(0).random((n_samples, 3)) < rate
    return some[:, np.arange(n_features) % 3]


def sizes_of(model):
    """Units of the starts that were compared."""
    return model.history_["n_components"][np.isfinite(model.history_["change"])]


def ends_behind(monkeypatch, n_asked):
    """The time for comparisons is over when it is asked for the n-th time."""
    asked = iter(range(n_asked))
    monkeypatch.setattr(Clock, "over", lambda *_: next(asked, None) is None)


def test_no_size_is_tried_behind_the_time_for_it(monkeypatch, capsys):
    tuner = ContrastiveDivergenceRBM(max_updates=300)
    parameters = dict(random_state=0, n_search_rows=100, fine_tune=tuner)
    ends_behind(monkeypatch, 12)
    model = FrankWolfeRBM(max_time=1e6, verbose=True, **parameters).fit(rows())
    lines = capsys.readouterr().out.splitlines()
    (place,) = [k for k, line in enumerate(lines) if "time for comparisons" in line]
    # without a limit two doublings follow the first size, and other starts
    assert 1 <= len(sizes_of(model)) <= 2
    # the best one trains on
    assert any(line.startswith("training: ") for line in lines[place:])
    assert not any("refit: " in line for line in lines)


def test_a_tree_that_is_ahead_at_once_comes_first_in_a_limited_time(capsys):
    """Where there is time for all sizes, it changes nothing but the order."""
    tuner = ContrastiveDivergenceRBM(max_updates=300)
    parameters = dict(random_state=0, n_search_rows=100, fine_tune=tuner)
    X, fits, sequences = rows(), [], []
    for max_time in (None, 1e6):
        model = FrankWolfeRBM(max_time=max_time, verbose=True, **parameters)
        fits.append(model.fit(X))
        names = re.findall("(?m)^([^:,]*).*: 100 updates", capsys.readouterr().out)
        sequences.append(names)
    assert_array_equal(*(fit.components_ for fit in fits))
    usual, limited = sequences
    assert limited[:2] == ["16 units", "tree of 11 pairs"]
    assert usual[1] == "32 units" and sorted(limited) == sorted(usual)


@pytest.mark.parametrize("kind", ["sizes", "rounds"])
def test_one_round_is_made_in_no_time(kind, capsys):
    X, parameters = rows(), dict(random_state=0, max_time=1e-6, verbose=True)
    if kind == "sizes":
        model = FrankWolfeRBM(n_search_rows=100, **parameters)
    else:
        model = ContrastiveDivergenceRBM(4, **parameters)
    model.fit(X)
    last = capsys.readouterr().out.splitlines()[-1]
    assert "ended by max_time" in last
    assert 0 < model.n_updates_ <= 300
    assert model.score(X) > model.score(~X[:, ::-1])


def test_a_time_that_is_not_needed_changes_nothing():
    X, parameters = rows(), dict(random_state=0, max_updates=300)
    fits = [
        ContrastiveDivergenceRBM(4, max_time=max_time, **parameters).fit(X)
        for max_time in (None, 1e6)
    ]
    assert_array_equal(*(fit.components_ for fit in fits))


def test_too_little_time_to_learn_anything_is_told_of():
    """It says nothing of the features."""
    model = ContrastiveDivergenceRBM(2, random_state=0, max_time=1e-6)
    with pytest.warns(ConvergenceWarning, match="max_time .* increase it"):
        model.set_params(learning_rate=1e-6).fit(rows(rate=0.2))


@pytest.mark.parametrize(
    "model, message",
    [
        (EPOCHS_IN_TIME, "max_iter=3"),
        (FrankWolfeRBM(3, max_time=1), "n_components=3"),
        (FrankWolfeRBM(fine_tune=ContrastiveDivergenceRBM(max_time=1)), "FrankWolfe"),
        (
            FrankWolfeRBM(
                3, fine_tune=ContrastiveDivergenceRBM(max_iter=3, max_time=1)
            ),
            "max_iter=3",
        ),
    ],
)
def test_what_takes_as_long_as_it_does_has_no_time(model, message):
    with pytest.raises(ValueError, match=f"max_time .*{message}"):
        model.fit(rows())


def test_the_fine_tuner_of_a_growth_has_a_time_of_its_own():
    tuner = ContrastiveDivergenceRBM(max_time=1e-6)
    model = FrankWolfeRBM(2, n_chains=20, n_corrective_steps=2, fine_tune=tuner)
    model.set_params(random_state=0).fit(rows())
    assert 0 < model.fine_tune_.n_updates_ <= 300
