"""Fits that are killed and go on: the same result, and errors for what is not theirs.

The kills are real: a process of its own forks a child for each, which fits until a hook
sends it SIGKILL.
"""

import errno
import functools
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

import skbayesnn
from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn import _persistence as _checkpoint
from skbayesnn.rbm import contrastive_divergence as _contrastive
from skbayesnn.rbm import model as solver
from skbayesnn.rbm.learning import contrastive, growth

CLASSES = [ContrastiveDivergenceRBM, FrankWolfeRBM]
GROWTH = dict(
    objective="linearized",
    n_chains=60,
    n_search_rows=100,
    max_search_iter=3,
    n_corrective_steps=5,
    random_state=3,
)
TUNER = ContrastiveDivergenceRBM(max_iter=4, momentum=0.5, early_stopping=True)
CASES = {
    "plain": ContrastiveDivergenceRBM(
        6, max_iter=4, batch_size=50, momentum=0.5, random_state=3
    ),
    # ends long before max_iter, by the rows that it holds out
    "early": ContrastiveDivergenceRBM(
        20,
        max_iter=40,
        early_stopping=True,
        max_gap=0.2,
        batch_size=10,
        random_state=np.random.RandomState(4),
    ),
    "growth": FrankWolfeRBM(3, away_steps=True, **GROWTH),
    "fractional": FrankWolfeRBM(3, alpha="learn", early_stopping=True, **GROWTH),
    "tuned": FrankWolfeRBM(3, fine_tune=TUNER, fine_tune_norm=0.5, **GROWTH),
    "all tuning": FrankWolfeRBM(
        3,
        init=ContrastiveDivergenceRBM(5, max_iter=2, random_state=0),
        fine_tune=TUNER,
        **{**GROWTH, "random_state": None},
    ),
}
# Where the hook strikes, and at which of its calls.
KILLS = [
    # the first write comes before anything else, the second before the first epoch
    *[("plain", "replaced", n) for n in range(1, 7)],
    ("plain", "writing", 4),
    ("plain", "step", 15),
    ("early", "replaced", 3),
    ("early", "writing", 4),
    *[("growth", "replaced", n) for n in (3, 4, 5)],
    ("growth", "writing", 4),
    ("growth", "growing", 3),
    ("fractional", "replaced", 3),
    *[("tuned", "replaced", n) for n in (4, 5, 6, 7, 9)],
    ("tuned", "writing", 8),
    ("tuned", "step", 23),
    ("all tuning", "replaced", 4),
]


def digits(n_samples=200):
    return load_digits().data[:n_samples] > 7


def file_of(folder, case, hook, n_calls):
    return Path(folder) / f"{case} {hook} {n_calls}"


def other(case, path, **parameters):
    """An estimator that is fitted anew, as after a restart."""
    return clone(CASES[case]).set_params(checkpoint=path, **parameters)


def fit(case, path, **parameters):
    with threadpool_limits(1):
        return other(case, path, **parameters).fit(digits())


def uninterrupted(case, seed=None):
    """The same fit without a checkpoint; ``seed`` where it was drawn by chance."""
    return fit_once(case, None if CASES[case].random_state is not None else seed)


@functools.cache
def fit_once(case, seed):
    with threadpool_limits(1), pytest.MonkeyPatch.context() as patch:
        if seed is not None:
            draw = _contrastive.draw_seed
            patch.setattr(
                _contrastive, "draw_seed", lambda r: seed if r is None else draw(r)
            )
        return clone(CASES[case]).fit(digits())


def kill_at(module, name, n_calls):
    """SIGKILL at a call of a function."""
    function, calls = getattr(module, name), iter(range(n_calls - 1))

    def deadly(*arguments):
        last = next(calls, None) is None
        if last and name == "fsync":
            # the half of the file that was written
            os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
        result = function(*arguments)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(module, name, deadly)


def fit_and_die(path, case, hook, n_calls):
    where = {
        "replaced": (os, "replace"),
        "writing": (os, "fsync"),
        "step": (contrastive, "step"),
        "growing": (growth, "step"),
    }
    _checkpoint.INTERVAL = 0.0
    kill_at(*where[hook], n_calls)
    fit(case, path)


