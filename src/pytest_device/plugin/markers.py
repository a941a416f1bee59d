"""Marker arguments -> request."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.errors import ConfigError

if TYPE_CHECKING:
    from pytest_device.sessions.request import SessionRequest
    from pytest_device.settings import Settings

CI_RUN_VARIABLES: Final = ("GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILD_TAG", "BUILD_NUMBER", "BUILD_ID")
"""Where common CI services name the run; the first that is set is used."""


def request_of(item: pytest.Item, settings: "Settings", environ: Mapping[str, str], run: str = "") -> "SessionRequest":
    """Return the request of a test: its markers, the closest winning argument by argument, over the defaults.

    ``run`` is in the session's name where no CI service names the run. Raises ConfigError with one problem for every
    mistake.
    """
    from pytest_device.sessions.request import SessionRequest

    marks = list(item.iter_markers("device"))
    if not marks:
        raise ConfigError("asks for a device without saying which: add @pytest.mark.device(platform=...)")
    if any(mark.args for mark in marks):
        raise ConfigError("device() takes keyword arguments only, such as device(platform='android')")
    arguments: dict[str, Any] = {}
    for mark in reversed(marks):
        arguments |= mark.kwargs
    arguments = {name: value for name, value in arguments.items() if value is not None}  # None means the default
    defaults = _bounds(arguments, settings) | {
        "app_id": settings.app_id.value or "00000000-0000-0000-0000-000000000000",  # reported apart when missing
        "name": session_name(item, environ, run),
    }
    return SessionRequest.from_arguments(**(defaults | arguments))


def _bounds(arguments: Mapping[str, Any], settings: "Settings") -> dict[str, Any]:
    """Return the limits every session carries, so that one that is lost ends by itself.

    An idle limit is left out where the document forbids it: for ``web-preview-only``, and beside a duration that is
    not longer.
    """
    duration = arguments.get("max_duration_minutes")
    longest = settings.max_duration_minutes.value if duration is None else duration
    bounds = {"max_duration_minutes": longest}
    if arguments.get("type") != "web-preview-only" and isinstance(longest, int) and longest > 1:
        bounds["max_idle_time_minutes"] = min(settings.max_idle_time_minutes.value, longest - 1)
    return bounds


def session_name(item: pytest.Item, environ: Mapping[str, str], run: str) -> str:
    """Return a name that tells runs apart where only about its first 40 characters are read: the test comes first."""
    from pytest_device.spec import NAME_MAX_LENGTH

    path, _, test = item.nodeid.partition("::")
    ci_run = next((environ[name] for name in CI_RUN_VARIABLES if environ.get(name)), run)
    worker = environ.get("PYTEST_XDIST_WORKER", "")
    name = _joined([test or item.name, path, item.config.rootpath.name, worker, ci_run])[:NAME_MAX_LENGTH]
    return name.encode(errors="replace").decode()  # a file's name may hold bytes that are no text


def _joined(parts: Iterable[str]) -> str:
    return " · ".join(part for part in parts if part)
