"""Spellings of names: in camel case, and what a misspelled one probably means. Standard library only."""

from collections.abc import Collection


def in_camel_case(name: str) -> str:
    """Return the name that JavaScript and the documents have for one of Python.

    >>> in_camel_case("category_identifier")
    'categoryIdentifier'
    """
    first_word, *words = name.split("_")

    return first_word + "".join(word.capitalize() for word in words)


def closest(name: object, names: Collection[str]) -> str:
    """Return the one of several names that is most similar to an unknown one, empty if none is.

    >>> closest("tokn", ["token", "userinfo"])
    'token'
    """
    # Only a run with a mistake imports it.
    from difflib import get_close_matches

    if not isinstance(name, str):
        return ""

    # Finds swapped and missing letters and a missing unit (handler_timeout_seconds), but no other word.
    matches = get_close_matches(name, names, n=1, cutoff=0.78)

    return matches[0] if matches else ""


def unknown(kind: str, name: object, names: Collection[str]) -> str:
    """Return the message for an unknown name: the one that is meant, and all that there are."""
    available = ", ".join(names) or "none"

    return f"unknown {kind} {name!r}{hint(name, names)} (available: {available})"


def hint(name: object, names: Collection[str]) -> str:
    """Return the part of a message that says which name is meant, empty if none is similar."""
    match = closest(name, names)

    return f": did you mean {match!r}?" if match else ""
