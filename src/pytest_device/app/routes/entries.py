"""Entries in ``.gitignore`` and ``tsconfig.json`` for the generated TypeScript declaration."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pytest_device.app.document import Document, at
from pytest_device.app.files import read_existing
from pytest_device.errors import ProjectError

IGNORE: Final = ".gitignore"
TSCONFIG: Final = "tsconfig.json"
_EVERYTHING: Final = ("**/*.ts", "**/*.tsx")
"""Files that ``tsconfig.json`` includes by default."""


def default_include(vendor: str, declaration: str) -> tuple[str, ...]:
    """Return the default ``include`` entries: the vendor's hidden directory and the declaration."""
    return f".{vendor}/types/**/*.ts", declaration


def is_ignored(root: Path, name: str) -> bool:
    """Return whether ``.gitignore`` lists a file in the project root."""
    lines = (read_existing(root / IGNORE) or "").splitlines()

    # Only the file itself: a pattern that happens to match it may be meant for others.
    return any(line.strip().removeprefix("/") == name for line in lines)


def tsconfig(root: Path) -> Document | None:
    """Return ``tsconfig.json``, or None if there is none. Raises ProjectError."""
    try:
        return Document.read(root / TSCONFIG)
    except FileNotFoundError:
        return None


def lacking(document: Document | None, include: Sequence[str]) -> list[str]:
    """Return the entries missing from ``include``."""
    included = at(document.value, "include") if document else None
    if not isinstance(included, list):
        # The default includes no hidden directory.
        return list(include)

    return [entry for entry in include if entry not in included]


def completed(
    root: Path, name: str, include: Sequence[str]
) -> Iterator[tuple[Path, str]]:
    """Yield both files with the missing entries added and everything else unchanged."""
    ignore = read_existing(root / IGNORE) or ""
    if not is_ignored(root, name):
        if ignore and not ignore.endswith("\n"):
            ignore += "\n"
        ignore += f"{name}\n"
    yield root / IGNORE, ignore

    document = tsconfig(root)
    yield root / TSCONFIG, _included(document, include) if document else _new(include)


def _new(include: Sequence[str]) -> str:
    return json.dumps({"include": [*_EVERYTHING, *include]}, indent=2) + "\n"


def _included(document: Document, include: Sequence[str]) -> str:
    """Return the source of ``tsconfig.json`` with the missing entries inserted first and comments preserved."""
    config = document.object
    missing = lacking(document, include)
    if not missing:
        return document.text

    if "include" not in config:
        # A list replaces the default, which has to stay.
        entry = f'"include": {json.dumps([*_EVERYTHING, *missing])}'
        return _inserted(document, document.inside(), [entry], more=bool(config))
    if not isinstance(config["include"], list):
        raise ProjectError("include must be a list of patterns", path=document.path)

    entries = [json.dumps(entry) for entry in missing]
    offset = document.inside("include")

    return _inserted(document, offset, entries, more=bool(config["include"]))


def _inserted(
    document: Document, offset: int, entries: Sequence[str], *, more: bool
) -> str:
    """Return the source with entries after an offset, laid out as the first one there; ``more`` follow them."""
    text = document.text
    rest = text[offset:]
    blank = rest[: len(rest) - len(rest.lstrip())]
    inserted = f",{blank or ' '}".join(entries)
    if more and blank:
        inserted = f"{blank}{inserted},"
    elif more:
        inserted = f"{inserted}, "

    return text[:offset] + inserted + rest
