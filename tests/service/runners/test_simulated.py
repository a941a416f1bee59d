"""The controllers of simulated sessions: alive, and able to do nothing else.

What no service is configured with, such as a boot time for each platform, is asked of the runner: benchmarks use it.
"""

import pytest

from pytest_device.service.runners.base import Booting, Running
from pytest_device.service.runners.simulated import SimulatedRunner
from pytest_device.testing import FakeClock
from tests.fakes.local_service import InProcessService, data


def test_a_simulated_controller_answers_the_health_check_of_each_type(
    service: InProcessService,
) -> None:
    session_id = service.created()
    said = {
        question: service.send(
            "GET", f"/simulated/{session_id}/{question}", token=None
        ).json()
        for question in ("health", "tools", "status")
    }

    assert (said["health"], said["tools"]) == ({"ok": True}, {"tools": []})
    assert said["status"]["value"]["ready"] is True


def test_the_controller_of_an_ended_session_does_not_respond(
    service: InProcessService,
) -> None:
    session_id = str(data(service.stop(service.created()))["id"])

    assert (
        service.send("GET", f"/simulated/{session_id}/health", token=None).status_code
        == 404
    )


def test_a_simulated_controller_does_nothing_else(service: InProcessService) -> None:
    assert (
        service.send(
            "GET", f"/simulated/{service.created()}/rpc", token=None
        ).status_code
        == 404
    )


@pytest.mark.parametrize(
    ("session_type", "field"),
    [
        ("agent-device", "agentDeviceRemoteSessionUrl"),
        ("argent", "toolsUrl"),
        ("appium", "appiumUrl"),
    ],
)
@pytest.mark.parametrize(
    ("base_url", "address"),
    [
        (None, "https://one.simulated.invalid"),
        ("http://here", "http://here/simulated/one"),
    ],
)
def test_the_connection_details_point_to_its_own_service(
    session_type: str, field: str, base_url: str | None, address: str
) -> None:
    runner = SimulatedRunner(clock=lambda: 0.0, base_url=base_url)
    runner.start("one", {"platform": "ios", "type": session_type})
    boot = runner.record("one").boot

    assert isinstance(boot, Running)
    assert boot.remote_config[field] == address


def test_the_boot_time_can_depend_on_the_request() -> None:
    clock = FakeClock()
    runner = SimulatedRunner(
        clock=clock,
        boot_seconds=lambda body: {"ios": 3.0, "android": 5.0}[body["platform"]],
    )
    for platform in ("ios", "android"):
        runner.start(platform, {"platform": platform})

    clock.sleep(4.0)

    assert isinstance(runner.record("ios").boot, Running)
    assert isinstance(runner.record("android").boot, Booting)
