"""Checks the Redis server that shares ``max_sessions`` between machines."""

from collections.abc import Iterator
from typing import Final

from pytest_device.cli.doctor.finding import Finding, fail, ok
from pytest_device.errors import ConfigError
from pytest_device.plugin.provider.backend import shared_slots, shares_slots
from pytest_device.sessions.reporter import SilentReporter
from pytest_device.settings import Settings

_NAME: Final = "slots"


def check_slots(settings: Settings) -> Iterator[Finding]:
    """Yield a finding on whether the server of ``slots_url`` can keep slots; none if a run would not use it."""
    if not settings.url or not shares_slots(settings):
        return

    source = settings.source("slots_url")
    try:
        store = shared_slots(settings, settings.url, SilentReporter())
        store.check()
    except ConfigError as error:
        yield fail(_NAME, str(error), "see docs/limits.md, What the server needs")
        return

    yield ok(
        _NAME,
        f"the Redis server of {source} limits all machines to {settings.max_sessions} sessions",
    )
