"""Where devices reach the services of this process: on this machine, through a tunnel, or through ``adb reverse``."""

import os
import shutil
import subprocess
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from urllib.parse import urlsplit

import pytest

from pytest_device.errors import ConfigError
from pytest_device.options import Options
from pytest_device.plugin.state import definitions_of
from pytest_device.redact import is_loopback
from pytest_device.sessions.remote_config import AppiumConfig
from pytest_device.settings import Settings
from pytest_device.spec import Platform

if TYPE_CHECKING:
    from pytest_device.serving import Service
    from pytest_device.sessions.models import Session
    from pytest_device.tunnel import Gateway, TunnelFactory

S = TypeVar("S", bound="Service[Any]")

FACTORY: Final = "device_tunnel_factory"
SETTINGS: Final = "device_service_settings"
SERVICES: Final = (
    "device_identity_provider",
    "device_update_service",
    "device_push_endpoint",
)
"""The fixtures of the services with which an app on a device talks."""

_REACHED: Final = pytest.StashKey[dict[str, bool]]()
"""Whether a device reaches a service of this process, by its fixture, for those that were opened."""
_OPEN: Final = pytest.StashKey[dict[str, int]]()
"""The ports on this machine of open services, by their fixtures."""
SIMULATED: Final = "chromium-cdp-"
"""UDID prefix of the local service's devices that are a browser on this machine."""
_ADB_SECONDS: Final = 10.0


def is_remote(settings: Settings) -> bool:
    """Return whether the run's devices are on other machines: their service is, or this one has a public URL."""
    if settings.local or not settings.url:
        return False

    host = urlsplit(settings.url).hostname or ""
    return bool(settings.public_url) or not is_loopback(host)


def unreachable(item: pytest.Item, settings: Settings) -> Iterator[str]:
    """Yield why the devices of a test can't reach a service that it uses, as far as this is known at collection."""
    definitions = definitions_of(item)
    if (
        not is_remote(settings)
        or settings.public_url
        or _is_overridden(FACTORY, definitions)
    ):
        return

    if not _is_overridden(SETTINGS, definitions):
        yield from (
            unreachable_service(service, settings) for service in services_of(item)
        )


def waits_for_tunnel(item: pytest.Item, settings: Settings) -> bool:
    """Return whether it is not known yet that the devices of a test reach its services: they must not boot in advance."""
    if not is_remote(settings):
        return False

    reached = item.config.stash.setdefault(_REACHED, {})
    return not all(reached.get(service, False) for service in services_of(item))


def refuse_unreachable(item: pytest.Item, settings: Settings) -> None:
    """Raise ConfigError if the devices of a test can't reach a service that it uses.

    Opens the tunnel if a service that is not open yet needs it.
    """
    if not is_remote(settings):
        return

    services = services_of(item)
    problems = [
        unreachable_service(service, settings)
        for service in services
        if not _is_reached(item, service)
    ]
    if problems:
        raise ConfigError(*problems)


def _is_reached(item: pytest.Item, service: str) -> bool:
    """Return whether the devices of a test reach a service; raises ConfigError if it needs a tunnel that fails."""
    if service in item.config.stash.setdefault(_OPEN, {}):
        return item.config.stash.setdefault(_REACHED, {})[service]

    return _will_be_reached(item, service)


def _will_be_reached(item: Any, service: str) -> bool:
    """Return the same of a service that is not open yet: a driver that tests share is set up before a test's services.

    Their collection saw only whether the suite overrides a fixture, not what that returns.
    """
    request: pytest.FixtureRequest = item._request  # noqa: SLF001  # a hook has no other
    arguments: Mapping[str, Mapping[str, object]] = request.getfixturevalue(SETTINGS)
    if arguments.get(service, {}).get("public_url"):
        return True

    tunnel: Tunnel = request.getfixturevalue("_device_tunnel")
    tunnel.start()
    return tunnel.factory is not None


def services_of(item: pytest.Item) -> list[str]:
    """Return the services that a test uses, by their fixtures."""
    names: Collection[str] = getattr(item, "fixturenames", ())
    return [name for name in SERVICES if name in names]


def _is_overridden(name: str, definitions: Mapping[str, Any]) -> bool:
    return len(definitions.get(name, ())) > 1


def unreachable_service(service: str, settings: Settings) -> str:
    """Return what keeps the devices of a run from a service of this process, and how to change it."""
    return (
        f"{service} is on this machine, where the devices of {settings.source('url')} can't reach it: set its public "
        f"URL ({Options.public_url.spellings}), override {FACTORY}, or return its public_url from {SETTINGS}"
    )


