"""Restricted Boltzmann machines that find their own size (Ping, Liu, Ihler)."""
