"""Networks that prune themselves, by sparse Bayesian learning (Zhou, Ibrahim, Pan)."""
