"""The output that users see, and the masking of secrets in it. Knows nothing of how tests get their sessions."""
