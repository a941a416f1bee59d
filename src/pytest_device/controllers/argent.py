"""Calls the tools of argent by name, over HTTP, on a session in progress."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from pytest_device.controllers.client import OK, Client, as_mapping, config_of
from pytest_device.errors import ArgentError, ControllerError
from pytest_device.sessions.models import Session
from pytest_device.sessions.remote_config import ArgentConfig

if TYPE_CHECKING:
    from pytest_device.trace.recorder import DeviceRecorder

__tracebackhide__ = True  # errors are shown at the line of the test

_READS: Final = frozenset(
    {"list-devices", "describe", "screenshot", "await-ui-element", "await-screen-idle"}
)
"""The tools that can be retried without a response."""
_DEVICE: Final = "udid"
_DEVICE_NAMES: Final = (_DEVICE, "device_id")
"""The arguments that name the device: the tools of debuggers and profilers have the second one."""
_RUNNING: Final = frozenset({"running", "booted", "connected", "device"})
PICTURE_SECONDS: Final = 20.0
"""Maximum seconds for each picture of a trace."""
_logger: Final = logging.getLogger("pytest_device")
_FIND_ATTEMPTS: Final = 20
_FIND_PAUSE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of argent's server.

    Attributes:
        name: The name for ``Argent.call``.
        description: What it does, in the server's words.
        input_schema: The JSON schema of its arguments.

    >>> {tool.name: tool for tool in device.tools()}["gesture-tap"].input_schema["required"]
    ['udid', 'x', 'y']
    """

    name: str
    description: str
    input_schema: Mapping[str, Any] = field(repr=False)


