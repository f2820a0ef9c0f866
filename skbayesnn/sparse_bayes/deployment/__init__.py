"""A fitted lagged model in use: as a state space, as C and as ONNX."""
