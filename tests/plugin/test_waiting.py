"""A run waits for the service's capacity, reports it, and ends with the reason if there is none."""

import pytest

from pytest_device.testing import FaultyService

ONE = """
import pytest

@pytest.mark.device(platform="android", type="agent-device")
def test_one(device_session):
    assert device_session.status == "in-progress"
"""
FULL = '{"message": "all devices are in use"}'


@pytest.mark.parametrize("status", [pytest.param(429, marks=pytest.mark.nightly), 503])
def test_a_wait_for_capacity_is_reported(
    pytester: pytest.Pytester, service: FaultyService, status: int
) -> None:
    service.add_fault(
        "create",
        "reply",
        status=status,
        body=FULL,
        headers={"Retry-After": "0"},
        times=2,
    )
    pytester.makepyfile(ONE)

    # A wait of less than five seconds has no line without.
    result = pytester.runpytest("-v")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            f"*device android agent-device: after * s: the service has no capacity ({status}), retrying in 0 s",
            "*devices: 1 created, 1 stopped (confirmed);*",
        ]
    )
    assert [
        status for operation, status in service.requests() if operation == "create"
    ] == [status, status, 200]


@pytest.mark.parametrize(
    ("conftest", "options", "limit"),
    [
        (
            "",
            ["--device-wait-timeout-seconds=0.3"],
            "--device-wait-timeout-seconds=0.3",
        ),
        (
            """
            import dataclasses, pytest

            @pytest.fixture
            def device_wait_policy(device_wait_policy):
                return dataclasses.replace(device_wait_policy, timeout_seconds=0.2)
            """,
            [],
            "timeout_seconds=0.2 of device_wait_policy",
        ),
    ],
    ids=["option", "fixture"],
)
def test_a_service_that_never_has_capacity_is_reported_with_its_last_response(
    pytester: pytest.Pytester,
    service: FaultyService,
    conftest: str,
    options: list[str],
    limit: str,
) -> None:
    service.add_fault(
        "create",
        "reply",
        status=429,
        body=FULL,
        headers={"Retry-After": "0"},
        times=None,
    )
    pytester.makeconftest(conftest)
    pytester.makepyfile(ONE)

    result = pytester.runpytest(*options)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "infrastructure: the service had no capacity for * s. Last response: create: *in use*",
            f"{limit}: increase it, or lower --device-max-sessions to what the account allows",
        ]
    )
    result.stdout.no_fnmatch_line("*1 unknown*")
    assert service.sessions() == []
