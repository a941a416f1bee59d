"""The backend of a service: runs sessions on real programs or simulated devices, and publishes their routes."""

import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.routing import BaseRoute

from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.service.api import Refuses
from pytest_device.service.config import ServiceConfig
from pytest_device.service.keys import Keys
from pytest_device.service.logs import LOGGER, Log
from pytest_device.service.runners.base import Runner
from pytest_device.service.runners.simulated import SimulatedRunner
from pytest_device.service.sessions import Sessions


@dataclass(frozen=True, slots=True)
class Backend:
    """A runner, its sessions' routes, the check before a session is created, and the installation of programs.

    ``prepare`` reports progress, and raises ConfigError with the cause and the fix.
    """

    runner: Runner
    routes: Callable[[Sessions], Sequence[BaseRoute]]
    refuses: Refuses | None
    prepare: Callable[[Log], Awaitable[None]]


def check_system(config: ServiceConfig) -> None:
    """Raise ConfigError if this system cannot run the programs of sessions."""
    if config.runner != "simulated" and not SYSTEM.has_local_service:
        raise ConfigError(f"{SYSTEM.support.limits}: set DEVICE_URL")


async def backend(config: ServiceConfig, url: str, stack: AsyncExitStack) -> Backend:
    """Return the backend for a configuration; ``stack`` closes it. ``url`` is the service's own URL."""
    if config.runner == "simulated":
        return _simulated(config, url)
    return await _programs(config, url, stack)


def _simulated(config: ServiceConfig, url: str) -> Backend:
    async def install_nothing(_progress: Log) -> None: ...

    runner = SimulatedRunner(
        clock=time.time, boot_seconds=config.boot_seconds, base_url=url
    )
    return Backend(runner, lambda _sessions: runner.routes(), None, install_nothing)


async def _programs(config: ServiceConfig, url: str, stack: AsyncExitStack) -> Backend:
    # Imported here: a service with simulated devices starts without them.
    from pytest_device.service import device_routes, gateway, preview, push_routes
    from pytest_device.service.devices.availability import DevicePreference
    from pytest_device.service.programs.isolation import Isolation
    from pytest_device.service.runners.programs import ProgramsRunner
    from pytest_device.service.runners.resources import Directories, Resources

    keys = Keys(url)
    directories = Directories(
        config.state_dir, config.cache_dir, builds=config.builds_dir
    )
    preference = DevicePreference(
        config.real_only, config.avd, config.simulator, config.selenium_manager
    )
    isolation = Isolation(
        urlsplit(url).hostname or "", required=config.require_isolation
    )
    resources = Resources(
        keys,
        directories,
        os.environ,
        LOGGER.info,
        preference=preference,
        allow_insecure=config.allow_insecure,
        isolation=isolation,
    )

    runner = ProgramsRunner(resources, log=LOGGER.info)
    connections = await stack.enter_async_context(gateway.connections())
    # Closed in reverse order: the programs end before the connections to them.
    stack.push_async_callback(runner.close)
    runner.end_leftovers()

    def routes(sessions: Sessions) -> Sequence[BaseRoute]:
        return (
            *gateway.routes(runner, keys, connections),
            *device_routes.routes(
                runner, keys, directory=directories.apps, note=runner.note
            ),
            push_routes.route(runner, keys),
            *preview.routes(sessions, keys),
        )

    async def prepare(progress: Log) -> None:
        await runner.prepare(progress, config.types, config.requests)

    return Backend(runner, routes, resources.devices.refusal, prepare)
