"""Formats the error and the devices in the report of a failed test."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import pytest

from pytest_device.controllers.appium.refusal import ADVERTISEMENT
from pytest_device.plugin.state import requirements_of
from pytest_device.report.lines import with_pages, without_pages
from pytest_device.sessions.models import Session
from pytest_device.trace.stack import chain_of

_OURS: Final = "pytest_device"
_CLIENTS: Final = frozenset(
    {"selenium", "appium", "urllib3", "httpx", "httpcore", _OURS}
)
"""Packages whose frames don't help to understand a test; ``--full-trace`` shows them."""
_BELOW_CLIENTS: Final = frozenset({"http", "socket", "ssl"})
"""Modules of the standard library by which clients send: only their frames below one of a client are hidden."""


def shows_all_frames(config: pytest.Config) -> bool:
    """Return whether the user asked for whole tracebacks."""
    # -p no:terminal removes the option.
    return bool(config.getoption("fulltrace", default=False))


def is_of_a_client(error: BaseException) -> bool:
    """Return whether a client of a controller raised an error: it may be about an element."""
    return _package(type(error).__module__) in _CLIENTS


def shorten(error: pytest.ExceptionInfo[BaseException]) -> None:
    """Remove the frames below the user's call from an error: those of clients, and the server's own stack trace."""
    # A list, since the chain is cut below.
    for raised in list(chain_of(error.value)):
        frames = list(_frames(raised.__traceback__))
        is_of_client = _package(type(raised).__module__) in _CLIENTS
        # The frames of an error in this package explain it.
        if not frames or (frames[-1][1] == _OURS and not is_of_client):
            continue

        raised.with_traceback(_without_clients(frames[0][0]))
        cause = raised.__cause__ or raised.__context__
        # Raised and handled within the client: nothing of the suite led to it.
        if cause and all(is_client for _, is_client in _marked(cause.__traceback__)):
            # The class may refuse attributes, as a frozen dataclass does.
            object.__setattr__(raised, "__cause__", None)
            object.__setattr__(raised, "__suppress_context__", True)

        message: object = getattr(raised, "msg", None)
        if isinstance(message, str) and is_of_client:
            vars(raised).update(msg=ADVERTISEMENT.sub("", message), stacktrace=None)

    # Pytest reads it earlier for a unittest case.
    error.traceback = type(error.traceback)(error.tb)


def _package(module: object) -> str:
    return str(module).partition(".")[0]


def _frames(traceback: TracebackType | None) -> Iterator[tuple[TracebackType, str]]:
    """Yield the frames, each with its package."""
    while traceback:
        yield traceback, _package(traceback.tb_frame.f_globals.get("__name__", ""))
        traceback = traceback.tb_next


def _marked(traceback: TracebackType | None) -> Iterator[tuple[TracebackType, bool]]:
    """Yield the frames, each with whether it is a client's, or of what a client sends by."""
    is_below = False
    for frame, package in _frames(traceback):
        is_below = package in _CLIENTS or (is_below and package in _BELOW_CLIENTS)
        yield frame, is_below


def _without_clients(traceback: TracebackType) -> TracebackType:
    """Return a traceback without the frames of clients; if there are no others, keep one.

    Changes it in place, because pytest, its debugger and other reporters share it.
    """
    kept = [frame for frame, is_client in _marked(traceback) if not is_client]
    if not kept:
        kept = [traceback]

    for frame, following in pairwise(kept):
        frame.tb_next = following
    kept[-1].tb_next = None

    return kept[0]


def represent_briefly(error: pytest.ExceptionInfo[BaseException]) -> None:
    """Let pytest represent an error without its traceback, whose source files it would parse for each entry."""
    full = error.getrepr

    def brief(*_: object, **__: object) -> Any:
        return full(style="value", chain=False)

    vars(error)["getrepr"] = brief


def message_only(
    error: pytest.ExceptionInfo[BaseException], message: str, place: str = ""
) -> Any:
    """Return the error as its message only: a traceback through the plugin does not help users.

    ``place`` is the line of the suite at which it was raised. The summary has the first line of the message.
    """
    lines = without_pages(message).splitlines()
    shown = error.getrepr(style="value", chain=False)
    if shown.reprcrash:
        shown.reprcrash.message = lines[0]

    shown.reprtraceback.reprentries[0].lines = [*lines, place] if place else lines
    return shown


def place_of(error: pytest.ExceptionInfo[BaseException], config: pytest.Config) -> str:
    """Return file and line of the suite's own call that raised an error; empty if the suite made none."""
    for entry in reversed(error.traceback):
        path = entry.path
        package = _package(entry.frame.f_globals.get("__name__", ""))
        if (
            isinstance(path, Path)
            and path.is_relative_to(config.rootpath)
            and package not in _CLIENTS
            and "site-packages" not in path.parts
        ):
            start = config.invocation_params.dir
            shown = path.relative_to(start) if path.is_relative_to(start) else path
            return f"{shown}:{entry.lineno + 1}: {error.typename}"

    return ""


def describe(
    item: pytest.Item,
    sessions: Mapping[str, Session],
    *,
    page: str | None,
    directory: Path | None,
    has_pages: bool,
    explanation: Sequence[str] = (),
) -> str:
    """Return the devices of a failed test: platform, name, session page, artifacts; empty if there was no device.

    ``page`` is the page of a session that the test did not get. Without ``has_pages``, pages end with the run.
    ``explanation`` has lines that the error does not have.
    """
    # Without any of them, the error itself says all.
    if not (sessions or directory or (page and has_pages)):
        return ""

    requested = {
        name: (str(requirement.request.platform), str(requirement.request.type))
        for name, requirement in requirements_of(item).items()
    }

    pages: dict[str, str | None] = {}
    if has_pages:
        pages[""] = page
        pages |= {name: session.url for name, session in sessions.items()}

    lines: list[str] = []
    for name in requested or sessions:
        kind = requested.get(name)
        if kind is None:
            kind = (str(sessions[name].platform), str(sessions[name].type))

        text = f"{name}: " if name else ""
        text += " ".join(kind)
        if name in sessions and sessions[name].device_name:
            text += f" on {sessions[name].device_name}"

        address = pages.get(name) or pages.get("") or ""
        if address:
            text += ", session page:"
        lines.append(with_pages(text, [address]))

    lines += explanation
    if directory:
        start = item.config.invocation_params.dir
        is_below = directory.is_relative_to(start)
        shown = directory.relative_to(start) if is_below else directory
        lines.append(f"artifacts: {shown}")

    return "\n".join(lines)


def add_section(report: pytest.TestReport, title: str, text: str) -> None:
    """Add a section to the error itself if possible, so that JUnit and HTML reports include it."""
    error: Any = report.longrepr
    if hasattr(error, "addsection"):
        error.addsection(title, text)
    else:
        report.sections.append((title, text))
