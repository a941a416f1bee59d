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
    Platform,
    SessionType,
)

DEFAULT_MAX_SESSIONS: Final = 64
"""Each takes several hundred megabytes for device and controller: a runaway client must not exhaust the machine."""
_HIGHEST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """One account with one project and one token, and the directories and network address of the service.

    ``port`` 0 selects a free one. ``testing`` adds the test interface. ``role``, ``simulator_access`` and
    ``max_duration_minutes`` restrict the account. ``boot_seconds`` is the boot time of simulated devices. Programs for
    ``types`` are installed before the service is ready, those for other session types with their first session.
    ``requests`` are create requests that will be sent: a browser that they need is installed before the service is
    ready. ``builds_dir`` has the builds that sessions may name. ``max_sessions`` limits the active sessions.
    ``real_only`` uses no browser as a device; ``avd`` and ``simulator`` name the devices to use and to start.
    ``require_isolation`` refuses sessions if other users of the machine could reach ports of their programs.
    ``selenium_manager`` lets it download a browser or chromedriver that this machine lacks.
    ``allow_insecure`` lists features for Appium's option of this name. ``temporary`` removes ``state_dir`` at the end.
    Raises ConfigError with the value and the rule.
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
        problems = [message for kept, message in rules if not kept]
        if problems:
            raise ConfigError(*problems)

    def accounts(self) -> Accounts:
        token = AccessToken.of(self.token, self.role)
        app_ids = frozenset({self.app_id})
        return Accounts(
            [
                Account(
                    app_ids, (token,), self.simulator_access, self.max_duration_minutes
                )
            ]
        )


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
    if missing := {"token", "app_id", "state_dir"} - settings.keys():
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
    return {
        name: tuple(
            in_json
            for one in (get_args(hint) if isinstance(hint, UnionType) else (hint,))
            for in_json in _IN_JSON.get(get_origin(one) or one, (one,))
        )
        for name, hint in get_type_hints(record).items()
    }


_KINDS: Final = json_types(ServiceConfig)


def _read(name: str, value: object) -> Any:
    if name not in _KINDS:
        raise ConfigError(
            f"unknown setting {name!r} in the configuration: the settings are {', '.join(_KINDS)}"
        )
    if type(value) not in _KINDS[name]:  # bool is a subclass of int
        raise ConfigError(
            f"{name} must be of the type {' or '.join(kind.__name__ for kind in _KINDS[name])}"
        )
    match name, value:
        case (("state_dir" | "cache_dir" | "log_path" | "builds_dir"), str()):
            return Path(value)
        case "role", str():
            return _named(
                "role must be one of", {role.name.lower(): role for role in Role}, value
            )
        case "types", list():
            types = {
                str(one): one for one in SessionType if one is not SessionType.SERVE_SIM
            }
            return tuple(
                _named("types must be some of", types, one)
                for one in cast("list[object]", value)
            )
        case "allow_insecure", list():
            return tuple(map(str, cast("list[object]", value)))
        case "requests", list():
            return tuple(_request(one) for one in cast("list[object]", value))
        case _:
            return value


def _named(rule: str, choices: Mapping[str, object], name: object) -> object:
    if name not in choices:
        raise ConfigError(f"{rule} {', '.join(choices)}, not {name!r}")
    return choices[str(name)]


def _request(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict) or cast("dict[str, Any]", value).get(
        "platform"
    ) not in set(Platform):
        raise ConfigError(
            f"requests must be create requests, each with a platform, not {value!r}"
        )
    return cast("dict[str, Any]", value)
