"""Training data, and the course of a fit."""
