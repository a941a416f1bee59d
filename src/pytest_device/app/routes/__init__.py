"""The routes of an app: scanned, matched, written as links and as types."""
