"""The local service as a separate process, with simulated devices and fault injection."""

from pathlib import Path

# Loaded before the first run inside this process: pytester forgets the modules that such a run loads, and httpx, which
# is loaded already, would go on with the exceptions of a forgotten one. The others would be loaded anew by each run.
import httpcore as httpcore  # noqa: PLC0414
import pytest

from pytest_device.plugin import collection as collection  # noqa: PLC0414
from pytest_device.plugin import run as run  # noqa: PLC0414
from pytest_device.plugin.provider import drivers as drivers  # noqa: PLC0414
from pytest_device.report import receipt as receipt  # noqa: PLC0414
from pytest_device.testing import FaultyService


@pytest.fixture
def service(
    running_service: FaultyService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> FaultyService:
    """The service that the environment configures, without faults of other tests: a session for each test."""
    running_service.reset()
    monkeypatch.setenv("DEVICE_URL", running_service.url)
    monkeypatch.setenv("DEVICE_TOKEN", running_service.token)
    monkeypatch.setenv("DEVICE_APP_ID", running_service.app_id)
    monkeypatch.setenv("DEVICE_POLL_INTERVAL_SECONDS", "0.05")
    monkeypatch.setenv("DEVICE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("DEVICE_STOP_TIMEOUT_SECONDS", "3")
    monkeypatch.setenv("DEVICE_SHARE", "test")
    monkeypatch.setenv("DEVICE_START_ATTEMPTS", "1")
    # That of this run: names would contain it.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    return running_service
