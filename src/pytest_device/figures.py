"""Formats numbers for people."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 test``, ``2 tests``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def duration(seconds: float) -> str:
    """Return a duration in whole seconds: ``18 s``, ``2 min 5 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
