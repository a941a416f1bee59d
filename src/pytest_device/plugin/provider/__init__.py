"""Gives tests their sessions and takes them back. Knows neither pytest-xdist nor how the run is organized."""
