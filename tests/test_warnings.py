"""A warning points at the line of the user's code."""

import warnings
from pathlib import Path

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skbayesnn
from skbayesnn._warnings import warn_caller
from skbayesnn.exceptions import DivergenceWarning

# code that stands in a file of the package, as far as Python can tell
INSIDE = str(Path(skbayesnn.__file__).parent / "made_up.py")


def inside_the_package(source, **names):
    exec(compile(source, INSIDE, "exec"), names)
    return names


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_the_line_of_the_caller_is_named_however_deep_the_cause(depth):
    source = """
def warn(depth):
    if depth:
        return warn(depth - 1)
    warn_caller("something happened", DivergenceWarning)
"""
    warn = inside_the_package(
        source, warn_caller=warn_caller, DivergenceWarning=DivergenceWarning
    )["warn"]
    with pytest.warns(DivergenceWarning, match="something happened") as record:
        warn(depth)
    assert len(record) == 1
    assert record[0].filename == __file__
    lines = Path(__file__).read_text().splitlines()
    assert lines[record[0].lineno - 1].strip() == "warn(depth)"


def test_frames_of_scikit_learn_are_not_the_caller():
    source = """
def warn(X):
    warn_caller("something happened", UserWarning)
    return X
"""
    warn = inside_the_package(source, warn_caller=warn_caller)["warn"]
    pipeline = make_pipeline(FunctionTransformer(warn, validate=False))
    with pytest.warns(UserWarning, match="something happened") as record:
        pipeline.fit_transform([[1.0]])
    assert {warning.filename for warning in record} == {__file__}


def test_a_divergence_is_a_runtime_warning_that_can_be_filtered_by_itself():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DivergenceWarning)
        warn_caller("silent", DivergenceWarning)
        with pytest.raises(RuntimeWarning, match="loud"):
            warn_caller("loud", RuntimeWarning)
    assert issubclass(DivergenceWarning, RuntimeWarning)
