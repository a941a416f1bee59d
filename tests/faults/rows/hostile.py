"""Rows: a service with hostile responses."""

from typing import Final

from pytest_device.plugin.output.exit_status import INFRASTRUCTURE_ONLY
from tests.faults.acts import service_fault, trick
from tests.faults.network import (
    endless_chunks,
    endless_header,
    huge,
    never,
    saying,
    swallowed,
    trickling,
)
from tests.faults.row import Promise, Row
from tests.faults.suites import PASSES

_LOST: Final = "1 unknown"
_STRANGER: Final = "5f3a0c52-0d7e-4b6e-9d1f-6f2b7f0f9a11"
_DEEP: Final = b'{"data": ' * 50_000
_REDIRECT: Final = saying(
    "307 Temporary Redirect",
    b"",
    b"Location: /v2/device-run-sessions/elsewhere",
    carried_out=False,
)

ROWS: Final = (
    Row(
        "create returns 10 MB",
        "Not read completely; bounded and reported.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", huge),
        reported=_LOST,
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "get returns 10 MB",
        "Not read completely; the session is stopped.",
        PASSES,
        network=True,
        arm=trick("get", huge, times=100),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "stop returns 10 MB",
        "Not read completely; retried.",
        PASSES,
        network=True,
        arm=trick("stop", huge),
    ),
    Row(
        "create redirects forever",
        "Not followed: the token is never sent elsewhere.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", _REDIRECT, times=100),
        reported="infrastructure: create",
        sessions=0,
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "get redirects forever",
        "Not followed; the session is stopped.",
        PASSES,
        network=True,
        arm=trick("get", _REDIRECT, times=100),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "stop redirects twice",
        "Not followed; retried.",
        PASSES,
        network=True,
        arm=trick("stop", _REDIRECT, times=2),
    ),
    Row(
        "create returns another session's ID",
        "The real ID is unknown: bounded and reported.",
        PASSES,
        promise=Promise.BOUNDED,
        arm=service_fault("create", "change", fields={"id": _STRANGER}),
        settings={
            "DEVICE_WAIT_TIMEOUT_SECONDS": "2",
            "DEVICE_STOP_TIMEOUT_SECONDS": "2",
        },
        reported="1 unknown|NOT CONFIRMED",
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "create returns an invalid ID",
        "The same.",
        PASSES,
        promise=Promise.BOUNDED,
        arm=service_fault("create", "change", fields={"id": "../../v2/me"}),
        reported=_LOST,
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "create returns another platform and type",
        "Not used, and stopped.",
        PASSES,
        arm=service_fault(
            "create", "change", fields={"platform": "ios", "type": "argent"}
        ),
        reported=r"1 stopped \(confirmed\)",
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "get returns another session's ID",
        "Rejected; the session is stopped.",
        PASSES,
        arm=service_fault("get", "change", fields={"id": _STRANGER}, times=None),
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "stop returns another session's ID, twice",
        "Rejected and retried.",
        PASSES,
        arm=service_fault("stop", "change", fields={"id": _STRANGER}, times=2),
    ),
    Row(
        "negative durations and impossible times",
        "Rejected; the session is stopped.",
        PASSES,
        arm=service_fault(
            "create",
            "change",
            fields={
                "maxDurationMinutes": -5,
                "maxIdleTimeMinutes": -1,
                "createdAt": "0000-99-99",
            },
        ),
        reported=r"1 stopped \(confirmed\)",
    ),
    Row(
        "the service's clock is a century ahead",
        "The plugin doesn't depend on it.",
        PASSES,
        arm=service_fault(
            "stop",
            "change",
            fields={
                "startedAt": "1926-01-01T00:00:00Z",
                "finishedAt": "2126-01-01T00:00:00Z",
            },
        ),
        status=0,
        reported=r"1 stopped \(confirmed\); at most \d+ s of device time",
    ),
    Row(
        "create returns an endless body",
        "Cut off; bounded and reported.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", endless_chunks),
        reported=_LOST,
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "get returns an endless body",
        "Cut off; the session is stopped.",
        PASSES,
        network=True,
        arm=trick("get", endless_chunks, times=100),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "stop returns an endless body",
        "Cut off and retried.",
        PASSES,
        network=True,
        arm=trick("stop", endless_chunks),
    ),
    Row(
        "create returns endless headers",
        "Cut off; bounded and reported.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", endless_header),
        reported=_LOST,
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "get returns endless headers",
        "Cut off; the session is stopped.",
        PASSES,
        network=True,
        arm=trick("get", endless_header, times=100),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "create responds byte by byte",
        "Aborted after a timeout; bounded and reported.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", trickling),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        reported=_LOST,
        status=INFRASTRUCTURE_ONLY,
        limit=90,
    ),
    Row(
        "get responds byte by byte",
        "Aborted after a timeout; the session is stopped.",
        PASSES,
        network=True,
        arm=trick("get", trickling, times=100),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        status=INFRASTRUCTURE_ONLY,
        limit=90,
    ),
    Row(
        "stop never responds, although it was carried out",
        "The session is looked up meanwhile, which confirms its end within seconds.",
        PASSES,
        network=True,
        settings={"DEVICE_STOP_TIMEOUT_SECONDS": "90"},
        arm=trick("stop", never, times=9),
        limit=10,
        status=0,
    ),
    Row(
        "stop never responds, nor was it carried out",
        "Aborted after 15 s and retried.",
        PASSES,
        network=True,
        settings={"DEVICE_STOP_TIMEOUT_SECONDS": "90"},
        arm=trick("stop", swallowed),
        limit=12,
        status=0,
    ),
    Row(
        "stop responds byte by byte",
        "Aborted after a timeout and retried.",
        PASSES,
        network=True,
        settings={"DEVICE_STOP_TIMEOUT_SECONDS": "90"},
        arm=trick("stop", trickling),
        limit=100,
    ),
    Row(
        "create returns JSON 50,000 levels deep",
        "Not parsed; bounded and reported.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", saying("200 OK", _DEEP)),
        reported=_LOST,
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "stop returns bytes that are not text",
        "Rejected and retried.",
        PASSES,
        network=True,
        arm=trick(
            "stop", saying("200 OK", bytes(range(256)), carried_out=False), times=2
        ),
    ),
    Row(
        "the service's responses are not HTTP",
        "Retried; the session is stopped.",
        PASSES,
        network=True,
        arm=trick(
            "stop",
            lambda connection, _forward: connection.sendall(
                b"220 mail.example ESMTP\r\n"
            ),
            times=2,
        ),
    ),
)
