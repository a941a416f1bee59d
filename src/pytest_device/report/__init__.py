"""What people read: events as text and figures. Knows nothing of pytest."""
