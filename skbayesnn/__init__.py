"""Sparse Bayesian neural networks with the interface of scikit-learn."""

from ._mlp import SparseBayesMLPRegressor
from ._narx import SparseBayesNARXRegressor

__version__ = "0.1.0"

__all__ = ["SparseBayesMLPRegressor", "SparseBayesNARXRegressor", "__version__"]
