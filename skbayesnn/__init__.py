"""Neural networks that find their own size, with the interface of scikit-learn."""

from ._contrastive import ContrastiveDivergenceRBM
from ._frank_wolfe import FrankWolfeRBM
from ._mlp import SparseBayesMLPRegressor
from ._narx import SparseBayesNARXRegressor
from ._narx_cv import SparseBayesNARXRegressorCV
from ._streaming import SimulationState, StreamingPredictor

__version__ = "0.1.0"

__all__ = [
    "ContrastiveDivergenceRBM",
    "FrankWolfeRBM",
    "SimulationState",
    "SparseBayesMLPRegressor",
    "SparseBayesNARXRegressor",
    "SparseBayesNARXRegressorCV",
    "StreamingPredictor",
    "__version__",
]
