"""agent-device on a session in progress, spoken to by its daemon's own contract: JSON-RPC over HTTP."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, Self
from urllib.parse import quote
from uuid import uuid4

from pytest_device.controllers.command_line import printed
from pytest_device.controllers.environment import AGENT_DEVICE_SESSION, environment_of
from pytest_device.controllers.snapshot import Node, Snapshot
from pytest_device.controllers.transport import Reply, Transport, as_mapping, refusal_of
from pytest_device.errors import AgentDeviceError, ControllerError
from pytest_device.sessions.models import AgentDeviceConfig, Session

__tracebackhide__ = True  # what goes wrong is shown at the line of the test

COMMAND_SECONDS: Final = 180.0
"""How long one command may take: the first one on a device installs what drives it there."""
WAIT_SECONDS: Final = 10.0
SLACK_SECONDS: Final = 60.0
"""How long the answer to a wait may take beyond the wait."""

_OK: Final = 200
_NO_MATCH: Final = frozenset({"predicate_failed", "selector_not_found"})

Target = str | Node | tuple[float, float]
"""A selector (``label=Go``), a reference (``@e3``), a node of a snapshot, or a point in the device's points."""
Predicate = Literal[
    "visible", "hidden", "exists", "absent", "enabled", "disabled", "editable", "selected", "focused", "text"
]
Direction = Literal["up", "down", "left", "right", "top", "bottom"]