class Argent(Client):
    """Drive a device with argent: the value of the fixture ``device_argent``.

    argent offers tools, which ``call`` calls by name. Coordinates are fractions of the screen, from 0 to 1.

    A tool that only reads is retried if no response arrives, others never are. A call raises ``ArgentError`` if argent
    refuses it, and ``ControllerLostError`` if no response of its own arrives.

    >>> device.call("gesture-tap", x=0.5, y=0.9)
    {...}
    >>> print(device.describe())
    Source: ...
        button "Add" value="Add a note" id="add" [clickable]  (0.039, 0.178, 0.922, 0.048)
    """

    controller = "argent tool server"

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _access(self, session: Session) -> tuple[str, str]:
        config = config_of(session, ArgentConfig, self.controller)
        token = config.tools_auth_token
        return config.tools_url, token.get_secret_value() if token else ""

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of the server.

        >>> sorted(tool.name for tool in device.tools())[:2]
        [...]
        """
        return tuple(self._tools.values())

    def call(
        self, tool: str, /, *, timeout_seconds: float | None = None, **arguments: Any
    ) -> Any:
        """Call a tool.

        Args:
            tool: Its name.
            timeout_seconds: The maximum duration of the call; that of the client by default.
            **arguments: Its arguments, named as in its schema; ``udid`` and ``device_id`` can be omitted.

        Returns:
            The tool's data.

        Raises:
            ArgentError: There is no such tool or no such argument (both before anything is sent), or argent refused
                the call.

        >>> device.call("gesture-tap", x=0.5, y=0.9)
        {...}
        >>> device.call("gesture-tapp")
        Traceback (most recent call last):
        pytest_device.ArgentError: argent has no tool 'gesture-tapp', only gesture-tap...
        """
        self._complete(tool, arguments)
        recorder = self._recorder_in_use()
        if recorder is None:
            return self._called(tool, arguments, timeout_seconds)

        # Imported here: only a recorded run pays for it.
        from pytest_device.trace.argent import call_of
        from pytest_device.trace.screen_parsers import from_description

        call = call_of(tool, arguments)
        data = recorder.record(
            call,
            lambda: self._called(tool, arguments, timeout_seconds),
        )
        if tool == "describe":
            description = str(as_mapping(data).get("description", ""))
            recorder.screen(from_description(description))
        if call.is_acting and recorder.takes_pictures:
            self._show(recorder)

        return data

    def _complete(self, name: str, arguments: dict[str, Any]) -> None:
        """Add the device to the arguments if the tool requires it, and check their names. Raises ArgentError."""
        tool = self._tools.get(name)
        if tool is None:
            similar = ", ".join(get_close_matches(name, self._tools))
            existing = similar or f"{len(self._tools)} others, see tools()"
            raise ArgentError(
                f"argent has no tool {name!r}, only {existing}", code="TOOL_NOT_FOUND"
            )

        required = tool.input_schema.get("required") or ()
        for argument in _DEVICE_NAMES:
            if argument in required and argument not in arguments:
                arguments[argument] = self.device_id

        known = as_mapping(tool.input_schema.get("properties"))
        is_closed = tool.input_schema.get("additionalProperties", False) is False
        # argent checks the values, and ignores a misspelled name.
        issues = [
            f"{argument} is unknown, must be one of {', '.join(known)}"
            for argument in arguments
            if known and is_closed and argument not in known
        ]
        if issues:
            raise ArgentError(
                f"argent {name}: {'; '.join(issues)}",
                code="INVALID_ARGUMENTS",
                issues=issues,
            )

    def _show(self, recorder: "DeviceRecorder") -> None:
        """Record what the device shows now; a failure does not matter to the test."""
        from pytest_device.trace.screen_parsers import from_description

        try:
            device = {_DEVICE: self.device_id}
            data = as_mapping(self._called("screenshot", device, PICTURE_SECONDS))
            recorder.picture(self._file_in(data, "image"), recorder.last)

            data = as_mapping(self._called("describe", device, PICTURE_SECONDS))
            description = str(data.get("description", ""))
            recorder.screen(from_description(description), recorder.last)
        except ControllerError as error:
            _logger.info("no picture of the device: %s", error)

    def devices(self) -> tuple[Mapping[str, Any], ...]:
        """Return the devices that the server reports.

        >>> len(device.devices())
        1
        """
        data = as_mapping(self._called("list-devices", {}, None))
        devices = cast("list[object]", data.get("devices") or ())
        return tuple(as_mapping(device) for device in devices)

    @cached_property
    def device_id(self) -> str:
        """Return the ID of the session's device; raise as ``device`` does."""
        return id_of(self.device())

    def device(self) -> Mapping[str, Any]:
        """Return the session's device, as the server reports it.

        Raises:
            ArgentError: No device is running, or more than one is.

        >>> device.device()["id"]
        'chromium-cdp-...'
        """
        running = self._running()
        # The server may not have detected it yet.
        for _attempt in range(_FIND_ATTEMPTS):
            if running:
                break
            self._sleep(_FIND_PAUSE_SECONDS)
            running = self._running()

        if len(running) != 1:
            names = ", ".join(id_of(device) for device in running) or "none"
            raise ArgentError(
                f"argent reports {len(running)} devices ({names}): pass udid to choose one",
                code="NO_SINGLE_DEVICE",
            )

        return running[0]

    def screenshot(self, path: Path | None = None, **arguments: Any) -> bytes:
        r"""Take a screenshot.

        Args:
            path: Where to write it, too.
            **arguments: More arguments of argent's ``screenshot``.

        Returns:
            The picture as PNG.

        >>> device.screenshot()[:4]
        b'\x89PNG'
        """
        data = as_mapping(self.call("screenshot", **arguments))
        return self._kept(self._file_in(data, "image"), path)

    def describe(self) -> str:
        """Return the elements on the screen as text, one per line.

        >>> [line for line in device.describe().splitlines() if "Add" in line]
        [...]
        """
        return str(as_mapping(self.call("describe")).get("description", ""))

    def start_recording(self) -> None:
        """Start recording the screen.

        Raises:
            ArgentError: The device can't be recorded, as a local browser.

        >>> device.start_recording()  # doctest: +SKIP
        """
        self.call("screen-recording-start", trimStatic=False)

    def stop_recording(self) -> bytes:
        """Stop the recording and return the video as MP4.

        Raises:
            ArgentError: Nothing is being recorded.

        >>> video = device.stop_recording()  # doctest: +SKIP
        """
        data = as_mapping(self.call("screen-recording-stop"))
        return self._file_in(data, "video")

    def _file_in(self, data: Mapping[str, Any], field_name: str) -> bytes:
        """Return the file that a field of a tool's data refers to."""
        reference = as_mapping(data.get(field_name))
        return self.artifact(str(reference.get("id", "")))

    def _running(self) -> list[Mapping[str, Any]]:
        """Return the running devices, or all if none has a state that argent is known to use for running ones."""
        devices = list(self.devices())
        running = [
            device
            for device in devices
            if str(device.get("state", "running")).lower() in _RUNNING
        ]
        return running or devices

    @cached_property
    def _tools(self) -> Mapping[str, Tool]:
        value = as_mapping(self._value_of(self._get("/tools")))
        if not isinstance(value.get("tools"), list):
            raise self._lost("does not list its tools")

        tools: dict[str, Tool] = {}
        for listed in cast("list[object]", value["tools"]):
            fields = as_mapping(listed)
            name = str(fields.get("name"))
            schema = as_mapping(fields.get("inputSchema"))
            tools[name] = Tool(name, str(fields.get("description", "")), schema)
        return tools

    def _called(
        self, tool: str, arguments: Mapping[str, Any], timeout_seconds: float | None
    ) -> Any:
        reply = self._post(
            f"/tools/{quote(tool, safe='')}",
            arguments,
            is_read=tool in _READS,
            timeout_seconds=timeout_seconds,
        )
        value = as_mapping(self._value_of(reply))
        if reply.status == OK and "data" in value:
            return value["data"]

        raise self._refused(tool, value)

    def _no_artifact(self, reply: Mapping[str, Any], status: int) -> ControllerError:
        del status
        return self._refused("artifact", reply)

    def _refused(self, tool: str, value: Mapping[str, Any]) -> ControllerError:
        if "error" not in value:
            return self._lost("returned something that is not its own response")

        issues: list[str] = []
        for reported in value.get("issues") or ():
            issue = as_mapping(reported)
            path = ".".join(str(part) for part in issue.get("path") or ())
            issues.append(f"{path}: {issue.get('message')}")

        message = self._shown(str(value.get("message") or value["error"]))
        return ArgentError(
            f"argent {tool}: {message}",
            code=str(value.get("error_code", "")),
            issues=issues,
        )


def id_of(device: Mapping[str, Any]) -> str:
    """Return the ID by which tools identify a device: its key depends on the platform."""
    return str(device.get("udid") or device.get("serial") or device.get("id") or "")
