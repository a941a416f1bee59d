"""The real programs behind a session of the local service. Knows nothing of HTTP."""
