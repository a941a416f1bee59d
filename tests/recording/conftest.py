"""A server that replaces a controller."""

from tests.controllers.conftest import far as far  # noqa: PLC0414
