"""The environment variables by which a controller's own tools find a session's device."""

import json
from collections.abc import Iterator

from pytest_device.errors import ControllerError
from pytest_device.sessions.models import AgentDeviceConfig, AppiumConfig, ArgentConfig, Session


class ControllerEnvironment(dict[str, str]):
    """Variables to hand to a subprocess: ``env={**os.environ, **it}``. Its repr shows no value: all open the device."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self)})"


def environment_of(session: Session) -> ControllerEnvironment:
    """Return the variables of a session in progress ("Mapping to controller clients").

    Raises ControllerError when the session has no controller.
    """
    variables = ControllerEnvironment(_variables(session))
    if not variables:
        raise ControllerError(
            f"session {session.id} of type {session.type}, {session.status}, has no controller: "
            'environment variables need type="agent-device", "argent" or "appium", and a session in progress'
        )
    return variables


def _variables(session: Session) -> Iterator[tuple[str, str]]:
    match session.remote_config:
        case AgentDeviceConfig() as config:
            yield "AGENT_DEVICE_DAEMON_BASE_URL", config.agent_device_remote_session_url
            yield "AGENT_DEVICE_DAEMON_AUTH_TOKEN", config.agent_device_remote_session_token.get_secret_value()
        case ArgentConfig() as config:
            yield "ARGENT_TOOLS_URL", config.tools_url
            if config.tools_auth_token is not None:
                yield "ARGENT_AUTH_TOKEN", config.tools_auth_token.get_secret_value()
        case AppiumConfig() as config:
            yield "APPIUM_URL", config.appium_url
            yield "APPIUM_CAPS", json.dumps(config.capabilities)
        case _:
            pass
