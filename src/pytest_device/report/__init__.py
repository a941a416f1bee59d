"""Formats events for people, as text and figures. Knows nothing of pytest."""
