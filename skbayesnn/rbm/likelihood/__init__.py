"""The log partition function, estimated and enumerated."""
