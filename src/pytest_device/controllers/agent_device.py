"""The commands of agent-device on a session in progress."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pytest_device.controllers.client import as_mapping
from pytest_device.controllers.daemon import Daemon
from pytest_device.controllers.snapshot import Node, Snapshot
from pytest_device.errors import AgentDeviceError, ControllerError

if TYPE_CHECKING:
    from pytest_device.trace.recorder import DeviceRecorder

__tracebackhide__ = True  # errors are shown at the line of the test

WAIT_SECONDS: Final = 10.0
SLACK_SECONDS: Final = 60.0
"""Extra time, in seconds, for the response of a wait."""

PICTURE_SECONDS: Final = 20.0
"""Maximum seconds for each picture of a trace."""
_PICTURE: Final = {"path": "screenshot.png"}
_logger: Final = logging.getLogger("pytest_device")

_NO_MATCH: Final = frozenset({"predicate_failed", "selector_not_found"})

Target = str | Node | tuple[float, float]
"""A selector (``label=Go``), a reference (``@e3``), a node of a snapshot, or a point in the device's points."""
Predicate = Literal[
    "visible",
    "hidden",
    "exists",
    "absent",
    "enabled",
    "disabled",
    "editable",
    "selected",
    "focused",
    "text",
]
Direction = Literal["up", "down", "left", "right", "top", "bottom"]


