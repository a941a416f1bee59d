"""Runs with several processes: the coordinator, which has the terminal, and the workers' side of it."""
