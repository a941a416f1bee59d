"""Formats numbers and long texts for people."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 test``, ``2 tests``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shortened(text: str, max_length: int) -> str:
    """Return a text of at most ``max_length`` characters: a longer one ends with an ellipsis.

    >>> shortened("android appium", 8)
    'android…'
    """
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def duration(seconds: float) -> str:
    """Return a duration in whole seconds: ``18 s``, ``2 min 5 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
