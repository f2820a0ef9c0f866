"""Plots of fitted models and of their predictions, with matplotlib."""

from ._convergence import ConvergenceDisplay
from ._lag_relevance import LagRelevanceDisplay
from ._residual_analysis import ResidualAnalysisDisplay
from ._simulation import SimulationDisplay
from ._sparsity import SparsityDisplay

__all__ = [
    "ConvergenceDisplay",
    "LagRelevanceDisplay",
    "ResidualAnalysisDisplay",
    "SimulationDisplay",
    "SparsityDisplay",
]
