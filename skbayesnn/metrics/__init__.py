"""Scores of predicted records, and scorers that leave the initialisation out."""

from ._residual_correlations import residual_analysis
from ._scores import (
    crps_gaussian,
    crps_samples,
    fit_index,
    interval_coverage,
    one_step_scorer,
    simulation_rmse,
    simulation_scorer,
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
]
