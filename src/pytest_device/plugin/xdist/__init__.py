"""A run of several processes: the coordinator with the terminal, and what a worker knows of it."""