def kill_all(folder):
    """Fork a child for each kill; print how they ended."""
    for case in CASES.values():
        # compiled code is loaded once, here
        clone(case).fit(digits())
    for kill in KILLS:
        child = os.fork()
        if not child:
            fit_and_die(file_of(folder, *kill), *kill)
            os._exit(0)
        print(json.dumps(os.waitpid(child, 0)[1]), flush=True)


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """The folder with what the killed fits have left."""
    if not hasattr(os, "fork"):
        pytest.skip("needs a system that forks and kills")
    folder = tmp_path_factory.mktemp("killed")
    code = f"import test_persistence; test_persistence.kill_all({str(folder)!r})"
    paths = [str(Path(skbayesnn.__file__).parents[1]), str(Path(__file__).parent)]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            # a process that forks should have no other threads
            "OPENBLAS_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    ends = [json.loads(line) for line in done.stdout.splitlines()]
    assert [os.WTERMSIG(end) for end in ends] == [signal.SIGKILL] * len(KILLS)
    return folder


@pytest.fixture
def always(monkeypatch):
    """Writes after each epoch, however short."""
    monkeypatch.setattr(_checkpoint, "INTERVAL", 0.0)


def forbid_steps(monkeypatch):
    """From here on, training is a failure."""

    def step(*arguments):
        raise AssertionError("a step was taken")

    monkeypatch.setattr(contrastive, "step", step)
    monkeypatch.setattr(growth, "step", step)


def count_calls(monkeypatch, module, name):
    function, calls = getattr(module, name), []

    def counting(*arguments, **keywords):
        calls.append(name)
        return function(*arguments, **keywords)

    monkeypatch.setattr(module, name, counting)
    return calls


def assert_same(first, second, name="estimator"):
    """Bit for bit, but for times and the file's name."""
    assert type(first) is type(second), name
    if isinstance(first, np.ndarray):
        assert first.dtype == second.dtype, name
        assert_array_equal(first, second, err_msg=name)
    elif hasattr(first, "get_params"):
        assert_same(vars(first), vars(second), name)
    elif isinstance(first, np.random.RandomState):
        assert_same(first.get_state(), second.get_state(), name)
    elif isinstance(first, dict):
        assert first.keys() == second.keys(), name
        for key in first.keys() - {"seconds", "checkpoint"}:
            assert_same(first[key], second[key], f"{name}.{key}")
    elif isinstance(first, tuple):
        assert len(first) == len(second), name
        for i, (a, b) in enumerate(zip(first, second, strict=True)):
            assert_same(a, b, f"{name}[{i}]")
    else:
        assert first == second or first is second, name


def take_over(left, kill, folder):
    """A copy of what a kill has left."""
    path = file_of(left, *kill)
    for name in (path.name, f"{path.name}.tmp"):
        if (left / name).exists():
            shutil.copy(left / name, folder)
    return folder / path.name


# Killed, and gone on.


@pytest.mark.parametrize(
    "kill", KILLS, ids=lambda kill: "-".join(str(part) for part in kill)
)
def test_a_killed_fit_goes_on(kill, left, tmp_path, always):
    path = take_over(left, kill, tmp_path)
    resumed = fit(kill[0], path)
    assert_same(uninterrupted(kill[0], resumed._seed), resumed)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    again = fit(kill[0], path)
    assert_same(resumed, again)


def test_the_killed_fits_were_under_way(left, tmp_path):
    # or the test above would be one of fits that were finished, or not begun
    stages = [list(_checkpoint._read(file_of(left, *kill))["stages"]) for kill in KILLS]
    assert stages.count([]) == 1
    assert stages.count(["growth"]) >= 5
    assert stages.count(["growth", "fine_tune"]) >= 5
    finished = [_checkpoint._read(file_of(left, *kill))["finished"] for kill in KILLS]
    assert finished.count(True) == 1
    unfinished = [path.name for path in left.glob("*.tmp")]
    assert len(unfinished) == sum(hook == "writing" for _, hook, _ in KILLS)


@pytest.mark.parametrize(
    "n_writes, n_epochs", [(1, 4), (2, 4), (3, 3), (4, 2), (5, 1), (6, 0)]
)
def test_finished_epochs_are_not_repeated(
    n_writes, n_epochs, left, monkeypatch, tmp_path
):
    path = take_over(left, ("plain", "replaced", n_writes), tmp_path)
    calls = count_calls(monkeypatch, contrastive, "step")
    fit("plain", path)
    assert len(calls) == n_epochs * 4


