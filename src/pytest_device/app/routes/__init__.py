"""Routes of an app: scanning, matching, links and types."""
