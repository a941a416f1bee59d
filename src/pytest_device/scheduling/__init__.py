"""Which test runs where and when. Pure: knows nothing of pytest, opens nothing."""
