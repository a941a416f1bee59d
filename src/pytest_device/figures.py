"""Formats numbers and long texts for people."""

from typing import Final

MAX_SENTENCE: Final = 200
"""Characters of a sentence: two lines of a wide terminal."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 test``, ``2 tests``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shortened(text: str, max_length: int) -> str:
    """Return a text of at most ``max_length`` characters: a longer one ends with an ellipsis.

    >>> shortened("android appium", 8)
    'android…'
    """
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def in_one_sentence(explanation: str) -> str:
    r"""Return the first line of an explanation, without what follows a sentence if that is too long.

    A line that ends with a colon announces the next one, which then belongs to it.

    >>> in_one_sentence("the build failed:\n  no such file\n  at main.js:1")
    'the build failed: no such file'
    """
    lines = [line.strip() for line in explanation.splitlines() if line.strip()]
    sentence = ""

    for line in lines:
        sentence = f"{sentence} {line}".lstrip()
        if not sentence.endswith(":"):
            break

    if len(sentence) <= MAX_SENTENCE:
        return sentence

    start = sentence[:MAX_SENTENCE]
    for end in (". ", "; "):
        if complete := start.rpartition(end)[0]:
            return complete

    return f"{start.rpartition(' ')[0] or start}…"


def duration(seconds: float) -> str:
    """Return a duration in whole seconds: ``18 s``, ``2 min 5 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
