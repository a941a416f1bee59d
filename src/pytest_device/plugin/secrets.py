"""Secrets out of pytest's reports, before any reporter sees them."""

from typing import Any, Final, cast

import pytest

from pytest_device.redact import Redactor

_STRUCTURE: Final = ("nodeid", "location", "keywords", "node")


def scrub(report: pytest.TestReport, redactor: Redactor) -> None:
    """Mask every secret in the texts of a report: the error with its traceback, the output, the properties."""
    attributes: dict[str, Any] = vars(report)
    for name, value in attributes.items():
        if name not in _STRUCTURE:
            attributes[name] = _scrubbed(value, redactor)


def _scrubbed(value: Any, redactor: Redactor) -> Any:
    """Return texts masked, containers of masked values, and objects with their attributes masked in place."""
    match value:
        case str():
            return redactor.text(value)
        case list():
            return [_scrubbed(inner, redactor) for inner in cast("list[object]", value)]
        case tuple():
            return tuple(_scrubbed(inner, redactor) for inner in cast("tuple[object, ...]", value))
        case _ if type(value).__module__.startswith("_pytest.") and hasattr(value, "__dict__"):
            attributes: dict[str, Any] = vars(cast("object", value))
            attributes.update({name: _scrubbed(inner, redactor) for name, inner in attributes.items()})
            return cast("object", value)
        case _:
            return value
