"""``pytest-device app``: inspect and check the app under test."""

from typing import Final

from pytest_device.cli.app.project import BUNDLE, CHECK, ENV, RUNTIME_VERSION, SHOW
from pytest_device.cli.app.routes import ROUTES
from pytest_device.cli.command import group

COMMANDS: Final = (CHECK, SHOW, ENV, RUNTIME_VERSION, ROUTES, BUNDLE)

APP: Final = group(
    "app",
    COMMANDS,
    summary="read and check the app under test",
    description="Read and check the project of the app under test, before a device is paid for.",
    # The first one of each command.
    examples=dict(next(iter(command.examples.items())) for command in COMMANDS),
    statuses={
        0: "success",
        1: "findings that are errors",
        2: "usage error, or a project that cannot be read",
    },
)
