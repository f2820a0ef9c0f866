"""Compiled products with states, and what lies between them."""
