"""The environment variables that connect a controller's own tools to a session's device."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

from pytest_device.errors import ControllerError
from pytest_device.sessions.models import Session
from pytest_device.sessions.remote_config import (
    AgentDeviceConfig,
    AppiumConfig,
    ArgentConfig,
)

AGENT_DEVICE_SESSION: Final = "AGENT_DEVICE_SESSION"

_NAME_LENGTH: Final = 40


class ControllerEnvironment(dict[str, str]):
    """Environment variables for a subprocess, as in ``env={**os.environ, **variables}``.

    The repr shows no values, because all of them grant access.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self)})"


def environment_of(
    session: Session, *, name: str = "", state_dir: Path | None = None
) -> ControllerEnvironment:
    """Return the variables of a session in progress ("Mapping to controller clients").

    ``name`` is the agent-device session, ``state_dir`` the directory of its command line program's files.
    Raises ControllerError if the session has no controller.
    """
    variables = ControllerEnvironment(_variables(session, name, state_dir))
    if not variables:
        raise ControllerError(
            f"session {session.id} of type {session.type}, {session.status}, has no controller: "
            'environment variables require type="agent-device", "argent" or "appium", and a session in progress'
        )

    return variables


def session_name(*parts: str) -> str:
    """Return a name for an agent-device session: safe characters, limited length, unique for its parts."""
    joined = "-".join(part for part in parts if part)
    safe = re.sub(r"[^A-Za-z0-9]+", "-", joined).strip("-")
    # The end of a test's ID says more than its beginning, and the checksum keeps shortened names apart.
    end = safe[-_NAME_LENGTH:].lstrip("-")
    return f"{end}-{crc32(joined.encode(errors='replace')):08x}".lstrip("-")


def _variables(
    session: Session, name: str, state_dir: Path | None
) -> Iterator[tuple[str, str]]:
    match session.remote_config:
        case AgentDeviceConfig() as config:
            yield "AGENT_DEVICE_DAEMON_BASE_URL", config.agent_device_remote_session_url
            yield (
                "AGENT_DEVICE_DAEMON_AUTH_TOKEN",
                config.agent_device_remote_session_token.get_secret_value(),
            )
            yield "AGENT_DEVICE_PLATFORM", str(session.platform)
            yield "AGENT_DEVICE_NO_UPDATE_NOTIFIER", "1"
            if name:
                yield AGENT_DEVICE_SESSION, name
            if state_dir is not None:
                yield "AGENT_DEVICE_STATE_DIR", str(state_dir)
        case ArgentConfig() as config:
            yield "ARGENT_TOOLS_URL", config.tools_url
            if config.tools_auth_token is not None:
                yield "ARGENT_AUTH_TOKEN", config.tools_auth_token.get_secret_value()
        case AppiumConfig() as config:
            yield "APPIUM_URL", config.appium_url
            yield "APPIUM_CAPS", json.dumps(config.capabilities)
        case _:
            pass
