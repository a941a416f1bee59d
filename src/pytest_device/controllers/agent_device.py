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
    """Drive a device with agent-device: the value of the fixture ``device_agent_device``.

    A target is a selector (``'label="Add"'``), a reference of the last snapshot (``"@e3"``), a ``Node``, or a point
    ``(x, y)`` in the device's points.

    Each method sends one command. One that reads is retried if no response arrives, one that acts never is. A method
    raises ``AgentDeviceError`` if agent-device refuses the command, and ``ControllerLostError`` if no response of its own
    arrives.

    >>> device.open("org.example.notes")
    {...}
    >>> device.fill('label="Text"', "buy milk")
    >>> device.press('label="Add"')
    >>> device.wait(text="Notes: 1")
    """

    def open(
        self,
        app_or_url: str | None = None,
        *,
        url: str | None = None,
        relaunch: bool = False,
        **flags: Any,
    ) -> Mapping[str, Any]:
        """Open an app, a deep link or a web URL. This starts the session, so it comes before all other commands.

        Args:
            app_or_url: The app's ID, a link or a URL; without one, the device as it is.
            url: A link to open in the app.
            relaunch: End the app first if it is running.
            **flags: More flags of the daemon's ``open``, spelled as in its API.

        Returns:
            The daemon's data.

        Raises:
            AgentDeviceError: The app is not installed, or nothing opens the link.

        >>> device.open("org.example.notes", relaunch=True)
        {...}
        >>> device.open("notes://notes/7")
        {...}
        """
        positionals = [word for word in (app_or_url, url) if word]
        data = self.command("open", *positionals, relaunch=relaunch, **flags)
        if app_or_url and ":" not in app_or_url:
            self.apps.add(app_or_url)

        return data

    def snapshot(
        self,
        *,
        interactive: bool = False,
        depth: int | None = None,
        scope: str | None = None,
    ) -> Snapshot:
        """Return the nodes on the screen.

        Args:
            interactive: Only nodes that can be pressed or filled.
            depth: The maximum depth of a node in the tree.
            scope: A selector; only this node and those below.

        >>> device.snapshot(interactive=True).labels("button")
        ['Add']
        >>> print(device.snapshot())
        @e1 [heading] "Notes: 0"
        @e2 [textbox] "Text"
        @e3 [button] "Add"
        """
        data = self.command(
            "snapshot",
            is_read=True,
            snapshotInteractiveOnly=interactive,
            snapshotDepth=depth,
            snapshotScope=scope,
        )
        return Snapshot.from_wire(data)

    def press(
        self,
        target: Target,
        *,
        count: int | None = None,
        double: bool = False,
        settle: bool = False,
    ) -> None:
        """Tap a target.

        Args:
            target: What to tap.
            count: How often to tap.
            double: Tap twice in quick succession.
            settle: Wait until the screen no longer changes.

        Raises:
            AgentDeviceError: The target is not on the screen.

        >>> device.press('label="Add"')
        >>> device.press(device.find("Add"))
        >>> device.press("label=Ad")
        Traceback (most recent call last):
        pytest_device.AgentDeviceError: ...
        """
        self.command(
            "press", *_words(target), count=count, doubleTap=double, settle=settle
        )

    def longpress(self, target: Target, *, seconds: float | None = None) -> None:
        """Tap and hold a target.

        Args:
            target: What to hold.
            seconds: For how long; agent-device's own duration by default.

        >>> device.longpress('label="Add"', seconds=0.5)  # doctest: +SKIP
        """
        milliseconds = [] if seconds is None else [str(round(seconds * 1000))]
        self.command("longpress", *_words(target), *milliseconds)

    def fill(self, target: Target, text: str, *, settle: bool = False) -> None:
        """Replace the text of an input.

        Args:
            target: The input.
            text: Its new text; empty to clear it.
            settle: Wait until the screen no longer changes.

        Raises:
            AgentDeviceError: The target is not on the screen, or accepts no text.

        >>> device.fill('label="Text"', "buy milk")
        >>> device.node('label="Text"').value
        'buy milk'
        """
        self.command("fill", *_words(target), text, settle=settle)

    def type(self, text: str) -> None:
        """Append text to the focused input.

        >>> device.fill('label="Text"', "buy")
        >>> device.type(" milk")
        >>> device.node('label="Text"').value
        'buy milk'
        """
        self.command("type", text)

    def scroll(
        self,
        direction: Direction,
        amount: float | None = None,
        *,
        until: str | None = None,
    ) -> None:
        """Scroll the screen.

        Args:
            direction: Where to; ``top`` and ``bottom`` scroll to the end.
            amount: A fraction of the screen.
            until: A selector; scroll until it is on the screen.

        >>> device.scroll("down", 0.5)
        """
        positionals: list[str] = [direction]
        if amount is not None:
            positionals.append(str(amount))
        self.command("scroll", *positionals, until=until)

    def back(self) -> None:
        """Go back, as the button or the gesture of the system does.

        >>> device.back()  # doctest: +SKIP
        """
        self.command("back")

    def alert(
        self, action: Literal["get", "accept", "dismiss"] = "get"
    ) -> Mapping[str, Any]:
        """Read, accept or dismiss an alert.

        Args:
            action: What to do with the alert.

        Returns:
            The daemon's data, for ``get`` the alert.

        Raises:
            AgentDeviceError: No alert is open.

        >>> device.alert("accept")  # doctest: +SKIP
        {...}
        """
        return self.command("alert", action, is_read=action == "get")

    def wait(
        self,
        selector: str | None = None,
        *,
        text: str | None = None,
        absent: str | None = None,
        timeout_seconds: float = WAIT_SECONDS,
    ) -> None:
        """Wait for something to appear or to disappear. Pass one of the first three arguments.

        Args:
            selector: Wait until it is on the screen.
            text: Wait until a node has this text.
            absent: A selector; wait until it is not on the screen.
            timeout_seconds: How long to wait.

        Raises:
            AgentDeviceError: The time is over.
            TypeError: None of the three was passed, or several.

        >>> device.wait(text="Notes: 0")
        >>> device.wait(absent='label="Note 7"', timeout_seconds=2)
        """
        conditions: list[list[str]] = []
        if selector is not None:
            conditions.append([selector])
        if text is not None:
            conditions.append(["text", text])
        if absent is not None:
            conditions.append(["absent", absent])
        if len(conditions) != 1:
            raise TypeError("wait() takes one of selector, text and absent")

        milliseconds = round(timeout_seconds * 1000)
        self.command(
            "wait",
            *conditions[0],
            str(milliseconds),
            is_read=True,
            timeout_seconds=timeout_seconds + SLACK_SECONDS,
            timeoutMs=milliseconds,
        )

    def get(self, target: Target) -> str:
        """Return the text of a target.

        Raises:
            AgentDeviceError: The target is not on the screen.

        >>> device.get('label="Notes: 0"')
        'Notes: 0'
        """
        data = self.command("get", "text", *_words(target), is_read=True)
        return str(data.get("text", ""))

    def node(self, target: Target) -> Node:
        """Return one node with its attributes.

        Raises:
            AgentDeviceError: The target is not on the screen.

        >>> device.node('label="Add"').role
        'button'
        """
        data = self.command("get", "attrs", *_words(target), is_read=True)
        return Node.from_wire(as_mapping(data.get("node")))

    def find(self, text: str) -> Node:
        """Return the node whose text, label, value, role or identifier contains a text.

        Raises:
            AgentDeviceError: There is no such node, or more than one.

        >>> device.find("Add").label
        'Add'
        """
        data = self.command("find", text, "get", "attrs", is_read=True)
        node = Node.from_wire(as_mapping(data.get("node")))
        if "refsGeneration" not in data:
            return node

        # The reference of a found node is only valid with the number of its snapshot.
        return replace(node, ref=f"{node.ref}~s{data['refsGeneration']}")

    def is_(
        self, predicate: Predicate, selector: str, value: str | None = None
    ) -> bool:
        """Return whether a predicate holds now; False if nothing matches, also for ``hidden``: use ``absent``.

        Args:
            predicate: What to check.
            selector: The node.
            value: The expected text, for the predicate ``text``.

        >>> device.is_("visible", 'label="Add"')
        True
        >>> device.is_("absent", 'label="Note 7"')
        True
        """
        expected = [] if value is None else [value]
        try:
            self.command("is", predicate, selector, *expected, is_read=True)
        except AgentDeviceError as error:
            # Some versions of the daemon give no reason, only the message.
            has_reason = error.details.get("reason") in _NO_MATCH
            if has_reason or "Selector did not match" in str(error):
                return False
            raise

        return True

    def screenshot(self, path: Path | None = None, **flags: Any) -> bytes:
        r"""Take a screenshot.

        Args:
            path: Where to write it, too.
            **flags: More flags of the daemon's ``screenshot``, spelled as in its API.

        Returns:
            The picture as PNG.

        >>> device.screenshot()[:4]
        b'\x89PNG'
        """
        data = self.command("screenshot", is_read=True, artifacts=_PICTURE, **flags)
        ((_name, picture),) = self._artifacts(data)
        return self._kept(picture, path)

    def _show(self, recorder: "DeviceRecorder") -> None:
        from pytest_device.trace.screen_parsers import from_response

        try:
            data = self._sent("screenshot", (), {}, True, PICTURE_SECONDS, _PICTURE)
            ((_name, picture),) = self._artifacts(data)
            recorder.picture(picture, recorder.last)

            data = self._sent("snapshot", (), {}, True, PICTURE_SECONDS, None)
            recorder.screen(from_response(data), recorder.last)
        except ControllerError as error:
            _logger.info("no picture of the device: %s", error)

    def start_recording(self, **flags: Any) -> None:
        """Start recording the screen.

        Raises:
            AgentDeviceError: The device can't be recorded. On a local browser, the recording fails when it ends.

        >>> device.start_recording()  # doctest: +SKIP
        """
        self.command("record", "start", artifacts={"outPath": "recording.mp4"}, **flags)

    def stop_recording(self, directory: Path) -> tuple[Path, ...]:
        """Stop the recording and write its files, several for a long one.

        Args:
            directory: An existing directory.

        Returns:
            The files, in the order in which they were recorded.

        Raises:
            AgentDeviceError: Nothing is being recorded.

        >>> device.stop_recording(tmp_path)  # doctest: +SKIP
        (PosixPath('.../1-recording.mp4'),)
        """
        data = self.command("record", "stop", artifacts={"outPath": "recording.mp4"})

        paths: list[Path] = []
        for number, (name, content) in enumerate(self._artifacts(data), 1):
            path = directory / f"{number}-{name}"
            path.write_bytes(content)
            paths.append(path)
        return tuple(paths)

    def logs(
        self,
        action: Literal["path", "start", "stop", "clear", "mark", "doctor"],
        *words: str,
    ) -> Mapping[str, Any]:
        """Control the app's log on the daemon's machine.

        Args:
            action: What to do with it.
            *words: More arguments, such as the text of a mark.

        >>> device.logs("mark", "signed in")  # doctest: +SKIP
        {...}
        """
        return self.command(
            "logs", action, *words, is_read=action in {"path", "doctor"}
        )

    def clear_app_state(
        self, app: str | None = None, *, timeout_seconds: float | None = None
    ) -> None:
        """Clear the stored data of an app.

        Args:
            app: The app's ID; by default the open one.
            timeout_seconds: The maximum duration of the call; that of the client by default.

        >>> device.clear_app_state("org.example.notes")
        """
        apps = [app] if app else []
        self.command(
            "settings", "clear-app-state", *apps, timeout_seconds=timeout_seconds
        )

    def close(self, *, timeout_seconds: float | None = None) -> None:
        """End the session, so that another one can use the device; no error if there is none.

        Args:
            timeout_seconds: The maximum duration of the call; that of the client by default.

        >>> device.close()
        """
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
