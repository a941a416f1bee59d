"""Copies a report without what leads Playwright to files of this machine: it may come from anybody."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast
from zipfile import ZIP_DEFLATED, ZipFile

from pytest_device.regular_files import open_inside

_LINES: Final = re.compile(r"\w[\w.-]*\.jsonl")
_RESOURCE: Final = re.compile(r"resources/\w[\w.-]*")
_SEPARATORS: Final = re.compile(r"[/\\]")


def copy_as_text(blob: Path, target: Path) -> None:
    """Copy a blob for a merge in an empty directory, so that Playwright opens none of the files that it names.

    Playwright quotes the files of locations and stacks, and unpacks each member wherever its name leads. Raises one of
    ``UNREADABLE`` or RecursionError for a damaged blob.
    """
    with (
        open_inside(blob.name, blob.parent) as file,
        ZipFile(file) as archive,
        ZipFile(target, "w", ZIP_DEFLATED) as copy,
    ):
        for name in dict.fromkeys(archive.namelist()):
            if _LINES.fullmatch(name):
                with archive.open(name) as lines, copy.open(name, "w") as written:
                    written.writelines(_copied(lines))
            elif _RESOURCE.fullmatch(name):
                copy.writestr(archive.getinfo(name), archive.read(name))


def _copied(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        if line.strip():
            yield json.dumps(_as_text(json.loads(line))).encode() + b"\n"


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_text(part) for part in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value

    values = {
        name: _as_text(part) for name, part in cast("dict[str, Any]", value).items()
    }
    if "file" in values:
        values["file"] = _below(values["file"])
    # Playwright makes a separator of it in every path.
    if "pathSeparator" in values and values["pathSeparator"] != "\\":
        values["pathSeparator"] = "/"
    # Without a location, Playwright takes that of the stack.
    if "stack" in values and not isinstance(values.get("location"), dict):
        values["message"] = values.pop("stack")

    return values


def _below(file: Any) -> str:
    """Return a path below the directory of the merge, whichever one a report names."""
    parts = _SEPARATORS.split(str(file).replace(":", "_"))
    return "/".join(part for part in parts if part not in {"", ".", ".."})
