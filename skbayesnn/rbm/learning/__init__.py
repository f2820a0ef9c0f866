"""Contrastive divergence, the search for a unit, and growth."""