class AgentDevice:
    """One named session of agent-device. What it refuses is an AgentDeviceError with its code, hint and details.

    Reads are tried again when no answer comes, actions never; what does not answer is a ControllerLostError. Every call
    is bounded by ``timeout_seconds``.
    """

    def __init__(
        self,
        session: Session,
        environment: Mapping[str, str] | None = None,
        *,
        timeout_seconds: float = COMMAND_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        config = session.remote_config
        if not isinstance(config, AgentDeviceConfig):
            raise ControllerError(f"session {session.id} is of type {session.type}: it has no agent-device daemon")
        self.environment = environment_of(session) if environment is None else environment
        self.name = self.environment.get(AGENT_DEVICE_SESSION, "default")
        self.platform = str(session.platform)
        self.apps: set[str] = set()
        """The apps that were opened."""
        self._timeout_seconds = timeout_seconds
        self._transport = Transport(
            "agent-device daemon",
            config.agent_device_remote_session_url,
            config.agent_device_remote_session_token.get_secret_value(),
            page=session.url,
            timeout_seconds=timeout_seconds,
            sleep=sleep,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection; the session of agent-device goes on."""
        self._transport.close()

    def health(self) -> Mapping[str, Any]:
        """Return what the daemon says of itself: ``version``, ``rpcProtocolVersion``."""
        return as_mapping(self._value(self._transport.get("/health")))

    def open(
        self, app_or_url: str | None = None, *, url: str | None = None, relaunch: bool = False, **flags: Any
    ) -> Mapping[str, Any]:
        """Open an app, a deep link or a web address, ``url`` in the app; it begins the session. It must come first."""
        opened = self.command("open", *filter(None, (app_or_url, url)), relaunch=relaunch, **flags)
        if app_or_url and ":" not in app_or_url:
            self.apps.add(app_or_url)
        return opened

    def snapshot(self, *, interactive: bool = False, depth: int | None = None, scope: str | None = None) -> Snapshot:
        """Return what is on the screen: all that has a meaning, or only what can be used."""
        given = self.command(
            "snapshot",
            is_read=True,
            snapshotInteractiveOnly=interactive,
            snapshotDepth=depth,
            snapshotScope=scope,
        )
        return Snapshot.from_wire(given)

    def press(self, target: Target, *, count: int | None = None, double: bool = False, settle: bool = False) -> None:
        """Touch something shortly; ``settle`` waits until the screen has come to rest."""
        self.command("press", *_words(target), count=count, doubleTap=double, settle=settle)

    def longpress(self, target: Target, *, seconds: float | None = None) -> None:
        """Touch something and hold it."""
        milliseconds = [] if seconds is None else [str(round(seconds * 1000))]
        self.command("longpress", *_words(target), *milliseconds)

    def fill(self, target: Target, text: str, *, settle: bool = False) -> None:
        """Put a text into an input in the place of what is there; an empty one clears it."""
        self.command("fill", *_words(target), text, settle=settle)

    def type(self, text: str) -> None:
        """Append a text to the input that has the focus."""
        self.command("type", text)

    def scroll(self, direction: Direction, amount: float | None = None, *, until: str | None = None) -> None:
        """Scroll by a part of the screen, to an end, or until a selector is on the screen."""
        self.command("scroll", direction, *([] if amount is None else [str(amount)]), until=until)

    def back(self) -> None:
        """Go back."""
        self.command("back")

    def alert(self, action: Literal["get", "accept", "dismiss"] = "get") -> Mapping[str, Any]:
        """Look at an alert of the platform, or answer it."""
        return self.command("alert", action, is_read=action == "get")

    def wait(
        self,
        selector: str | None = None,
        *,
        text: str | None = None,
        absent: str | None = None,
        timeout_seconds: float = WAIT_SECONDS,
    ) -> None:
        """Wait until a selector or a text is there, or ``absent``, a selector, is not; name one of the three."""
        wanted = [[word, value] for word, value in (("text", text), ("absent", absent)) if value is not None]
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
        """Return the text of something."""
        return str(self.command("get", "text", *_words(target), is_read=True).get("text", ""))

    def node(self, target: Target) -> Node:
        """Return one node with its attributes."""
        return Node.from_wire(as_mapping(self.command("get", "attrs", *_words(target), is_read=True).get("node")))

    def find(self, text: str) -> Node:
        """Return the node whose text, label, value, role or id contains a text."""
        found = self.command("find", text, "get", "attrs", is_read=True)
        node = Node.from_wire(as_mapping(found.get("node")))
        # Of what is found alone a reference holds only with the number of the look at the screen.
        return replace(node, ref=f"{node.ref}~s{found['refsGeneration']}") if "refsGeneration" in found else node

    def is_(self, predicate: Predicate, selector: str, value: str | None = None) -> bool:
        """Tell whether something is so now; False also where nothing matches, so ask for ``absent``, not ``hidden``."""
        try:
            self.command("is", predicate, selector, *([] if value is None else [value]), is_read=True)
        except AgentDeviceError as error:
            if error.details.get("reason") in _NO_MATCH or "Selector did not match" in str(error):
                return False
            raise
        return True

    def screenshot(self, path: Path | None = None, **flags: Any) -> bytes:
        """Return what the screen shows as PNG, and write it to ``path``."""
        taken = self.command("screenshot", is_read=True, artifacts={"path": "screenshot.png"}, **flags)
        ((_name, picture),) = self._artifacts(taken)
        if path is not None:
            path.write_bytes(picture)
        return picture

    def start_recording(self, **flags: Any) -> None:
        """Begin to record the screen."""
        self.command("record", "start", artifacts={"outPath": "recording.mp4"}, **flags)

    def stop_recording(self, directory: Path) -> tuple[Path, ...]:
        """End the recording; return its files, which are written into ``directory``: a long one may have several."""
        stopped = self.command("record", "stop", artifacts={"outPath": "recording.mp4"})
        paths: list[Path] = []
        for number, (name, content) in enumerate(self._artifacts(stopped), 1):
            paths.append(directory / f"{number}-{name}")
            paths[-1].write_bytes(content)
        return tuple(paths)

    def logs(
        self, action: Literal["path", "start", "stop", "clear", "mark", "doctor"], *words: str
    ) -> Mapping[str, Any]:
        """Do something with the app's log on the daemon's machine."""
        return self.command("logs", action, *words, is_read=action in {"path", "doctor"})

    def clear_app_state(self, app: str | None = None, *, timeout_seconds: float | None = None) -> None:
        """Forget what an app has stored, or the one that is open."""
        self.command("settings", "clear-app-state", *([app] if app else []), timeout_seconds=timeout_seconds)

    def close(self, *, timeout_seconds: float | None = None) -> None:
        """End the session, so that another one may use the device; that there is none is no error."""
        try:
            self.command("close", timeout_seconds=timeout_seconds)
        except AgentDeviceError as error:
            if error.code != "SESSION_NOT_FOUND":
                raise

    def command(
        self,
        name: str,
        *positionals: str,
        is_read: bool = False,
        timeout_seconds: float | None = None,
        artifacts: Mapping[str, str] | None = None,
        **flags: Any,
    ) -> Mapping[str, Any]:
        """Send any command; flags as the daemon spells them, None and False are left out. Returns its data.

        ``is_read`` allows to repeat it. ``artifacts`` name the files that it is to keep for ``artifact``.
        """
        request_id = uuid4().hex[:16]
        params = {
            "session": self.name,
            "command": name,
            "positionals": list(positionals),
            "flags": {
                "platform": self.platform,
                **{flag: value for flag, value in flags.items() if value is not None and value is not False},
            },
            "meta": {
                "requestId": request_id,
                "sessionExplicit": True,
                **({"clientArtifactPaths": dict(artifacts)} if artifacts else {}),
            },
        }
        call = {"jsonrpc": "2.0", "id": request_id, "method": "agent_device.command", "params": params}
        return self._result(name, self._transport.post("/rpc", call, is_read=is_read, timeout_seconds=timeout_seconds))

    def artifact(self, artifact_id: str) -> bytes:
        """Return a file that a command has kept, once."""
        reply = self._transport.get(f"/artifacts/{quote(artifact_id, safe='')}")
        if reply.status != _OK:
            said = as_mapping(self._value(reply))
            raise AgentDeviceError(self._transport.shown(str(said.get("error"))), code=str(said.get("code", "")))
        return reply.body

    def run(
        self,
        *args: str,
        program: Sequence[str] = (),
        timeout_seconds: float | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Mapping[str, Any]:
        """Run the real command line program on this session; return its data.

        ``program`` is its command where it is not found on PATH. Raises ConfigError where it is not installed.
        """
        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        said = printed(args, {**environ, **self.environment}, program=program, timeout_seconds=seconds)
        if isinstance(said, str):
            raise ControllerError(self._transport.shown(said))
        if said.get("success") is not True:
            raise self._refused(args[0] if args else "", as_mapping(said.get("error")))
        return as_mapping(said.get("data"))

    def _value(self, reply: Reply) -> Any:
        value = self._transport.value_of(reply)
        if reply.status != _OK and "error" not in as_mapping(value):
            raise self._transport.lost(refusal_of(reply.status))
        return value

    def _result(self, name: str, reply: Reply) -> Mapping[str, Any]:
        match self._value(reply):
            case {"result": {"ok": True, "data": dict(data)}}:  # pyright: ignore[reportUnknownVariableType]
                return data  # pyright: ignore[reportUnknownVariableType]
            case {"error": {"data": dict(data)}}:  # pyright: ignore[reportUnknownVariableType]
                raise self._refused(name, data)  # pyright: ignore[reportUnknownArgumentType]
            case {"error": {"message": str(message)}} | {"result": {"error": {"message": str(message)}}}:
                raise self._refused(name, {"message": message})
            case _:
                raise self._transport.lost(f"answers with something else than JSON-RPC (status {reply.status})")

    def _refused(self, name: str, data: Mapping[str, Any]) -> AgentDeviceError:
        code, hint = str(data.get("code") or "no code"), self._transport.shown(str(data.get("hint") or ""))
        said = self._transport.shown(f"agent-device {name}: {data.get('message')} ({code})")
        return AgentDeviceError(
            f"{said}\n{hint}" if hint else said, code=code, hint=hint, details=as_mapping(data.get("details"))
        )

    def _artifacts(self, data: Mapping[str, Any]) -> list[tuple[str, bytes]]:
        """Fetch the files that a command has kept; raises AgentDeviceError when there is none."""
        kept = [as_mapping(one) for one in data.get("artifacts") or ()]
        if not kept:
            raise AgentDeviceError("agent-device has kept no file of it: its daemon may be too old", code="NO_ARTIFACT")
        return [(Path(str(one.get("fileName"))).name, self.artifact(str(one.get("artifactId")))) for one in kept]


def _words(target: Target) -> list[str]:
    match target:
        case Node():
            return [f"@{target.ref}"]
        case tuple():
            return [f"{value:g}" for value in target]
        case _:
            return [target]
