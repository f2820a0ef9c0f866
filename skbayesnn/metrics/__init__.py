"""Scores of predicted records, scorers for model selection, and residual analysis."""

from ._path_bands import simultaneous_band
from ._residual_correlations import residual_analysis
from ._scorers import one_step_scorer, simulation_scorer
from ._scores import (
    crps_gaussian,
    crps_samples,
    fit_index,
    interval_coverage,
    simulation_rmse,
)

__all__ = [
    "crps_gaussian",
    "crps_samples",
    "fit_index",
    "interval_coverage",
    "one_step_scorer",
    "residual_analysis",
    "simulation_rmse",
    "simulation_scorer",
    "simultaneous_band",
]
