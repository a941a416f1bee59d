"""The devices behind sessions, each a real program of this machine. Knows nothing of controllers or the interface."""
