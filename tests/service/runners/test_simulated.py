"""The controllers of simulated sessions: alive, and able to do nothing else."""

from contextlib import closing

import pytest

from tests.fakes.local_service import BOOT_SECONDS, InProcessService, data


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
def test_without_an_address_the_details_point_to_a_host_that_never_resolves(
    service: InProcessService, session_type: str, field: str
) -> None:
    session_id = service.created(type=session_type)
    service.clock.sleep(BOOT_SECONDS)

    remote = data(service.get(session_id))["remoteConfig"]

    assert remote[field] == f"https://{session_id}.simulated.invalid"


def test_the_boot_time_can_depend_on_the_request() -> None:
    seconds = {"ios": 3.0, "android": 5.0}
    with closing(
        InProcessService(boot_seconds=lambda body: seconds[body["platform"]])
    ) as service:
        ios, android = (service.created(platform=platform) for platform in seconds)
        service.clock.sleep(4.0)

        assert data(service.get(ios))["status"] == "in-progress"
        assert data(service.get(android))["status"] == "new"