def test_finished_units_are_not_repeated(left, monkeypatch, tmp_path):
    path = take_over(left, ("tuned", "replaced", 4), tmp_path)
    n_left = uninterrupted("tuned").n_iter_ - 2
    calls = count_calls(monkeypatch, growth, "step")
    model = fit("tuned", path)
    assert len(calls) == n_left > 0
    assert model.fine_tune_.n_iter_ > 1


@pytest.mark.parametrize("case", CASES)
def test_a_finished_fit_returns_at_once(case, tmp_path, monkeypatch):
    path = tmp_path / "state"
    first = fit(case, path)
    forbid_steps(monkeypatch)
    content, date = path.read_bytes(), path.stat().st_mtime_ns
    second = fit(case, path)
    assert_same(first, second)
    if first.history_:
        assert_array_equal(first.history_["seconds"], second.history_["seconds"])
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (content, date)


@pytest.mark.parametrize("cls", CLASSES)
def test_ctrl_c_and_going_on(cls, tmp_path, monkeypatch, always):
    case = {ContrastiveDivergenceRBM: "plain", FrankWolfeRBM: "growth"}[cls]
    module = {ContrastiveDivergenceRBM: contrastive, FrankWolfeRBM: growth}[cls]
    path, step = tmp_path / "state", module.step
    calls = iter(range(3 if module is growth else 9))

    def interrupted_step(*arguments):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return step(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "step", interrupted_step)
        with pytest.raises(KeyboardInterrupt):
            fit(case, path)
    whole = uninterrupted(case)
    calls = count_calls(monkeypatch, module, "step")
    resumed = fit(case, path)
    assert len(calls) == (whole.n_iter_ - 3 if module is growth else 2 * 4)
    assert_same(whole, resumed)
    # time goes on as well
    assert np.all(np.diff(resumed.history_["seconds"]) > 0)


class Stop:
    """A callback that ends a level of the fit."""

    def __init__(self, task, n_ends=1):
        self.task, self.n_ends = task, n_ends

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context):
        self.n_ends -= context.task_name == self.task
        return context.task_name == self.task and self.n_ends <= 0


@pytest.mark.parametrize(
    "case, task, n_iter", [("plain", "epoch", 2), ("tuned", "growth", 3)]
)
def test_a_fit_that_a_callback_ended_is_finished(
    case, task, n_iter, tmp_path, monkeypatch
):
    path = tmp_path / "state"
    callback = Stop(task, 2 if task == "epoch" else 1)
    first = other(case, path).set_callbacks(callback).fit(digits())
    assert first.n_iter_ == n_iter and not hasattr(first, "fine_tune_")
    forbid_steps(monkeypatch)
    assert_same(first.set_callbacks(), other(case, path).fit(digits()))


def test_a_callback_may_end_the_growth_only(tmp_path, monkeypatch):
    path = tmp_path / "state"
    first = other("tuned", path).set_callbacks(Stop("unit", 2)).fit(digits())
    assert first.n_components_ == 2 and first.fine_tune_.n_iter_ > 0
    forbid_steps(monkeypatch)
    assert_same(first.set_callbacks(), other("tuned", path).fit(digits()))


# When it is written.


@pytest.mark.parametrize("case, n_epochs", [("plain", 4), ("growth", 3)])
def test_short_epochs_share_a_write(case, n_epochs, tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "INTERVAL", 1e6)
    writes = count_calls(monkeypatch, os, "replace")
    fit(case, tmp_path / "state")
    # before the fit, and at its end
    assert len(writes) == 2
    monkeypatch.setattr(_checkpoint, "INTERVAL", 0.0)
    n_iter = fit(case, tmp_path / "other").n_iter_
    assert len(writes) == 2 + 2 + n_iter >= 4 + n_epochs


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


@pytest.mark.parametrize("n_good", [1, 3])
def test_a_full_disk_spoils_nothing(n_good, tmp_path, always):
    path, fsync = tmp_path / "state", os.fsync
    calls = iter(range(n_good))

    def full(file):
        if next(calls, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="state cannot be written .*No space left"):
            fit("plain", path)
    assert not _checkpoint._read(path)["finished"]
    assert_same(uninterrupted("plain"), fit("plain", path))