class AgentDevice(Daemon):
    """One named agent-device session; errors it reports raise AgentDeviceError with their code, hint and details.

    Reads are retried without a response, actions never; if none comes, ControllerLostError is raised. Every call is
    limited by ``timeout_seconds``.
    """

    def open(
        self,
        app_or_url: str | None = None,
        *,
        url: str | None = None,
        relaunch: bool = False,
        **flags: Any,
    ) -> Mapping[str, Any]:
        """Open an app, a deep link or a web URL, ``url`` in the app; this starts the session, so it must come first."""
        opened = self.command(
            "open", *filter(None, (app_or_url, url)), relaunch=relaunch, **flags
        )
        if app_or_url and ":" not in app_or_url:
            self.apps.add(app_or_url)
        return opened

    def snapshot(
        self,
        *,
        interactive: bool = False,
        depth: int | None = None,
        scope: str | None = None,
    ) -> Snapshot:
        """Return the nodes on the screen: all meaningful ones, or only interactive ones."""
        given = self.command(
            "snapshot",
            is_read=True,
            snapshotInteractiveOnly=interactive,
            snapshotDepth=depth,
            snapshotScope=scope,
        )
        return Snapshot.from_wire(given)

    def press(
        self,
        target: Target,
        *,
        count: int | None = None,
        double: bool = False,
        settle: bool = False,
    ) -> None:
        """Tap a target; ``settle`` waits until the screen is stable."""
        self.command(
            "press", *_words(target), count=count, doubleTap=double, settle=settle
        )

    def longpress(self, target: Target, *, seconds: float | None = None) -> None:
        """Tap and hold a target."""
        milliseconds = [] if seconds is None else [str(round(seconds * 1000))]
        self.command("longpress", *_words(target), *milliseconds)

    def fill(self, target: Target, text: str, *, settle: bool = False) -> None:
        """Replace the text of an input; an empty text clears it."""
        self.command("fill", *_words(target), text, settle=settle)

    def type(self, text: str) -> None:
        """Append text to the focused input."""
        self.command("type", text)

    def scroll(
        self,
        direction: Direction,
        amount: float | None = None,
        *,
        until: str | None = None,
    ) -> None:
        """Scroll by a fraction of the screen, to an end, or until a selector is on the screen."""
        self.command(
            "scroll", direction, *([] if amount is None else [str(amount)]), until=until
        )

    def back(self) -> None:
        """Go back."""
        self.command("back")

    def alert(
        self, action: Literal["get", "accept", "dismiss"] = "get"
    ) -> Mapping[str, Any]:
        """Return an alert of the platform, accept or dismiss it."""
        return self.command("alert", action, is_read=action == "get")

    def wait(
        self,
        selector: str | None = None,
        *,
        text: str | None = None,
        absent: str | None = None,
        timeout_seconds: float = WAIT_SECONDS,
    ) -> None:
        """Wait until a selector or text is present, or the selector ``absent`` is not; pass one of the three."""
        wanted = [
            [word, value]
            for word, value in (("text", text), ("absent", absent))
            if value is not None
        ]
        wanted += [[selector]] if selector is not None else []
        if len(wanted) != 1:
            raise TypeError("wait() takes one of selector, text and absent")
        milliseconds = round(timeout_seconds * 1000)
        self.command(
            "wait",
            *wanted[0],
            str(milliseconds),
            is_read=True,
            timeout_seconds=timeout_seconds + SLACK_SECONDS,
            timeoutMs=milliseconds,
        )

    def get(self, target: Target) -> str:
        """Return the text of a target."""
        return str(
            self.command("get", "text", *_words(target), is_read=True).get("text", "")
        )

    def node(self, target: Target) -> Node:
        """Return one node with its attributes."""
        return Node.from_wire(
            as_mapping(
                self.command("get", "attrs", *_words(target), is_read=True).get("node")
            )
        )

    def find(self, text: str) -> Node:
        """Return the node whose text, label, value, role or identifier contains a text."""
        found = self.command("find", text, "get", "attrs", is_read=True)
        node = Node.from_wire(as_mapping(found.get("node")))
        # The reference of a found node is only valid with the number of its snapshot.
        return (
            replace(node, ref=f"{node.ref}~s{found['refsGeneration']}")
            if "refsGeneration" in found
            else node
        )

    def is_(
        self, predicate: Predicate, selector: str, value: str | None = None
    ) -> bool:
        """Return whether a predicate holds now; False if nothing matches, so use ``absent`` rather than ``hidden``."""
        try:
            self.command(
                "is",
                predicate,
                selector,
                *([] if value is None else [value]),
                is_read=True,
            )
        except AgentDeviceError as error:
            if error.details.get(
                "reason"
            ) in _NO_MATCH or "Selector did not match" in str(error):
                return False
            raise
        return True

    def screenshot(self, path: Path | None = None, **flags: Any) -> bytes:
        """Return a screenshot as PNG, and write it to ``path`` if given."""
        taken = self.command("screenshot", is_read=True, artifacts=_PICTURE, **flags)
        ((_name, picture),) = self._artifacts(taken)
        if recorder := self._recorder_in_use():
            recorder.picture(picture)
        if path is not None:
            path.write_bytes(picture)
        return picture

    def _show(self, recorder: "DeviceRecorder") -> None:
        from pytest_device.trace.screen_parsers import from_response

        try:
            taken = self._sent("screenshot", (), {}, True, PICTURE_SECONDS, _PICTURE)
            ((_name, picture),) = self._artifacts(taken)
            recorder.picture(picture, recorder.last)
            shown = self._sent("snapshot", (), {}, True, PICTURE_SECONDS, None)
            recorder.screen(from_response(shown), recorder.last)
        except ControllerError as error:
            _logger.info("no picture of the device: %s", error)

    def start_recording(self, **flags: Any) -> None:
        """Start recording the screen."""
        self.command("record", "start", artifacts={"outPath": "recording.mp4"}, **flags)

    def stop_recording(self, directory: Path) -> tuple[Path, ...]:
        """Stop the recording, write its files into ``directory`` and return them: a long one may have several."""
        stopped = self.command("record", "stop", artifacts={"outPath": "recording.mp4"})
        paths: list[Path] = []
        for number, (name, content) in enumerate(self._artifacts(stopped), 1):
            paths.append(directory / f"{number}-{name}")
            paths[-1].write_bytes(content)
        return tuple(paths)

    def logs(
        self,
        action: Literal["path", "start", "stop", "clear", "mark", "doctor"],
        *words: str,
    ) -> Mapping[str, Any]:
        """Control the app's log on the daemon's machine."""
        return self.command(
            "logs", action, *words, is_read=action in {"path", "doctor"}
        )

    def clear_app_state(
        self, app: str | None = None, *, timeout_seconds: float | None = None
    ) -> None:
        """Clear the stored data of an app, by default of the open one."""
        self.command(
            "settings",
            "clear-app-state",
            *([app] if app else []),
            timeout_seconds=timeout_seconds,
        )

    def close(self, *, timeout_seconds: float | None = None) -> None:
        """End the session, so that another one can use the device; no error if there is none."""
        try:
            self.command("close", timeout_seconds=timeout_seconds)
        except AgentDeviceError as error:
            if error.code != "SESSION_NOT_FOUND":
                raise


def _words(target: Target) -> list[str]:
    match target:
        case Node():
            return [f"@{target.ref}"]
        case tuple():
            return [f"{value:g}" for value in target]
        case _:
            return [target]
