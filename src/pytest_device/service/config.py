"""The configuration of the service."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, cast, get_args, get_origin, get_type_hints

from pytest_device.errors import ConfigError
from pytest_device.service.accounts import AccessToken, Account, Accounts, Role
from pytest_device.service.rules import is_uuid
from pytest_device.spec import (
    DURATION_MAX_MINUTES,
    DURATION_MIN_MINUTES,
    REQUESTABLE_SESSION_TYPES,
    Platform,
    SessionType,
)

DEFAULT_MAX_SESSIONS: Final = 64
"""Each takes several hundred megabytes for device and controller: a runaway client must not exhaust the machine."""
_HIGHEST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """One account with one project and one token, and the directories and network address of the service.

    Attributes:
        token: The access token.
        app_id: The ID of the project.
        state_dir: The directory for the stored sessions and the files of running ones.
        cache_dir: The directory for installed programs, shared by all services of this user.
        log_path: The log file; by default warnings are written to standard error.
        host: The address to listen on.
        port: The port to listen on; 0 selects a free one.
        runner: Whether sessions run real programs or simulated devices.
        testing: Whether to add the test interface.
        role: The role of the token's holder on the account.
        simulator_access: Whether the account may create sessions.
        max_duration_minutes: The account's limit, which is also the default duration.
        boot_seconds: The boot time of simulated devices.
        temporary: Whether to remove ``state_dir`` at the end.
        types: The session types whose programs are installed before the service is ready; those of the others are
            installed with their first session.
        requests: Create requests that will be sent; a browser that they need is installed before the service is ready.
        builds_dir: The directory with the builds that sessions may name.
        max_sessions: The maximum number of active sessions.
        real_only: Whether to use no browser as a device.
        require_isolation: Whether to refuse sessions if other users of the machine could reach their programs' ports.
        selenium_manager: Whether to download a browser or chromedriver that this machine lacks.
        avd: The Android virtual device to use and to start.
        simulator: The simulator to use and to start.
        allow_insecure: Features for Appium's option of this name.

    Raises:
        ConfigError: A value is invalid; the message has the value and the rule.
    """

    token: str = field(repr=False)
    app_id: str
    state_dir: Path
    cache_dir: Path
    log_path: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    runner: Literal["real", "simulated"] = "real"
    testing: bool = False
    role: Role = Role.ADMIN
    simulator_access: bool = True
    max_duration_minutes: int = DURATION_MAX_MINUTES
    boot_seconds: float = 0.0
    temporary: bool = False
    types: tuple[SessionType, ...] = (SessionType.APPIUM,)
    requests: tuple[Mapping[str, Any], ...] = ()
    builds_dir: Path | None = None
    max_sessions: int = DEFAULT_MAX_SESSIONS
    real_only: bool = False
    require_isolation: bool = False
    selenium_manager: bool = False
    avd: str | None = None
    simulator: str | None = None
    allow_insecure: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        duration = self.max_duration_minutes
        durations = f"from {DURATION_MIN_MINUTES} to {DURATION_MAX_MINUTES}"
        rules = (
            (bool(self.token.strip()), "token must not be blank"),
            (is_uuid(self.app_id), f"app_id must be a UUID, not {self.app_id!r}"),
            (
                0 <= self.port <= _HIGHEST_PORT,
                f"port must be from 0 to {_HIGHEST_PORT}, not {self.port}",
            ),
            (
                self.max_sessions >= 1,
                f"max_sessions must be at least 1, not {self.max_sessions}",
            ),
            (
                self.runner in {"real", "simulated"},
                f"runner must be real or simulated, not {self.runner!r}",
            ),
            (
                DURATION_MIN_MINUTES <= duration <= DURATION_MAX_MINUTES,
                f"max_duration_minutes must be {durations}, not {duration}",
            ),
        )
        problems = [message for is_kept, message in rules if not is_kept]
        if problems:
            raise ConfigError(*problems)

    def accounts(self) -> Accounts:
        account = Account(
            frozenset({self.app_id}),
            (AccessToken.of(self.token, self.role),),
            self.simulator_access,
            self.max_duration_minutes,
        )
        return Accounts([account])


def parse(line: str, *, cache_dir: Path) -> ServiceConfig:
    """Read the configuration from a line of JSON; ``cache_dir`` is the default for its ``cache_dir``.

    Raises ConfigError with the setting and the rule; values are not shown, since one of them is the token.
    """
    try:
        options = json.loads(line)
    except ValueError as error:
        raise ConfigError(
            "the first line on standard input must be the configuration as JSON"
        ) from error
    if not isinstance(options, dict):
        raise ConfigError("the configuration must be a JSON object")

    settings: dict[str, Any] = {
        name: _read(name, value)
        for name, value in cast("dict[str, object]", options).items()
    }
    missing = {"token", "app_id", "state_dir"} - settings.keys()
    if missing:
        raise ConfigError(f"the configuration lacks {', '.join(sorted(missing))}")

    settings.setdefault("cache_dir", cache_dir)
    return ServiceConfig(**settings)


_IN_JSON: Final[Mapping[object, tuple[type, ...]]] = {
    Path: (str,),
    Role: (str,),
    Literal: (str,),
    float: (int, float),
    tuple: (list,),
    Mapping: (dict,),
}
"""Types in JSON by types of fields, where they differ."""


def json_types(record: type) -> Mapping[str, tuple[type, ...]]:
    """Return the types that each field of a dataclass may have in JSON."""
    return {name: _in_json(hint) for name, hint in get_type_hints(record).items()}


def _in_json(hint: Any) -> tuple[type, ...]:
    """Return the types in JSON for a type hint, for each alternative of a union."""
    alternatives = get_args(hint) if isinstance(hint, UnionType) else (hint,)

    types: list[type] = []
    for alternative in alternatives:
        unparametrized = get_origin(alternative) or alternative
        types += _IN_JSON.get(unparametrized, (alternative,))
    return tuple(types)


_TYPES: Final = json_types(ServiceConfig)


def _read(name: str, value: object) -> Any:
    if name not in _TYPES:
        raise ConfigError(
            f"unknown setting {name!r} in the configuration: the settings are {', '.join(_TYPES)}"
        )
    if type(value) not in _TYPES[name]:  # bool is a subclass of int
        raise ConfigError(
            f"{name} must be of the type {' or '.join(kind.__name__ for kind in _TYPES[name])}"
        )

    match name, value:
        case (("state_dir" | "cache_dir" | "log_path" | "builds_dir"), str()):
            return Path(value)
        case "role", str():
            roles = {role.name.lower(): role for role in Role}
            return _choice("role must be one of", roles, value)
        case "types", list():
            return tuple(
                _choice("types must be some of", _REQUESTABLE_TYPES, session_type)
                for session_type in cast("list[object]", value)
            )
        case "allow_insecure", list():
            return tuple(str(feature) for feature in cast("list[object]", value))
        case "requests", list():
            return tuple(_request(request) for request in cast("list[object]", value))
        case _:
            return value


_REQUESTABLE_TYPES: Final = {str(kind): kind for kind in REQUESTABLE_SESSION_TYPES}


def _choice(rule: str, choices: Mapping[str, object], name: object) -> object:
    """Return what a name stands for. Raises ConfigError, which begins with the rule."""
    if not isinstance(name, str) or name not in choices:
        raise ConfigError(f"{rule} {', '.join(choices)}, not {name!r}")
    return choices[name]


def _request(value: object) -> Mapping[str, Any]:
    request = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if request.get("platform") not in tuple(Platform):
        raise ConfigError(
            f"requests must be create requests, each with a platform, not {value!r}"
        )
    return request
