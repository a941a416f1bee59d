"""The life of a session: request, create, wait, always stop. Knows nothing of pytest."""
