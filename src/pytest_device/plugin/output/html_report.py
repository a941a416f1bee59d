"""Adds the files of a failed test to its row in the report of pytest-html: the picture, and links to the others."""

import base64
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_device.platforms.places import path_from

if TYPE_CHECKING:
    import pytest


def add_files(
    report: "pytest.TestReport", config: "pytest.Config", files: Mapping[str, Path]
) -> None:
    """Add files, by the names to show, to a report; links are relative to the HTML file, which may be moved together with them."""
    # Only runs that write this report have the package.
    make: Any = import_module("pytest_html.extras")
    start = _directory_of(config)
    extras: list[Any] = list(getattr(report, "extras", ()))
    for name, path in files.items():
        if path.suffix == ".png":
            content = base64.b64encode(path.read_bytes()).decode()
            extras.append(make.png(content, name))
        else:
            link = path_from(start, path)
            # A browser takes the letter of a drive for a scheme.
            url = link.as_uri() if link.is_absolute() else link.as_posix()
            extras.append(make.url(url, name))

    vars(report)["extras"] = extras


def _directory_of(config: "pytest.Config") -> Path:
    path = Path(str(config.getoption("htmlpath")))
    return (config.invocation_params.dir / path).parent
