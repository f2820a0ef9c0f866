"""Neural networks that find their own size, with the interface of scikit-learn."""

from .rbm.contrastive_divergence import ContrastiveDivergenceRBM
from .rbm.frank_wolfe import FrankWolfeRBM
from .sparse_bayes.deployment.linearization import LinearizedModel
from .sparse_bayes.deployment.state_space import StateSpaceModel
from .sparse_bayes.dynamic_system import DynamicSystemRegressor
from .sparse_bayes.mlp import SparseBayesMLPRegressor
from .sparse_bayes.narx import SparseBayesNARXRegressor
from .sparse_bayes.narx_cv import SparseBayesNARXRegressorCV
from .sparse_bayes.prediction.state_streaming import StateEstimate
from .sparse_bayes.prediction.streaming import (
    EnsembleState,
    SimulationState,
    StreamingPredictor,
)
from .sparse_bayes.state_space_network import SparseBayesStateSpaceRegressor

__version__ = "0.1.0"

__all__ = [
    "ContrastiveDivergenceRBM",
    "DynamicSystemRegressor",
    "EnsembleState",
    "FrankWolfeRBM",
    "LinearizedModel",
    "SimulationState",
    "SparseBayesMLPRegressor",
    "SparseBayesNARXRegressor",
    "SparseBayesNARXRegressorCV",
    "SparseBayesStateSpaceRegressor",
    "StateEstimate",
    "StateSpaceModel",
    "StreamingPredictor",
    "__version__",
]
