"""Decides which test runs where and when. Pure: knows nothing of pytest, does no I/O."""
