"""Results in one JSON file, from which an interrupted run resumes."""

import json
import os
import platform
from pathlib import Path

import joblib
import numpy as np
import scipy
import sklearn

import skbayesnn


class Results:
    """Rows of results by part and seed, saved after each row.

    Parameters
    ----------
    path : str or None
        The file; None keeps the rows in memory only.
    protocol : str
        Description of the experiment.
    settings : dict
        Settings that the rows depend on. A file with other settings is not resumed.
    """

    def __init__(self, path, protocol, settings):
        self.path = path and Path(path)
        # as JSON returns it: tuples become lists
        settings = json.loads(json.dumps(settings))
        self.content = {
            "protocol": protocol,
            "machine": machine(),
            "settings": settings,
            "choices": {},
            "parts": {},
        }
        if self.path and self.path.exists():
            held = json.loads(self.path.read_text())
            if held["settings"] != settings:
                raise SystemExit(
                    f"{path} holds results of other settings. Name another file."
                )
            if held["machine"] != machine():
                raise SystemExit(
                    f"{path} holds results of another machine or other versions. "
                    "Name another file."
                )
            self.content = held

    @classmethod
    def read(cls, path):
        """Read the results of another script."""
        held = cls(None, "", {})
        held.content = json.loads(Path(path).read_text())
        return held

    @property
    def choices(self):
        return self.content["choices"]

    def missing(self, part, seeds):
        held = {row["seed"] for row in self.rows(part)}
        return [seed for seed in seeds if seed not in held]

    def rows(self, part):
        return self.content["parts"].get(part, [])

    def add(self, part, row):
        rows = self.content["parts"].setdefault(part, [])
        rows.append(json.loads(json.dumps({k: _plain(v) for k, v in row.items()})))
        # more repeats complete the rows of a shorter run
        rows.sort(key=lambda row: row["seed"])
        self.save()

    def column(self, part, name, seeds=None):
        """One value from each row of a part; infinite where it was not finite."""
        rows = [row for row in self.rows(part) if seeds is None or row["seed"] in seeds]
        values = [np.inf if row[name] is None else row[name] for row in rows]
        return np.array(values, dtype=float)

    def save(self):
        if not self.path:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # a run that is killed while it writes leaves the old file intact
        draft = self.path.with_suffix(".part")
        draft.write_text(json.dumps(self.content, indent=1, allow_nan=False))
        os.replace(draft, self.path)


def _plain(value):
    """A value that JSON can hold; infinity and NaN, after a divergence, become null."""
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value


def side_by_side(function, calls, n_jobs):
    """Yield ``function(*call)`` for each call, in order, as soon as it is available."""
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    yield from parallel(joblib.delayed(function)(*call) for call in calls)


def machine():
    return {
        "python": platform.python_version(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "skbayesnn": skbayesnn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
