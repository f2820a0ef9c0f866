"""Files from which a killed fit is resumed.

A file holds the state of training after a finished epoch or unit, and what tells
whether a fit is the same. It is an archive of NumPy arrays, with a JSON text for the
rest: unlike a pickle, it runs no code when it is read.
"""

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator

from . import _files

# Least time between two writes, in seconds.
INTERVAL = 1.0
_HASHED_BYTES = 2**24
_TEXT = "description"
# Parameters that change no part of a fit: with more time there are only more of them.
_IRRELEVANT = {"checkpoint", "max_time", "n_jobs", "verbose", "warm_start"}
# Longer values are left out of error messages.
_MAX_SHOWN = 40
_ADVICE = "Give another file name, or delete the file to begin anew."


class Progress(NamedTuple):
    """State of a training after an epoch or a step."""

    state: tuple
    """of a solver: a tuple of arrays, numbers and other tuples"""
    history: dict
    n_iter: int
    seconds: float
    """duration of the training so far"""
    done: bool


def open_checkpoint(estimator, data, seed):
    """The checkpoint of a fit, with the state that an earlier call has left.

    ``data`` are the arguments of the fit by their names, arrays or None. The file is
    written at once, so that one that cannot be written is an error at the beginning.
    ``seed`` counts for a new file only: ``checkpoint.seed`` is the one to use.
    `Checkpoint.close` lets other fits use the file.
    """
    if estimator.checkpoint is None:
        return Checkpoint(None, {}, seed)
    if getattr(estimator, "warm_start", False):
        raise ValueError(
            "checkpoint and warm_start=True exclude each other: a file resumes "
            "the fit that wrote it. Set checkpoint=None or warm_start=False."
        )
    identity = _identify(estimator, data)
    checkpoint = Checkpoint(Path(estimator.checkpoint).absolute(), identity, seed)
    checkpoint.read()
    if not checkpoint.finished:
        checkpoint.begin()
    return checkpoint


class Checkpoint:
    """The stages of a fit, in a file; without a path, nothing is kept."""

    def __init__(self, path, identity, seed):
        self.seed = int(seed)
        self.finished = False
        self._path = path
        self._identity = identity
        # by name: tree and arrays of a Progress, which no later step changes
        self._stages = {}
        self._last_write = -np.inf
        self._lock = None

    def begin(self):
        """Keep other fits from the file, and write it for the first time."""
        try:
            self._lock = _files.Lock(self._path)
        except BlockingIOError as error:
            raise OSError(
                f"Another fit uses the checkpoint {self._path}. Wait for its end, or "
                "give another file name: each fit needs its own file."
            ) from error
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            # another fit may have written it since
            self.read()
            _files.remove_unfinished(self._path)
            self.write()
        except BaseException:
            self.close()
            raise

    def close(self):
        """Let other fits use the file; may be called again."""
        if self._lock is not None:
            self._lock.release()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def load(self, stage):
        """The `Progress` of a stage, or None."""
        if stage not in self._stages:
            return None
        tree, arrays = self._stages[stage]
        # copies of the same layout, as np.array makes them
        return _decode(tree, {name: np.array(array) for name, array in arrays.items()})

    def save(self, stage, progress, finished=False):
        """Write a stage's progress, at most once per `INTERVAL` unless it is done."""
        if self._path is None:
            return
        if not progress.done and time.monotonic() - self._last_write < INTERVAL:
            return
        arrays = {}
        self._stages[stage] = _encode(progress, stage, arrays), arrays
        self.finished = finished
        self.write()

    def ends_with(self, stage):
        """Whether the fit was finished without another stage after this one."""
        return self.finished and list(self._stages)[-1:] == [stage]

    def finish(self):
        """Mark the fit as finished, regardless of its stages."""
        if self._path is not None and not self.finished:
            self.finished = True
            self.write()

    def read(self):
        """Read the file if there is one; refuse one of another fit."""
        if self._path.is_dir():
            raise ValueError(f"checkpoint must be a file; {self._path} is a folder.")
        try:
            content = _read(self._path)
        except FileNotFoundError:
            return
        except PermissionError:
            raise
        except Exception as error:  # damage takes many forms
            raise ValueError(
                f"{self._path} is no checkpoint, or a damaged one ({error}). {_ADVICE}"
            ) from error
        differences = _differences(content["identity"], self._identity)
        if differences:
            raise ValueError(
                f"The checkpoint {self._path} is of another fit. It differs in "
                f"{', '.join(differences)}. {_ADVICE}"
            )
        self.seed, self.finished = content["seed"], content["finished"]
        self._stages = content["stages"]

    def write(self):
        """Write a new file, and replace the old one atomically."""
        arrays, trees = {}, {}
        for stage, (tree, its_arrays) in self._stages.items():
            trees[stage] = tree
            arrays |= its_arrays
        text = json.dumps(
            {
                "identity": self._identity,
                "seed": self.seed,
                "finished": self.finished,
                "stages": trees,
            }
        )
        arrays[_TEXT] = np.frombuffer(text.encode(), dtype=np.uint8)
        try:
            _files.replace(self._path, lambda file: np.savez(file, **arrays))
        except OSError as error:
            raise self._unwritable(error) from error
        self._last_write = time.monotonic()

    def _unwritable(self, error):
        return OSError(
            f"The checkpoint {self._path} cannot be written ({error}). Choose a file "
            "in a folder that exists, has space left and may be written to."
        )


