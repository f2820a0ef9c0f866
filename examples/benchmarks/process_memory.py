"""The largest resident memory of a process, without that of its parent."""

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_resident():
    """Largest resident memory of this process so far, bytes.

    On Linux, getrusage gives a process that a larger one started at least the memory of
    that one, whose pages it shared until its own program began; the high-water mark in
    /proc is of its own pages alone.
    """
    if STATUS.exists():
        lines = STATUS.read_text().splitlines()
        (mark,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
        return 1024 * int(mark)
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
