"""The time that a fit may take."""

import time
from contextlib import contextmanager

import numpy as np


class NoTime(Exception):
    """What was to be done would not end in time."""


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


class Pace:
    """How long work of one kind takes, by what was done of it within a `Clock`."""

    def __init__(self, clock):
        self.clock, self._seconds_of_one = clock, 0.0

    @contextmanager
    def work(self, amount):
        """Do so much of it, in any unit; or raise `NoTime`, if that would be too late.

        The first is begun as long as there is time at all.
        """
        began = self.clock.passed
        if began + self._seconds_of_one * amount > self.clock.max_time:
            raise NoTime
        yield
        self._seconds_of_one = (self.clock.passed - began) / amount
