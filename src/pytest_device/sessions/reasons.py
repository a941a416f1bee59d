"""Turns the explanation of a failure, of any length, into the sentence of a message."""

from typing import Final

MAX_LENGTH: Final = 200
"""Characters of a sentence: two lines of a wide terminal."""


def in_one_sentence(explanation: str) -> str:
    """Return the first line of an explanation, without what follows a sentence if that is too long.

    A line that ends with a colon announces the next one, which then belongs to it.
    """
    lines = [line.strip() for line in explanation.splitlines() if line.strip()]
    first = ""

    for line in lines:
        first = f"{first} {line}".lstrip()
        if not first.endswith(":"):
            break

    return _shortened(first)


def _shortened(line: str) -> str:
    if len(line) <= MAX_LENGTH:
        return line

    start = line[:MAX_LENGTH]
    for end in (". ", "; "):
        if sentence := start.rpartition(end)[0]:
            return sentence

    return f"{start.rpartition(' ')[0] or start}…"
