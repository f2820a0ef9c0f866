"""Kills at any time, full disks and damaged files: no finished epoch is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rbm_checkpoints import CASES, assert_same, digits, fit, other, uninterrupted
from sklearn.base import clone

import skbayesnn
from skbayesnn import _persistence

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks"),
]

N_KILLS, N_FULL_DISKS, N_DAMAGED = 100, 20, 300
# fits of epochs, of units, with fine tuning, by rounds, and the search for a size
SHORT = ["plain", "growth", "tuned"]
KINDS = [*SHORT, "rounds", "sizes"]
# Kills of one fit before it comes to its end.
KILLS_PER_FIT = 7
# Longer ones have been resumed before they are killed.
LONGEST = 0.6


def child(function):
    """The process id of a fork that calls a function: 0 at its end, 3 if it fails."""
    number = os.fork()
    if not number:
        code = 3
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    return number


def is_whole_or_missing(path):
    if path.exists():
        _persistence._read(path)
    return True


def kill_often(folder):
    """Kill fits until there are `N_KILLS`; what they leave goes on, and is compared."""
    rng = np.random.default_rng(0)
    durations = {}
    for kind in KINDS:
        clone(CASES[kind]).fit(digits())
        begin = time.perf_counter()
        fit(kind, Path(folder) / f"{kind} alone")
        durations[kind] = time.perf_counter() - begin
    n_kills, n_fits, n_resumed = 0, 0, 0
    while n_kills < N_KILLS:
        kind = KINDS[n_fits % len(KINDS)]
        path = Path(folder) / f"{kind} {n_fits}"
        for _ in range(KILLS_PER_FIT):
            running = child(lambda kind=kind, path=path: fit(kind, path))
            time.sleep(rng.uniform(0.0, min(LONGEST, durations[kind])))
            os.kill(running, signal.SIGKILL)
            n_kills += os.WIFSIGNALED(os.waitpid(running, 0)[1])
            assert is_whole_or_missing(path)
            n_resumed += path.exists()
        assert_same(uninterrupted(kind), fit(kind, path))
        left = [p.name for p in path.parent.iterdir() if p.name.startswith(".")]
        assert left == [], left
        n_fits += 1
    print(json.dumps({"kills": n_kills, "resumed": n_resumed, "fits": n_fits}))


def fill_disks(folder):
    """Fits on disks that are full after a number of bytes."""
    import resource

    # an error of the write rather than the end of the process
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    rng = np.random.default_rng(1)
    n_failed = 0
    for number in range(N_FULL_DISKS):
        kind = SHORT[number % len(SHORT)]
        path = Path(folder) / f"{kind} {number}"
        whole = Path(folder) / f"{kind} alone"
        if not whole.exists():
            fit(kind, whole)
        size = int(rng.uniform(0.0, 1.0) * whole.stat().st_size)

        def until_full(kind=kind, path=path, size=size):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            with pytest.raises(OSError, match="cannot be written .*too large"):
                fit(kind, path)

        _, end = os.waitpid(child(until_full), 0)
        assert os.WEXITSTATUS(end) == 0, (kind, size)
        n_failed += 1
        assert is_whole_or_missing(path)
        left = [one.name for one in path.parent.iterdir() if one.name[0] == "."]
        assert left == [], left
        assert_same(uninterrupted(kind), fit(kind, path))
    print(json.dumps({"full": n_failed}))


def run(function, folder):
    """Run a function of this file in a process without other threads."""
    here = Path(__file__).parent
    paths = [str(Path(skbayesnn.__file__).parents[1]), str(here), str(here.parents[1])]
    code = "import test_nothing_is_lost as here, skbayesnn._persistence as files\n"
    code += "files.INTERVAL = 0.0\n"
    code += f"here.{function.__name__}({str(folder)!r})"
    environment = {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_kills_at_any_time(tmp_path):
    counts = run(kill_often, tmp_path)
    assert counts["kills"] >= N_KILLS
    # most of them came behind a first write
    assert counts["resumed"] > N_KILLS / 2


def test_full_disks(tmp_path):
    assert run(fill_disks, tmp_path) == {"full": N_FULL_DISKS}


def damaged(content, rng):
    """Bits that flip, what is missing, added, repeated or overwritten."""
    start, stop = np.sort(rng.integers(0, len(content), 2))
    kind = rng.integers(6)
    if kind == 0:
        flipped = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 9)):
            flipped[place] ^= 1 << rng.integers(8)
        return bytes(flipped)
    if kind == 1:
        return content[:start]
    if kind == 2:
        return content[:start] + content[stop:]
    if kind == 3:
        return content[:start] + content[start:stop] + content[start:]
    if kind == 4:
        return content[:start] + bytes(stop - start) + content[stop:]
    return content[:start] + rng.bytes(int(stop - start)) + content[stop:]


def test_damaged_files(tmp_path, monkeypatch):
    monkeypatch.setattr(_persistence, "INTERVAL", 0.0)
    rng = np.random.default_rng(2)
    whole = {}
    for kind in SHORT:
        fit(kind, tmp_path / kind)
        whole[kind] = (tmp_path / kind).read_bytes()
    counts = {"refused": 0, "of another fit": 0, "read": 0}
    for number in range(N_DAMAGED):
        kind = list(whole)[number % 3]
        path = tmp_path / "damaged"
        content = damaged(whole[kind], rng)
        path.write_bytes(content)
        try:
            model = other(kind, path).fit(digits())
        except ValueError as error:
            counts["refused"] += "damaged one" in str(error)
            counts["of another fit"] += "of another fit" in str(error)
            # it may be something else of value
            assert path.read_bytes() == content
        else:
            # what was damaged says nothing, such as the date of a part
            assert_same(uninterrupted(kind), model)
            counts["read"] += 1
    assert sum(counts.values()) == N_DAMAGED
    assert counts["refused"] > 0.8 * N_DAMAGED, counts
