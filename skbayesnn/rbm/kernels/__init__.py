"""Compiled products with states, draws and means of units, random numbers."""
