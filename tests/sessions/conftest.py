"""A client over the local service's application, in this process, on one clock."""

import os
import signal
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from pytest_device import DeviceClient
from tests.fakes.local_service import InProcessService
from tests.fakes.network import FakeNetwork
from tests.fakes.reporter import RecordingReporter


@pytest.fixture
def network() -> Generator[FakeNetwork]:
    service = InProcessService(now=1_800_000_000.0, boot_seconds=12, testing=False)
    with closing(service):
        yield FakeNetwork(service)


@pytest.fixture
def client(network: FakeNetwork) -> DeviceClient:
    return network.client()


@pytest.fixture
def reporter() -> RecordingReporter:
    return RecordingReporter()


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Something in the search path by which the reapers of this test are known."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}")
    return str(tmp_path)


@pytest.fixture(autouse=True)
def _interruptible() -> Generator[None]:
    """Let SIGINT interrupt a test, also where the tests are a shell's background job, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