def _read(path):
    """Content of a file; its stages as trees with their arrays."""
    # opened here: NumPy leaves a damaged archive open
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    content = json.loads(arrays.pop(_TEXT).tobytes())
    content["seed"] = int(content["seed"])
    stages = {}
    for stage, tree in content["stages"].items():
        prefix = f"{stage}."
        its_arrays = {n: a for n, a in arrays.items() if n.startswith(prefix)}
        # what cannot be decoded is damaged, or of a version with other fields
        _decode(tree, its_arrays)
        stages[stage] = tree, its_arrays
    content["stages"] = stages
    if not isinstance(content["identity"], dict):
        raise TypeError("it does not tell its parameters")
    content["finished"] = bool(content["finished"])
    return content


def _encode(value, name, arrays):
    """JSON for a tree of tuples and dicts; copies of its arrays go to a dict."""
    if isinstance(value, np.ndarray | np.generic):
        arrays[name] = np.array(value)
        return {"scalar" if isinstance(value, np.generic) else "array": name}
    if isinstance(value, dict):
        return {
            "dict": {k: _encode(v, f"{name}.{k}", arrays) for k, v in value.items()}
        }
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        cls = type(value)
        fields = value._asdict().items()
        return {
            "class": f"{cls.__module__}:{cls.__qualname__}",
            "fields": {k: _encode(v, f"{name}.{k}", arrays) for k, v in fields},
        }
    if isinstance(value, tuple):
        parts = enumerate(value)
        return {"tuple": [_encode(part, f"{name}.{k}", arrays) for k, part in parts]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"cannot write {name}, of type {type(value).__name__}")


def _decode(tree, arrays):
    """What `_encode` was given."""
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]]
    if "scalar" in tree:
        return arrays[tree["scalar"]][()]
    if "dict" in tree:
        return {key: _decode(value, arrays) for key, value in tree["dict"].items()}
    if "tuple" in tree:
        return tuple(_decode(part, arrays) for part in tree["tuple"])
    fields = {key: _decode(value, arrays) for key, value in tree["fields"].items()}
    return _named_tuple(tree["class"])(**fields)


def _named_tuple(name):
    """A NamedTuple of this package: nothing else is looked up, nothing imported."""
    module, _, kind = name.partition(":")
    if module.partition(".")[0] != __package__:
        raise ValueError(f"{name} is not of {__package__}")
    cls = getattr(sys.modules[module], kind)
    if not (isinstance(cls, type) and issubclass(cls, tuple)):
        raise TypeError(f"{name} is no NamedTuple")
    return cls


# What makes a fit the same: a flat dict of JSON values, with readable names.


def _identify(estimator, data):
    identity = {f"the version of {__package__}": sys.modules[__package__].__version__}
    _describe("the class", estimator, identity)
    for name, values in data.items():
        shape, dtype, digest = (None,) * 3 if values is None else _fingerprint(values)
        identity[f"the shape of {name}"] = shape
        identity[f"the dtype of {name}"] = dtype
        identity[f"the values of {name}"] = digest
    return identity


def _describe(name, value, identity, prefix=""):
    """Enter a parameter; those of an estimator get names like ``init__max_iter``."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        identity[name] = type(value).__qualname__
        for key, parameter in value.get_params(deep=False).items():
            if key not in _IRRELEVANT:
                _describe(f"{prefix}{key}", parameter, identity, f"{prefix}{key}__")
        if isinstance(value, FrozenEstimator):
            # its fitted attributes are the model to begin with
            for key, attribute in vars(value.estimator).items():
                if isinstance(attribute, np.ndarray):
                    identity[f"{prefix}{key}"] = _fingerprint(attribute)
    else:
        identity[name] = _plain(value)


def _plain(value):
    """A JSON value that is equal for equal parameters."""
    if value is None or isinstance(value, bool | int | float | str):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if sp.issparse(value) or hasattr(value, "__array__"):
        return _fingerprint(value if sp.issparse(value) else np.asarray(value))
    # a random state, from which the seed has been drawn, or what an init may have
    return type(value).__qualname__


def _fingerprint(X):
    """Shape, dtype and a hash of the content: an array, or a CSR matrix.

    Their rows are stored in another way, so that equal ones have other hashes.
    """
    digest = hashlib.blake2b(digest_size=16)
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (np.atleast_1d(X),)
    for part in parts:
        if part.dtype.hasobject:
            part = part.astype(np.float64)
        digest.update(part.dtype.str.encode())
        n_rows = max(1, _HASHED_BYTES // max(1, part[:1].nbytes))
        for start in range(0, len(part), n_rows):
            digest.update(np.ascontiguousarray(part[start : start + n_rows]))
    dtype = f"{X.dtype}, sparse" if sp.issparse(X) else str(X.dtype)
    return list(X.shape), dtype, digest.hexdigest()


def _differences(there, here):
    """What two identities differ in, in words."""
    found = []
    for name in {**here, **there}:
        # by their text: a list stands for a tuple, and nan equals nan
        texts = [json.dumps(side.get(name)) for side in (there, here)]
        if texts[0] == texts[1]:
            continue
        short = max(map(len, texts)) <= _MAX_SHOWN and "the values of" not in name
        found.append(f"{name} ({texts[0]} there, {texts[1]} here)" if short else name)
    return found
