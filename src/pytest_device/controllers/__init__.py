"""The controllers that tests drive once a session is in progress. Knows nothing of pytest or of starting sessions."""
