"""Connection details of a session, by its type."""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, SecretStr
from pydantic.alias_generators import to_camel

from pytest_device.redact import is_loopback
from pytest_device.sessions.partial import nodes_of
from pytest_device.spec import SessionType

_KEY_LENGTH: Final = 8
"""Minimum length of a path that may hold a key: masking a shorter one would damage unrelated texts."""
_CREDENTIAL = re.compile(r"(?i)token|secret|passw|auth|credential|access.?key|api.?key")

WIRE: Final = ConfigDict(
    extra="allow",  # keep fields that the document does not list
    alias_generator=to_camel,
    hide_input_in_errors=True,  # any value may be a credential
)


class RemoteConfig(BaseModel, frozen=True):
    """Connection details of a session in progress. The repr shows no values: each one gives access to the device.

    Attributes:
        web_preview_url: The live preview for a desktop browser, if the service has one.

    >>> RemoteConfig(webPreviewUrl="https://preview.example/1")
    RemoteConfig()
    """

    model_config = WIRE

    web_preview_url: str | None = None

    def __repr_args__(self) -> Sequence[tuple[str | None, Any]]:
        return ()

    def secrets(self) -> Iterator[str]:
        """Yield every value that must not be shown: credentials, and URLs, whose hosts are secret, too."""
        yield from _secrets_in(self.model_dump(mode="python"))


def _secrets_in(values: object) -> Iterator[str]:
    for key, value in nodes_of(values):
        match value:
            case SecretStr():
                yield value.get_secret_value()
            case str() if "://" in value:
                yield from _secrets_of_url(value)
            case str() if _CREDENTIAL.search(key):
                yield value
            case _:
                pass


def _secrets_of_url(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        password = parts.password
    except ValueError:
        yield url
        return

    if password:
        yield from (password, unquote(password))

    yield from (
        value for key, value in parse_qsl(parts.query) if _CREDENTIAL.search(key)
    )
    if not is_loopback(host):
        yield from (url, host)
    elif len(parts.path) >= _KEY_LENGTH:
        yield from (url, parts.path)  # on loopback, a key in the path may give access


class AgentDeviceConfig(RemoteConfig, frozen=True):
    """Connection details of an ``agent-device`` session.

    Attributes:
        agent_device_remote_session_url: The URL of the daemon, a secret.
        agent_device_remote_session_token: The daemon's token.

    >>> config = AgentDeviceConfig(
    ...     agentDeviceRemoteSessionUrl="https://daemon.example", agentDeviceRemoteSessionToken="secret"
    ... )
    >>> config.agent_device_remote_session_token
    SecretStr('**********')
    """

    agent_device_remote_session_url: str
    agent_device_remote_session_token: SecretStr


class ArgentConfig(RemoteConfig, frozen=True):
    """Connection details of an ``argent`` session.

    Attributes:
        tools_url: The URL of the tool server, a secret.
        tools_auth_token: The server's token, None if it needs none.

    >>> ArgentConfig(toolsUrl="https://tools.example").tools_auth_token is None
    True
    """

    tools_url: str
    tools_auth_token: SecretStr | None = None


class AppiumConfig(RemoteConfig, frozen=True):
    """Connection details of an ``appium`` session.

    Attributes:
        appium_url: The URL of the Appium server, a secret.
        capabilities: The capabilities for new drivers. The document doesn't show their contents.

    >>> config = AppiumConfig(appiumUrl="https://appium.example", capabilities={"platformName": "iOS"})
    >>> config.capabilities["platformName"]
    'iOS'
    """

    appium_url: str
    capabilities: dict[str, Any]


class WebPreviewConfig(RemoteConfig, frozen=True):
    """Connection details of a ``web-preview-only`` session.

    >>> WebPreviewConfig(webPreviewUrl="https://preview.example/1").web_preview_url
    'https://preview.example/1'
    """

    web_preview_url: str  # pyright: ignore[reportGeneralTypeIssues]  # optional in the base class, required here


_CONFIG_OF_TYPE: Final[Mapping[str, type[RemoteConfig]]] = {
    SessionType.AGENT_DEVICE: AgentDeviceConfig,
    SessionType.ARGENT: ArgentConfig,
    SessionType.APPIUM: AppiumConfig,
    SessionType.WEB_PREVIEW_ONLY: WebPreviewConfig,
}


def config_class(kind: object, details: object) -> type[RemoteConfig]:
    """Return the class for connection details, chosen by their fields for a type that the document lacks, or none."""
    is_listed = kind in list(SessionType)
    if is_listed or not isinstance(details, dict):
        return _CONFIG_OF_TYPE.get(str(kind), RemoteConfig)

    return next(
        (
            config
            for config in _CONFIG_OF_TYPE.values()
            if _required(config) <= details.keys()
        ),
        RemoteConfig,
    )


def _required(kind: type[RemoteConfig]) -> AbstractSet[str]:
    return {
        to_camel(name)
        for name, field in kind.model_fields.items()
        if field.is_required()
    }


def without_member(kind: object, details: object, place: Sequence[int | str]) -> object:
    """Return connection details without an invalid field, None if that field is required."""
    if not isinstance(details, dict):
        return None

    members = cast("dict[str, object]", details)
    if not place or place[0] in _required(config_class(kind, members)):
        return None

    return {name: value for name, value in members.items() if name != place[0]}
