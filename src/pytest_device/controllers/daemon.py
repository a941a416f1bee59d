"""Calls to the daemon of agent-device, by its own contract: JSON-RPC over HTTP."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote
from uuid import uuid4

from pytest_device.controllers.command_line import printed
from pytest_device.controllers.environment import AGENT_DEVICE_SESSION, environment_of
from pytest_device.controllers.transport import Reply, Transport, as_mapping, refusal_of
from pytest_device.errors import AgentDeviceError, ControllerError
from pytest_device.sessions.models import AgentDeviceConfig, Session

__tracebackhide__ = True  # errors are shown at the line of the test

COMMAND_SECONDS: Final = 180.0
"""The limit of one command: the first one on a device installs its helper there."""

_OK: Final = 200


class Daemon:
    """One named agent-device session: its commands, artifacts and command line program."""

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
        """The apps opened in it."""
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
        """Close the connection; the agent-device session stays open."""
        self._transport.close()

    def health(self) -> Mapping[str, Any]:
        """Return the daemon's status: ``version``, ``rpcProtocolVersion``."""
        return as_mapping(self._value(self._transport.get("/health")))

    def command(
        self,
        name: str,
        *positionals: str,
        is_read: bool = False,
        timeout_seconds: float | None = None,
        artifacts: Mapping[str, str] | None = None,
        **flags: Any,
    ) -> Mapping[str, Any]:
        """Send any command and return its data; flags are spelled as in the daemon's API, None and False are omitted.

        ``is_read`` allows retries. ``artifacts`` names the files to keep for ``artifact``.
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
        """Return a file kept by a command; it can be read once."""
        reply = self._transport.get(f"/artifacts/{quote(artifact_id, safe='')}")
        if reply.status != _OK:
            body = as_mapping(self._value(reply))
            raise AgentDeviceError(self._transport.shown(str(body.get("error"))), code=str(body.get("code", "")))
        return reply.body

    def run(
        self,
        *args: str,
        program: Sequence[str] = (),
        timeout_seconds: float | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Mapping[str, Any]:
        """Run agent-device's command line program on this session and return its data.

        ``program`` is its command if it is not on PATH. Raises ConfigError if it is not installed.
        """
        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        output = printed(args, {**environ, **self.environment}, program=program, timeout_seconds=seconds)
        if isinstance(output, str):
            raise ControllerError(self._transport.shown(output))
        if output.get("success") is not True:
            raise self._refused(args[0] if args else "", as_mapping(output.get("error")))
        return as_mapping(output.get("data"))

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
                raise self._transport.lost(f"returned something other than JSON-RPC (status {reply.status})")

    def _refused(self, name: str, data: Mapping[str, Any]) -> AgentDeviceError:
        code, hint = str(data.get("code") or "no code"), self._transport.shown(str(data.get("hint") or ""))
        message = self._transport.shown(f"agent-device {name}: {data.get('message')} ({code})")
        return AgentDeviceError(
            f"{message}\n{hint}" if hint else message, code=code, hint=hint, details=as_mapping(data.get("details"))
        )

    def _artifacts(self, data: Mapping[str, Any]) -> list[tuple[str, bytes]]:
        """Return the files kept by a command; raise AgentDeviceError if there are none."""
        kept = [as_mapping(one) for one in data.get("artifacts") or ()]
        if not kept:
            raise AgentDeviceError("agent-device kept no artifact: its daemon may be too old", code="NO_ARTIFACT")
        return [(Path(str(one.get("fileName"))).name, self.artifact(str(one.get("artifactId")))) for one in kept]