class Tunnel:
    """The tunnel of this process to its services, which opens for the first service that needs it."""

    def __init__(self, factory: "TunnelFactory | None") -> None:
        self.factory = factory
        self._open = ExitStack()
        self._gateway: Gateway | None = None
        self._url = ""
        self._problems: Sequence[str] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    @contextmanager
    def opened(
        self, make: "Callable[..., S]", arguments: Mapping[str, Any]
    ) -> "Generator[S]":
        """Open a service with its arguments and, unless these name another one, its public URL; raises ConfigError."""
        if self.factory is None or arguments.get("public_url"):
            with make(**arguments) as service:
                yield service

            return

        gateway = self._started(self.factory)
        path = gateway.new_path()
        with (
            make(**{**arguments, "public_url": self._url + path}) as service,
            gateway.serving(path, service.app),
        ):
            yield service

    def start(self) -> None:
        """Open the tunnel if it has a factory and is not open yet; raises ConfigError if it leads nowhere."""
        if self.factory:
            self._started(self.factory)

    def _started(self, factory: "TunnelFactory") -> "Gateway":
        from pytest_device.tunnel import Gateway, opened

        # Each further test would wait for the same URL again.
        if self._problems:
            raise ConfigError(*self._problems)

        if self._gateway:
            return self._gateway

        gateway = Gateway()
        gateway.start()

        with ExitStack() as undo:
            undo.callback(gateway.stop)
            try:
                self._url = undo.enter_context(opened(factory, gateway))
            except ConfigError as error:
                self._problems = error.problems
                raise

            self._open = undo.pop_all()

        self._gateway = gateway
        return gateway


@contextmanager
def noted(
    config: pytest.Config, service: str, provided: "Service[Any]", *, is_reached: bool
) -> Generator[None]:
    """Note for the block that a service is open, and whether devices on other machines reach it."""
    reached = config.stash.setdefault(_REACHED, {})
    ports = config.stash.setdefault(_OPEN, {})
    reached[service] = is_reached
    ports[service] = urlsplit(provided.local_url).port or 0
    try:
        yield
    finally:
        del ports[service]


@contextmanager
def forwarded(
    config: pytest.Config, settings: Settings, sessions: "Iterable[Session]"
) -> Generator[None]:
    """Let Android emulators and devices of the local service reach the open services at the same ports, in the block.

    Raises ConfigError if adb refuses.
    """
    ports = list(config.stash.setdefault(_OPEN, {}).values()) if settings.local else ()
    # Without a service of the run, no device is looked up: that may take a request to the local service.
    serials: list[str] = []
    if ports:
        serials = [serial for session in sessions if (serial := _serial(session))]

    with ExitStack() as undo:
        for serial in serials:
            for port in ports:
                _adb(serial, "reverse", f"tcp:{port}", f"tcp:{port}")
                undo.callback(partial(_remove, serial, port))

        yield


def _serial(session: "Session") -> str:
    """Return the serial number by which adb knows a session's device, empty for any other device."""
    from pytest_device.local import device_udid

    if session.platform != Platform.ANDROID:
        return ""

    details = session.remote_config
    if isinstance(details, AppiumConfig):
        udid = str(details.capabilities.get("appium:udid", ""))
    else:
        udid = device_udid(session.url) if session.url else ""

    return "" if udid.startswith(SIMULATED) else udid


def _remove(serial: str, port: int) -> None:
    # The device may be gone, and its ports with it.
    with suppress(ConfigError):
        _adb(serial, "reverse", "--remove", f"tcp:{port}")


def _adb(serial: str, *arguments: str) -> None:
    """Run a command of adb for a device. Raises ConfigError with what it printed."""
    home = os.environ.get("ANDROID_HOME") or os.environ.get("ANDROID_SDK_ROOT")
    tools = str(Path(home, "platform-tools")) if home else ""

    # Without empty entries, which stand for the working directory.
    path = filter(None, [os.environ.get("PATH", ""), tools])
    program = shutil.which("adb", path=os.pathsep.join(path))
    if program is None:
        raise ConfigError(
            "adb is neither on PATH nor in ANDROID_HOME: the device can't reach the services of the run"
        )

    try:
        subprocess.run(  # noqa: S603  # the Android SDK's
            [program, "-s", serial, *arguments],
            check=True,
            capture_output=True,
            text=True,
            timeout=_ADB_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", "") or error
        raise ConfigError(
            f"adb -s {serial} {' '.join(arguments)} failed: {reason}".strip()
        ) from None
