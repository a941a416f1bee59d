"""What a misspelled name probably means, for error messages. Standard library only."""

from collections.abc import Collection


def closest(name: object, known: Collection[str]) -> str:
    """Return the known name that is most similar to an unknown one, empty if none is."""
    from difflib import get_close_matches  # only a run with a mistake imports it

    if not isinstance(name, str):
        return ""

    # Finds swapped and missing letters and a missing unit (handler_timeout_seconds), but no other word.
    matches = get_close_matches(name, known, n=1, cutoff=0.78)
    return matches[0] if matches else ""


def unknown(what: str, name: object, known: Collection[str]) -> str:
    """Return the message for an unknown name: the one that is meant, and all that there are."""
    available = ", ".join(known) or "none"
    return f"unknown {what} {name!r}{hint(name, known)} (available: {available})"


def hint(name: object, known: Collection[str]) -> str:
    """Return the part of a message that says which name is meant, empty if none is similar."""
    match = closest(name, known)
    return f": did you mean {match!r}?" if match else ""
