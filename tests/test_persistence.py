"""The format of a checkpoint, and when it is written."""

import os
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rbm_checkpoints import assert_same, count_calls, digits, other

from skbayesnn import _persistence as _checkpoint
from skbayesnn.rbm import model as rbm_model


def test_writes_are_a_second_apart(tmp_path, monkeypatch):
    now = 0.0
    monkeypatch.setattr(_checkpoint.time, "monotonic", lambda: now)
    writes = count_calls(monkeypatch, os, "replace")
    checkpoint = _checkpoint.Checkpoint(tmp_path / "state", {}, 0)
    progress = _checkpoint.Progress(None, {}, 1, 0.0, False)
    expected = [1, 1, 2, 2, 3]
    for now, n_writes in zip([0.0, 0.9, 1.1, 2.0, 2.2], expected, strict=True):  # noqa: B007
        checkpoint.save("epochs", progress)
        assert len(writes) == n_writes
    checkpoint.save("epochs", progress._replace(done=True))
    assert len(writes) == 4


def test_another_archive_is_no_checkpoint(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=digits())
    content = path.read_bytes()
    with pytest.raises(ValueError, match="no checkpoint"):
        other("plain", path).fit(digits())
    assert path.read_bytes() == content


class Foreign(NamedTuple):
    value: int


def test_any_state_comes_back(tmp_path):
    rbm = rbm_model.RBM(
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([np.nan, -0.0], dtype=np.float32),
        np.zeros((3, 0), dtype=np.uint8),
        None,
    )
    chains = rbm_model.Chains(np.array(True), np.uint64(2**64 - 1), -(2**70), 1.5e-320)
    progress = _checkpoint.Progress(
        rbm, {"a": chains, "b.c": np.float32(0.1), "nan": float("inf")}, 3, 0.5, False
    )
    checkpoint = _checkpoint.Checkpoint(tmp_path / "state", {"a": 1}, 7)
    checkpoint.save("some", progress)
    rbm.weights[:] = 0.0
    again = _checkpoint.Checkpoint(tmp_path / "state", {"a": 1}, 0)
    again.read()
    assert again.seed == 7
    for source in (checkpoint, again):
        back = source.load("some")
        weights = np.arange(6.0).reshape(2, 3)
        assert_same(back, progress._replace(state=rbm._replace(weights=weights)))
        assert back.state.weights.flags.f_contiguous
        # a training may write to what it gets
        back.state.weights[:] = 5.0
        assert_array_equal(source.load("some").state.weights, weights)
    assert checkpoint.load("none") is None


def test_what_has_no_place_in_a_file(tmp_path):
    checkpoint = _checkpoint.Checkpoint(tmp_path / "state", {}, 0)
    progress = _checkpoint.Progress(object(), {}, 1, 0.0, False)
    with pytest.raises(TypeError, match="cannot write some.state, of type object"):
        checkpoint.save("some", progress)
    # classes of others are not looked up
    checkpoint.save("some", progress._replace(state=Foreign(1)))
    with pytest.raises(ValueError, match="damaged.*Foreign is not of skbayesnn"):
        checkpoint.read()


def test_fields_of_another_version(tmp_path, monkeypatch):
    checkpoint = _checkpoint.Checkpoint(tmp_path / "state", {}, 0)
    clamp = rbm_model.Clamp(np.zeros(3), np.zeros(3))
    checkpoint.save("some", _checkpoint.Progress(clamp, {}, 1, 0.0, False))

    class Clamp(NamedTuple):
        mask: np.ndarray

    monkeypatch.setattr(rbm_model, "Clamp", Clamp)
    with pytest.raises(ValueError, match="damaged one .*values"):
        checkpoint.read()


def test_large_data_are_hashed_in_blocks(monkeypatch):
    X = np.random.default_rng(0).random((50, 7))
    whole = _checkpoint._fingerprint(X)
    monkeypatch.setattr(_checkpoint, "_HASHED_BYTES", 100)
    assert _checkpoint._fingerprint(X) == whole
    assert _checkpoint._fingerprint(np.asfortranarray(X)) == whole
    X[-1, -1] += 1e-15
    assert _checkpoint._fingerprint(X) != whole
