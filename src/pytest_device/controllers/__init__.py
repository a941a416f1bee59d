"""What a test drives once its session is in progress. Knows nothing of pytest or of how a session came to be."""
