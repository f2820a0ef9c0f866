"""Compiled passes through a network, and through records that feed back."""
