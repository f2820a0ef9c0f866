"""A killed fit is resumed from its file, with the same result, bit for bit."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from grids import without_by_default
from interrupts import interrupt
from numpy.testing import assert_array_equal
from rbm_checkpoints import (
    CASES,
    CLASSES,
    assert_same,
    count_calls,
    digits,
    file_of,
    fit,
    forbid_steps,
    other,
    uninterrupted,
)
from sklearn.base import clone

import skbayesnn
from skbayesnn import ContrastiveDivergenceRBM, FrankWolfeRBM
from skbayesnn import _persistence as _checkpoint
from skbayesnn.rbm.learning import contrastive, growth

# Trainings in rounds, which take long.
LONG = ("rounds", "sizes", "tuned in rounds")
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
# Those of long fits: within the rounds, within a size and at its end, in the last
# training, and while all rows are trained on.
MORE_KILLS = [
    *[("rounds", "replaced", n) for n in (2, 3, 5)],
    ("rounds", "writing", 4),
    *[("rounds", "step", n) for n in (100, 240)],
    *[("sizes", "replaced", n) for n in (2, 3, 5, 8, 11)],
    ("sizes", "writing", 6),
    *[("sizes", "step", n) for n in (200, 280)],
    *[("tuned in rounds", "replaced", n) for n in (4, 7)],
]


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


def kill_all(folder, kills):
    """Fork a child for each kill; print how they ended."""
    for case in dict.fromkeys(case for case, *_ in kills):
        # compiled code is loaded once, here
        clone(CASES[case]).fit(digits())
    for kill in kills:
        child = os.fork()
        if not child:
            fit_and_die(file_of(folder, *kill), *kill)
            os._exit(0)
        print(json.dumps(os.waitpid(child, 0)[1]), flush=True)


def leave(folder, kills):
    """What the killed fits leave, in the folder."""
    if not hasattr(os, "fork"):
        pytest.skip("needs a system that forks and kills")
    arguments = f"{str(folder)!r}, {kills!r}"
    code = f"import test_checkpoints; test_checkpoints.kill_all({arguments})"
    here = Path(__file__).parent
    paths = [str(Path(skbayesnn.__file__).parents[1]), str(here), str(here.parents[1])]
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
    assert [os.WTERMSIG(end) for end in ends] == [signal.SIGKILL] * len(kills)
    return folder


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """The folder with what the killed fits have left."""
    return leave(tmp_path_factory.mktemp("killed"), KILLS)


@pytest.fixture(scope="module")
def more_left(tmp_path_factory):
    return leave(tmp_path_factory.mktemp("more"), MORE_KILLS)


@pytest.fixture
def always(monkeypatch):
    """Writes after each epoch, however short."""
    monkeypatch.setattr(_checkpoint, "INTERVAL", 0.0)


def take_over(left, kill, folder):
    """A copy of what a kill has left."""
    path = file_of(left, *kill)
    for one in left.iterdir():
        if one == path or one.name.startswith((f".{path.name}.", f"{path.name}.lock")):
            shutil.copy(one, folder)
    return folder / path.name


def name_of(kill):
    return "-".join(str(part) for part in kill)


@pytest.mark.slow
@pytest.mark.parametrize("kill", MORE_KILLS, ids=name_of)
def test_a_fit_killed_elsewhere_is_resumed(kill, more_left, tmp_path, always):
    test_a_killed_fit_is_resumed(kill, more_left, tmp_path, always)


@pytest.mark.parametrize("kill", KILLS, ids=name_of)
def test_a_killed_fit_is_resumed(kill, left, tmp_path, always):
    path = take_over(left, kill, tmp_path)
    resumed = fit(kill[0], path)
    assert_same(uninterrupted(kill[0], resumed._seed), resumed)
    # one kill came after the end of the fit, which leaves nothing to do
    finished = kill == ("plain", "replaced", 6)
    assert files_in(tmp_path) == [path.name] + finished * [f"{path.name}.lock"]
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
    unfinished = [path.name for path in left.glob(".*.unfinished")]
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


@pytest.mark.parametrize("case", without_by_default(LONG, CASES))
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
def test_a_fit_is_resumed_after_ctrl_c(cls, tmp_path, monkeypatch, always):
    case = {ContrastiveDivergenceRBM: "plain", FrankWolfeRBM: "growth"}[cls]
    module = {ContrastiveDivergenceRBM: contrastive, FrankWolfeRBM: growth}[cls]
    path = tmp_path / "state"
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, module, 3 if module is growth else 9)
        with pytest.raises(KeyboardInterrupt):
            fit(case, path)
    whole = uninterrupted(case)
    calls = count_calls(monkeypatch, module, "step")
    resumed = fit(case, path)
    assert len(calls) == (whole.n_iter_ - 3 if module is growth else 2 * 4)
    assert_same(whole, resumed)
    # so does the time
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
    case, task, n_iter, tmp_path, monkeypatch, callbacks
):
    path = tmp_path / "state"
    callback = Stop(task, 2 if task == "epoch" else 1)
    first = other(case, path).set_callbacks(callback).fit(digits())
    assert first.n_iter_ == n_iter and not hasattr(first, "fine_tune_")
    forbid_steps(monkeypatch)
    assert_same(first.set_callbacks(), other(case, path).fit(digits()))


def test_a_callback_may_end_the_growth_only(tmp_path, monkeypatch, callbacks):
    path = tmp_path / "state"
    first = other("tuned", path).set_callbacks(Stop("unit", 2)).fit(digits())
    assert first.n_components_ == 2 and first.fine_tune_.n_iter_ > 0
    forbid_steps(monkeypatch)
    assert_same(first.set_callbacks(), other("tuned", path).fit(digits()))


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


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_full_disk_leaves_nothing_unfinished(tmp_path, always, monkeypatch):
    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        fit("plain", tmp_path / "state")
    assert files_in(tmp_path) == []


def test_another_fit_with_the_same_file_is_refused(tmp_path, monkeypatch):
    path, step = tmp_path / "state", contrastive.step
    messages = []

    def second_fit(*arguments):
        if not messages:
            messages.append(None)
            with pytest.raises(
                OSError, match="Another fit uses the checkpoint .*state"
            ):
                fit("plain", path)
        return step(*arguments)

    monkeypatch.setattr(contrastive, "step", second_fit)
    assert_same(uninterrupted("plain"), fit("plain", path))
    assert files_in(tmp_path) == ["state"]
    # a finished one may be read by many
    fit("plain", path)


@pytest.mark.slow
def test_a_process_with_the_same_file_is_refused(tmp_path):
    path = tmp_path / "state"
    code = (
        "import sys, time; from pathlib import Path; from skbayesnn import _files\n"
        f"lock = _files.Lock(Path({str(path)!r}))\n"
        "print('locked', flush=True); time.sleep(60)"
    )
    root = str(Path(skbayesnn.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment
    ) as other_process:
        assert other_process.stdout.readline() == b"locked\n"
        with pytest.raises(OSError, match="Another fit uses"):
            fit("plain", path)
        other_process.kill()
    # the right ends with its process
    assert_same(uninterrupted("plain"), fit("plain", path))
    assert files_in(tmp_path) == ["state"]


def test_a_failed_fit_gives_the_file_free(tmp_path):
    path = tmp_path / "state"
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, contrastive, 3)
        with pytest.raises(KeyboardInterrupt):
            fit("plain", path)
    with pytest.raises(ValueError, match="leaves no training rows"):
        other("early", tmp_path / "early", validation_fraction=0.999).fit(digits(3))
    assert files_in(tmp_path) == ["early", "state"]
    assert_same(uninterrupted("plain"), fit("plain", path))


def test_files_of_the_user_stay(tmp_path):
    (tmp_path / "state.tmp").write_text("mine")
    (tmp_path / "elsewhere").write_text("precious")
    (tmp_path / "state.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="cannot be written"):
        fit("plain", tmp_path / "state")
    (tmp_path / "state.lock").unlink()
    fit("plain", tmp_path / "state")
    assert (tmp_path / "state.tmp").read_text() == "mine"
    assert (tmp_path / "elsewhere").read_text() == "precious"


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


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Files of finished fits, by case."""
    folder = tmp_path_factory.mktemp("finished")
    for case in ("plain", "tuned"):
        fit(case, folder / case)
    return folder
