"""Records of inputs and outputs: lags, gaps, free runs, and the errors along them."""
