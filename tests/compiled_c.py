"""Models that were written as C, compiled and called from Python."""

import ctypes
import platform
import shutil
import subprocess

import numpy as np

from skbayesnn._numba import kernel

TYPES = {"": (ctypes.c_double, np.float64), "f": (ctypes.c_float, np.float32)}
FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic"]


def compiler():
    """The system's compiler of C, or None."""
    return shutil.which("cc")


@kernel
def product_and_sum(a, b, c):
    return a * b + c


def fuses():
    """Options with which the compiler fuses as Numba does for this processor."""
    step = 2.0**-30
    fused = product_and_sum(1.0 + step, 1.0 - step, -1.0) != 0.0
    on_x86 = platform.machine() in ("x86_64", "AMD64")
    return ["-mfma"] if fused and on_x86 else []


class CompiledModel:
    """The functions of a file, in one of the precisions (suffix "" or "f")."""

    def __init__(self, source, n_inputs, n_outputs, suffix=""):
        library = source.with_suffix(".so")
        if not library.exists():
            command = [compiler(), *FLAGS, *fuses(), "-shared", "-fPIC", source]
            subprocess.run([*command, "-o", library, "-lm"], check=True)
        functions = ctypes.CDLL(str(library))
        self._init, self._step, self._update = (
            getattr(functions, f"{source.stem}_{name}{suffix}")
            for name in ("init", "step", "update")
        )
        self._pointer, self._type = TYPES[suffix]
        self._shape = n_inputs, n_outputs
        # more than any state takes
        self._state = ctypes.create_string_buffer(2**16)
        self._init(self._state)

    def _array(self, values):
        array = np.array(values, dtype=self._type).ravel()
        return array, array.ctypes.data_as(ctypes.POINTER(self._pointer))

    def step(self, u):
        _, inputs = self._array(u)
        y, outputs = self._array(np.empty(self._shape[1]))
        self._step(self._state, inputs, outputs)
        return y

    def update(self, y):
        _, outputs = self._array(y)
        self._update(self._state, outputs)

    def run(self, X):
        return np.array([self.step(u) for u in X])
