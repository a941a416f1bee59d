"""A server that replaces a controller."""

from tests.controllers.conftest import controller as controller  # noqa: PLC0414