def read_only(folder):
    path = folder / "read_only"
    path.mkdir()
    path.chmod(0o500)
    if os.access(path, os.W_OK):
        pytest.skip("needs a user who may not write everywhere")
    return path / "state"


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    "place, error, message",
    [
        (lambda folder: folder / "none" / "state", OSError, "a folder that exists"),
        (read_only, OSError, "may be written to"),
        (lambda folder: folder, ValueError, "must be a file; .* is a folder"),
    ],
    ids=["no folder", "read-only", "folder"],
)
def test_a_bad_place_is_told_before_the_fit(
    cls, place, error, message, tmp_path, monkeypatch
):
    path = place(tmp_path)
    forbid_steps(monkeypatch)
    with pytest.raises(error, match=message):
        cls(2, checkpoint=path).fit(digits())


# What belongs to another fit, or is no checkpoint.


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Files of finished fits, by case."""
    folder = tmp_path_factory.mktemp("finished")
    for case in ("plain", "tuned"):
        fit(case, folder / case)
    return folder


def swapped(X):
    X = X.copy()
    X[0, 20] = ~X[0, 20]
    return X


@pytest.mark.parametrize(
    "case, parameters, message",
    [
        ("plain", dict(learning_rate=0.1), r"learning_rate \(0.2 there, 0.1 here\)"),
        ("plain", dict(max_iter=9), r"max_iter \(4 there, 9 here\)"),
        ("plain", dict(random_state=4), r"random_state \(3 there, 4 here\)"),
        ("plain", dict(random_state=None), r"random_state \(3 there, null here\)"),
        ("plain", dict(init=(np.zeros((6, 64)), np.zeros(6), np.zeros(64))), "init"),
        ("tuned", dict(objective="likelihood", tol=1), "objective .*, tol"),
        ("tuned", dict(fine_tune=None), 'fine_tune .*"ContrastiveDivergenceRBM" there'),
        ("tuned", dict(fine_tune__momentum=0.1), r"fine_tune__momentum \(0.5 there"),
    ],
)
def test_other_parameters_are_refused(case, parameters, message, finished):
    content = (finished / case).read_bytes()
    model = other(case, finished / case, **parameters)
    with pytest.raises(ValueError, match=f"another fit.*{message}.*Give another file"):
        model.fit(digits())
    assert (finished / case).read_bytes() == content
    assert not hasattr(model, "components_")


@pytest.mark.parametrize("case", ["plain", "tuned"])
@pytest.mark.parametrize(
    "change, message",
    [
        (lambda X: X[:-1], r"the shape of X \(\[200, 64\] there, \[199, 64\] here\)"),
        (lambda X: X.astype(np.float32), r'the dtype of X \("bool" there'),
        (swapped, "in the values of X. Give"),
        (lambda X: X[::-1], "in the values of X. Give"),
        (lambda X: sp.csr_array(X), "in the values of X. Give"),
    ],
    ids=["rows", "dtype", "a value", "order", "sparse"],
)
def test_other_data_are_refused(case, change, message, finished):
    with pytest.raises(ValueError, match=message):
        other(case, finished / case).fit(change(digits()))


@pytest.mark.parametrize("case", ["plain", "tuned"])
def test_other_validation_data_are_refused(case, finished, tmp_path, monkeypatch):
    X = digits()
    with pytest.raises(ValueError, match=r"shape of X_val \(null there, \[50, 64\]"):
        other(case, finished / case).fit(X, X_val=X[:50])
    path = tmp_path / "state"
    other(case, path).fit(X, X_val=X[:50])
    with pytest.raises(ValueError, match="in the values of X_val. Give"):
        other(case, path).fit(X, X_val=swapped(X[:50]))
    forbid_steps(monkeypatch)
    model = other(case, path).fit(X, X_val=X[:50])
    assert "gap" in model.history_


def test_another_class_or_version_is_refused(finished, monkeypatch):
    with pytest.raises(
        ValueError, match='the class .*"ContrastiveDivergenceRBM" there'
    ):
        FrankWolfeRBM(6, checkpoint=finished / "plain").fit(digits())
    monkeypatch.setattr(skbayesnn, "__version__", "9.0")
    with pytest.raises(ValueError, match=r'version of skbayesnn .*"9.0" here'):
        other("plain", finished / "plain").fit(digits())


def test_what_changes_no_result_may_change(finished, monkeypatch):
    forbid_steps(monkeypatch)
    # the same values in another order of memory, a name of another type
    X = np.asfortranarray(digits())
    other("plain", str(finished / "plain"), verbose=True).fit(X)
    other("tuned", finished / "tuned", fine_tune__warm_start=True).fit(X)


def test_another_frozen_model_is_refused(tmp_path):
    first = ContrastiveDivergenceRBM(3, max_iter=1, random_state=0).fit(digits())
    second = ContrastiveDivergenceRBM(3, max_iter=1, random_state=0).fit(~digits())
    model = FrankWolfeRBM(4, checkpoint=tmp_path / "state", **GROWTH)
    model.set_params(init=FrozenEstimator(first)).fit(digits())
    clone(model).fit(digits())
    with pytest.raises(ValueError, match="init__components_"):
        clone(model).set_params(init=FrozenEstimator(second)).fit(digits())


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-10],
        lambda content: content[:2000] + b"spoilt" + content[2006:],
        lambda content: b"Dear diary," + content[:50],
        lambda content: pickle.dumps([1, 2, 3]),
    ],
    ids=["empty", "half", "end", "middle", "text", "pickle"],
)
def test_a_damaged_file_is_told(damage, finished, tmp_path, monkeypatch):
    path = tmp_path / "state"
    content = damage((finished / "tuned").read_bytes())
    path.write_bytes(content)
    forbid_steps(monkeypatch)
    with pytest.raises(ValueError, match="no checkpoint, or a damaged one.*delete"):
        other("tuned", path).fit(digits())
    # it may be something else of value
    assert path.read_bytes() == content


def test_another_archive_is_no_checkpoint(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=digits())
    content = path.read_bytes()
    with pytest.raises(ValueError, match="no checkpoint"):
        other("plain", path).fit(digits())
    assert path.read_bytes() == content


# Random states, and what goes with what.


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    "random_state", [None, np.random.RandomState(5)], ids=["None", "RandomState"]
)
def test_a_drawn_seed_is_kept(cls, random_state, tmp_path):
    path = tmp_path / "state"
    model = cls(2, random_state=random_state, checkpoint=path)
    seed = model.fit(digits())._seed
    assert model.fit(digits())._seed == seed
    other_seed = model.set_params(checkpoint=tmp_path / "other").fit(digits())._seed
    assert other_seed != seed


@pytest.mark.parametrize("cls", CLASSES)
def test_the_result_is_that_without_a_checkpoint(cls, tmp_path):
    case = {ContrastiveDivergenceRBM: "plain", FrankWolfeRBM: "tuned"}[cls]
    assert_same(uninterrupted(case), fit(case, tmp_path / "state"))


@pytest.mark.parametrize("cls", CLASSES)
def test_warm_start_is_refused(cls, tmp_path):
    path = tmp_path / "state"
    with pytest.raises(ValueError, match="checkpoint and warm_start=True exclude"):
        cls(2, checkpoint=path, warm_start=True).fit(digits())
    assert not path.exists()


def test_a_checkpoint_of_the_fine_tuner_is_refused(tmp_path):
    tuner = ContrastiveDivergenceRBM(checkpoint=tmp_path / "state")
    with pytest.raises(ValueError, match="fine_tune must have checkpoint=None"):
        FrankWolfeRBM(2, fine_tune=tuner).fit(digits())


@pytest.mark.parametrize("cls", CLASSES)
def test_partial_fit_leaves_the_file_alone(cls, tmp_path):
    path = tmp_path / "state"
    model = cls(2, checkpoint=path, random_state=0).partial_fit(digits())
    assert not path.exists()
    assert_same(cls(2, random_state=0).partial_fit(digits()), model)


@pytest.mark.parametrize("cls", CLASSES)
def test_clone_and_pickle_take_the_name_along(cls, tmp_path):
    model = cls(2, checkpoint=tmp_path / "state", random_state=0).fit(digits())
    assert clone(model).checkpoint == model.checkpoint
    assert_same(pickle.loads(pickle.dumps(model)), model)
    assert model.get_params()["checkpoint"] == tmp_path / "state"


# The format.


class Foreign(NamedTuple):
    value: int


def test_any_state_comes_back(tmp_path):
    rbm = solver.RBM(
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([np.nan, -0.0], dtype=np.float32),
        np.zeros((3, 0), dtype=np.uint8),
        None,
    )
    chains = solver.Chains(np.array(True), np.uint64(2**64 - 1), -(2**70), 1.5e-320)
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
    clamp = solver.Clamp(np.zeros(3), np.zeros(3))
    checkpoint.save("some", _checkpoint.Progress(clamp, {}, 1, 0.0, False))

    class Clamp(NamedTuple):
        mask: np.ndarray

    monkeypatch.setattr(solver, "Clamp", Clamp)
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
