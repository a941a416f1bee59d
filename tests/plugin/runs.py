"""Options, parts and requirements of runs within tests."""

from importlib.util import find_spec
from typing import Final

import pytest

ON_A_WORKER: Final = (
    pytest.param([], id="alone", marks=pytest.mark.nightly),
    pytest.param(["-n1"], id="distributed"),
)
"""A run on a worker, which does what a run alone does, and whose results also pass the coordinator.

At night also the one alone.
"""

ON_WORKERS: Final = (
    pytest.param([], id="alone", marks=pytest.mark.nightly),
    pytest.param(["-n2"], id="distributed"),
)
"""As above, where it matters that there are two workers."""

NEEDS_SUBTESTS: Final = pytest.mark.skipif(
    pytest.version_tuple < (9,) and not find_spec("pytest_subtests"),
    reason="pytest has no subtests",
)
"""Marks a test whose run has subtests, which pytest before version 9 has from a plugin."""

SERVICE_OF_RUN: Final = """
import os, types
from pytest_device.testing import FaultyService

def service_of_run():
    return FaultyService(types.SimpleNamespace(url=os.environ["DEVICE_URL"], token=os.environ["DEVICE_TOKEN"]))
"""
"""Part of a suite that uses the test interface of its service: it ends a delay, or waits for a request."""
