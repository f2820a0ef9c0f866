"""From a record to fitted networks: likelihood, prior, curvature, cycles, restarts."""
