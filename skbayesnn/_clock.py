"""The time that a fit may take."""

import time

import numpy as np


class Clock:
    """Time that is left, for ``max_time`` seconds or None, from now on."""

    def __init__(self, max_time=None):
        self.begin = time.monotonic()
        self.max_time = np.inf if max_time is None else max_time

    @property
    def passed(self):
        """Seconds since the beginning."""
        return time.monotonic() - self.begin

    def stop(self):
        """Let the time be over now."""
        self.max_time = 0.0

    def over(self, fraction=1.0):
        """Whether this fraction of the time has passed."""
        return self.passed > fraction * self.max_time
