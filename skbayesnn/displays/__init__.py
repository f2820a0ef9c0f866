"""Plots of fitted models and of their predictions, with matplotlib."""

from ._convergence import ConvergenceDisplay
from ._feature_weights import FeatureWeightsDisplay
from ._figure import figure_style
from ._image_grids import ComponentsDisplay, SamplesDisplay
from ._lag_relevance import LagRelevanceDisplay
from ._rbm_growth import GrowthDisplay
from ._residual_analysis import ResidualAnalysisDisplay
from ._simulation import SimulationDisplay
from ._sparsity import SparsityDisplay

__all__ = [
    "ComponentsDisplay",
    "ConvergenceDisplay",
    "FeatureWeightsDisplay",
    "GrowthDisplay",
    "LagRelevanceDisplay",
    "ResidualAnalysisDisplay",
    "SamplesDisplay",
    "SimulationDisplay",
    "SparsityDisplay",
    "figure_style",
]
