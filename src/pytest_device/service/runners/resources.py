"""The shared resources of a service's sessions: directories, environment, guard, toolchains and devices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_device.service.devices.availability import DevicePreference
from pytest_device.service.devices.kinds import Devices
from pytest_device.service.keys import Keys
from pytest_device.service.logs import Log
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.isolation import Isolation
from pytest_device.service.programs.toolchain import Toolbox

_TOOLS: Final = frozenset(
    (
        "PATH",
        "TZ",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "USER",
        "LOGNAME",
        "ANDROID_HOME",
        "ANDROID_SDK_ROOT",
        "ANDROID_USER_HOME",
        "ANDROID_AVD_HOME",
        "ANDROID_ADB_SERVER_PORT",
        "JAVA_HOME",
        "APPIUM_HOME",
        "DEVELOPER_DIR",
    )
)
"""Where tools are and how they talk; not HOME: each session has its own, except for real devices."""
# Appium itself downloads a session's app if that is a URL.
_NETWORK: Final = frozenset(
    ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS")
)
_LOOPBACK_HOSTS: Final = "127.0.0.1,localhost,::1"
"""Hosts that a session's programs reach without a proxy."""


@dataclass(frozen=True, slots=True)
class Directories:
    """The directories of the runner.

    Attributes:
        state: Has a directory for each session, by which its leftovers are found. Only one service at a time may use
            it, which the caller ensures.
        cache: The installed programs, shared by all of a user's services.
        home: The user's home directory, which real devices need.
        builds: The builds that sessions may name.
    """

    state: Path
    cache: Path
    home: Path = field(default_factory=Path.home)
    builds: Path | None = None

    @property
    def programs(self) -> Path:
        """The directory with one workspace per session."""
        return self.state / "programs"

    def apps(self, session_id: str) -> Path:
        """Return the directory that a session's apps are unpacked to."""
        return self.programs / session_id / "app"


class Resources:
    """The shared resources, for a user's environment; the sessions' programs get a part of it, ``self.environ``.

    ``allow_insecure`` lists features for Appium's option of this name.
    """

    def __init__(
        self,
        keys: Keys,
        directories: Directories,
        environ: Mapping[str, str],
        log: Log,
        *,
        preference: DevicePreference = DevicePreference(),  # noqa: B008  # frozen
        allow_insecure: Sequence[str] = (),
        isolation: Isolation = Isolation(),  # noqa: B008  # frozen
    ) -> None:
        self.keys = keys
        self.directories = directories
        self.allow_insecure = allow_insecure
        self.isolation = isolation
        self.environ = for_sessions(environ)
        self.guard = Guard(environ=environ, log=log)
        self.toolbox = Toolbox(self.guard, environ, directories.cache)
        self.devices = Devices(
            environ=self.environ,
            home=directories.home,
            guard=self.guard,
            log=log,
            toolbox=self.toolbox,
            preference=preference,
            isolation=isolation,
        )


def for_sessions(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a session's programs need: paths of tools, language, network. No tokens."""
    passed_on = {
        name: value
        for name, value in environ.items()
        if name.upper() in _TOOLS or name.upper() in _NETWORK
    }

    # Some programs read one spelling, some the other.
    own = [environ[name] for name in ("NO_PROXY", "no_proxy") if environ.get(name)]
    unproxied = ",".join([*dict.fromkeys(own), _LOOPBACK_HOSTS])
    return {**passed_on, "NO_PROXY": unproxied, "no_proxy": unproxied}
