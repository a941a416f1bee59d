"""Calls agent-device's daemon by its own protocol: JSON-RPC over HTTP."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pytest_device.controllers.client import (
    OK,
    Client,
    Reply,
    as_mapping,
    config_of,
    refusal_of,
)
from pytest_device.controllers.environment import AGENT_DEVICE_SESSION
from pytest_device.errors import AgentDeviceError, ConfigError, ControllerError
from pytest_device.sessions.models import Session
from pytest_device.sessions.remote_config import AgentDeviceConfig

if TYPE_CHECKING:
    from pytest_device.trace.recorder import DeviceRecorder

__tracebackhide__ = True  # errors are shown at the line of the test

_MAX_OUTPUT: Final = 1000
"""Maximum number of characters to show of a failed program's output, the last ones."""


class Daemon(Client):
    """One named agent-device session: its commands, artifacts and command line program."""

    controller = "agent-device daemon"

    @cached_property
    def name(self) -> str:
        """The agent-device session."""
        return self.environment.get(AGENT_DEVICE_SESSION, "default")

    @cached_property
    def apps(self) -> set[str]:
        """The apps that were opened in it."""
        return set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _access(self, session: Session) -> tuple[str, str]:
        config = config_of(session, AgentDeviceConfig, self.controller)
        return (
            config.agent_device_remote_session_url,
            config.agent_device_remote_session_token.get_secret_value(),
        )

    def health(self) -> Mapping[str, Any]:
        """Return the daemon's status: ``version``, ``rpcProtocolVersion``.

        >>> device.health()["rpcProtocolVersion"]
        2
        """
        return as_mapping(self._value(self._get("/health")))

    def command(
        self,
        name: str,
        *positionals: str,
        is_read: bool = False,
        timeout_seconds: float | None = None,
        artifacts: Mapping[str, str] | None = None,
        **flags: Any,
    ) -> Mapping[str, Any]:
        """Send any command of the daemon, for which this class may have no method.

        Args:
            name: The command.
            *positionals: Its arguments.
            is_read: Whether it changes nothing, so that it can be retried without a response.
            timeout_seconds: The maximum duration of the call; that of the client by default.
            artifacts: Files of the daemon to keep for ``artifact``: the argument that names each, and its name.
            **flags: Its flags, spelled as in the daemon's API; None and False are omitted.

        Returns:
            The daemon's data.

        Raises:
            AgentDeviceError: agent-device refused the command.

        >>> device.command("get", "text", 'label="Add"', is_read=True)["text"]
        'Add'
        """

        def send() -> Mapping[str, Any]:
            return self._sent(
                name, positionals, flags, is_read, timeout_seconds, artifacts
            )

        recorder = self._recorder_in_use()
        if recorder is None:
            return send()

        return self._recorded(recorder, name, positionals, flags, send)

    def _recorded(
        self,
        recorder: "DeviceRecorder",
        name: str,
        positionals: Sequence[str],
        flags: Mapping[str, Any],
        send: Callable[[], Mapping[str, Any]],
    ) -> Mapping[str, Any]:
        """Send a command and record it, with what the device shows afterwards if that is wanted."""
        from pytest_device.trace.agent_device import command_of
        from pytest_device.trace.screen_parsers import from_response

        command = command_of(
            name,
            positionals,
            flags,
            masks_all=recorder.recorder.typed_text == "all",
            attributes_of=self._attributes_of,
        )
        data = recorder.record(command, send)
        if name == "snapshot":
            recorder.screen(from_response(data))
        if command.is_acting and recorder.takes_pictures:
            self._show(recorder)

        return data

    def _attributes_of(self, target: Sequence[str]) -> Mapping[str, Any]:
        """Return the attributes of a target without recording the question; empty if there are none."""
        try:
            data = self._sent("get", ("attrs", *target), {}, True, None, None)
        except ControllerError:
            return {}
        return as_mapping(data.get("node"))

    def _show(self, recorder: "DeviceRecorder") -> None:
        """Record what the device shows now; a failure does not matter to the test."""

    def _sent(
        self,
        name: str,
        positionals: Sequence[str],
        flags: Mapping[str, Any],
        is_read: bool,  # noqa: FBT001
        timeout_seconds: float | None,
        artifacts: Mapping[str, str] | None,
    ) -> Mapping[str, Any]:
        request_id = uuid4().hex[:16]
        set_flags = {
            flag: value
            for flag, value in flags.items()
            if value is not None and value is not False
        }
        meta: dict[str, Any] = {"requestId": request_id, "sessionExplicit": True}
        if artifacts:
            meta["clientArtifactPaths"] = dict(artifacts)

        call = {
            "jsonrpc": "2.0",
            "id": request_id,
            "method": "agent_device.command",
            "params": {
                "session": self.name,
                "command": name,
                "positionals": list(positionals),
                "flags": {"platform": self.platform, **set_flags},
                "meta": meta,
            },
        }
        reply = self._post(
            "/rpc", call, is_read=is_read, timeout_seconds=timeout_seconds
        )
        return self._result(name, reply)

    def run(
        self,
        *args: str,
        program: Sequence[str] = (),
        timeout_seconds: float | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> Mapping[str, Any]:
        """Run agent-device's command line program on this session.

        Args:
            *args: Its arguments, without ``--json``.
            program: Its command, if it is not on PATH.
            timeout_seconds: The maximum duration of the program; that of the client by default.
            environ: Its environment, to which the session's URL and token are added.

        Returns:
            The program's data.

        Raises:
            ConfigError: The program is not installed.
            AgentDeviceError: It refused the command.

        >>> device.run("get", "text", 'label="Add"', program=["no-such-program"])
        Traceback (most recent call last):
        pytest_device.ConfigError: agent-device cannot be run: ...
        """
        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        variables = {**environ, **self.environment}
        # Only the command: its arguments may be secrets.
        subcommand = args[0] if args else ""
        title = f"agent-device {subcommand}"

        try:
            finished = subprocess.run(  # noqa: S603  # no shell reads it
                [*(program or _on_path(variables)), *args, "--json"],
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=seconds,
                check=False,
            )
        except OSError as error:
            raise ConfigError(
                f"agent-device cannot be run: {error.strerror or error}"
            ) from None
        except subprocess.TimeoutExpired:
            raise ControllerError(
                self._shown(f"{title} took longer than {seconds:g} s")
            ) from None

        try:
            output = as_mapping(json.loads(finished.stdout))
        except ValueError:
            printed = (finished.stderr or finished.stdout).strip()[-_MAX_OUTPUT:]
            message = f"{title} exited with status {finished.returncode}: {printed}"
            raise ControllerError(self._shown(message)) from None

        if output.get("success") is not True:
            raise self._refused(subcommand, as_mapping(output.get("error")))
        return as_mapping(output.get("data"))

    def _value(self, reply: Reply) -> Any:
        value = self._value_of(reply)
        if reply.status != OK and "error" not in as_mapping(value):
            raise self._lost(refusal_of(reply.status))
        return value

    def _no_artifact(self, reply: Mapping[str, Any], status: int) -> ControllerError:
        if "error" not in reply:
            return self._lost(refusal_of(status))
        return AgentDeviceError(
            self._shown(str(reply["error"])), code=str(reply.get("code", ""))
        )

    def _result(self, name: str, reply: Reply) -> Mapping[str, Any]:
        match self._value(reply):
            case {"result": {"ok": True, "data": dict(data)}}:  # pyright: ignore[reportUnknownVariableType]
                return data  # pyright: ignore[reportUnknownVariableType]
            case {"error": {"data": dict(data), **rest}}:  # pyright: ignore[reportUnknownVariableType]
                raise self._refused(name, {"message": rest.get("message"), **data})  # pyright: ignore[reportUnknownMemberType]
            case {"error": {"message": str(message)}} | {
                "result": {"error": {"message": str(message)}}
            }:
                raise self._refused(name, {"message": message})
            case _:
                raise self._lost(
                    f"returned something other than JSON-RPC (status {reply.status})"
                )

    def _refused(self, name: str, data: Mapping[str, Any]) -> AgentDeviceError:
        code = str(data.get("code") or "no code")
        hint = self._shown(str(data.get("hint") or ""))
        message = self._shown(f"agent-device {name}: {data.get('message')} ({code})")

        return AgentDeviceError(
            f"{message}\n{hint}" if hint else message,
            code=code,
            hint=hint,
            details=as_mapping(data.get("details")),
        )

    def _artifacts(self, data: Mapping[str, Any]) -> list[tuple[str, bytes]]:
        """Return the files kept by a command; raise AgentDeviceError if there are none."""
        files: list[tuple[str, bytes]] = []
        for listed in data.get("artifacts") or ():
            artifact = as_mapping(listed)
            name = Path(str(artifact.get("fileName"))).name  # without a directory
            files.append((name, self.artifact(str(artifact.get("artifactId")))))

        if not files:
            raise AgentDeviceError(
                "agent-device kept no artifact: its daemon may be too old",
                code="NO_ARTIFACT",
            )
        return files


def _on_path(environ: Mapping[str, str]) -> Sequence[str]:
    program = which("agent-device", path=environ.get("PATH"))
    if program is None:
        raise ConfigError(
            "agent-device is not on PATH: npm install --global agent-device, or pass run(..., program=[...])"
        )
    return [program]
