"""Gives tests their sessions and takes them back. Knows neither pytest-xdist nor the organization of the run."""
