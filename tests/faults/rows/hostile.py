"""Rows: a service that answers with anything but what was asked for."""

from typing import Final

from tests.faults.acts import service_fault, trick
from tests.faults.network import endless_chunks, endless_header, huge, saying, trickling
from tests.faults.row import Promise, Row
from tests.faults.suites import PASSES

_LOST: Final = "unknown 1"
_STRANGER: Final = "5f3a0c52-0d7e-4b6e-9d1f-6f2b7f0f9a11"
_DEEP: Final = b'{"data": ' * 50_000
_REDIRECT: Final = saying(
    "307 Temporary Redirect", b"", b"Location: /v2/device-run-sessions/elsewhere", carried_out=False
)

ROWS: Final = (
    Row(
        "create is answered with 10 MB",
        "Not read to its end; bounded and said.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", huge),
        told=_LOST,
        status=1,
    ),
    Row(
        "a look is answered with 10 MB",
        "Not read to its end; the session is stopped.",
        PASSES,
        network=True,
        arm=trick("get", huge, times=100),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        status=1,
    ),
    Row(
        "a stop is answered with 10 MB",
        "Not read to its end, sent again.",
        PASSES,
        network=True,
        arm=trick("stop", huge),
    ),
    Row(
        "create redirects for ever",
        "Not followed: the token goes nowhere else.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", _REDIRECT, times=100),
        told="infrastructure: create",
        sessions=0,
        status=1,
    ),
    Row(
        "a look redirects for ever",
        "Not followed; the session is stopped.",
        PASSES,
        network=True,
        arm=trick("get", _REDIRECT, times=100),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        status=1,
    ),
    Row(
        "a stop redirects twice",
        "Not followed, sent again.",
        PASSES,
        network=True,
        arm=trick("stop", _REDIRECT, times=2),
    ),
    Row(
        "create is answered with another session's id",
        "The true id is not known to anybody: bounded and said.",
        PASSES,
        promise=Promise.BOUNDED,
        arm=service_fault("create", "change", fields={"id": _STRANGER}),
        told="unknown 1|NOT PROVEN",
        status=1,
    ),
    Row(
        "create is answered with an id that is none",
        "The same.",
        PASSES,
        promise=Promise.BOUNDED,
        arm=service_fault("create", "change", fields={"id": "../../v2/me"}),
        told=_LOST,
        status=1,
    ),
    Row(
        "create is answered with another platform and type",
        "Not used, but stopped.",
        PASSES,
        arm=service_fault("create", "change", fields={"platform": "ios", "type": "argent"}),
        told="proven stopped 1",
        status=1,
    ),
    Row(
        "a look is answered with another session's id",
        "Not believed; the session is stopped.",
        PASSES,
        arm=service_fault("get", "change", fields={"id": _STRANGER}, times=None),
        status=1,
    ),
    Row(
        "a stop is answered with another session's id, twice",
        "Not believed, sent again.",
        PASSES,
        arm=service_fault("stop", "change", fields={"id": _STRANGER}, times=2),
    ),
    Row(
        "negative durations and impossible times",
        "Not believed; the session is stopped.",
        PASSES,
        arm=service_fault(
            "create", "change", fields={"maxDurationMinutes": -5, "maxIdleTimeMinutes": -1, "createdAt": "0000-99-99"}
        ),
        told="proven stopped 1",
    ),
    Row(
        "the service's clock is a century ahead",
        "Nothing is derived from it.",
        PASSES,
        arm=service_fault(
            "stop", "change", fields={"startedAt": "1926-01-01T00:00:00Z", "finishedAt": "2126-01-01T00:00:00Z"}
        ),
        status=0,
    ),
    Row(
        "create is answered with a body that never ends",
        "Cut off; bounded and said.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", endless_chunks),
        told=_LOST,
        status=1,
    ),
    Row(
        "a look is answered with a body that never ends",
        "Cut off; the session is stopped.",
        PASSES,
        network=True,
        arm=trick("get", endless_chunks, times=100),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        status=1,
    ),
    Row(
        "a stop is answered with a body that never ends",
        "Cut off, sent again.",
        PASSES,
        network=True,
        arm=trick("stop", endless_chunks),
    ),
    Row(
        "create is answered with a head that never ends",
        "Cut off; bounded and said.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", endless_header),
        told=_LOST,
        status=1,
    ),
    Row(
        "a look is answered with a head that never ends",
        "Cut off; the session is stopped.",
        PASSES,
        network=True,
        arm=trick("get", endless_header, times=100),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        status=1,
    ),
    Row(
        "create is answered byte by byte",
        "Given up after a while; bounded and said.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", trickling),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        told=_LOST,
        status=1,
        limit=90,
    ),
    Row(
        "a look is answered byte by byte",
        "Given up after a while; the session is stopped.",
        PASSES,
        network=True,
        arm=trick("get", trickling, times=100),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        status=1,
        limit=90,
    ),
    Row(
        "a stop is answered byte by byte",
        "Given up after a while and sent again.",
        PASSES,
        network=True,
        settings={"DEVICE_STOP_TIMEOUT_SECONDS": "90"},
        arm=trick("stop", trickling),
        limit=100,
    ),
    Row(
        "create is answered with JSON 50,000 levels deep",
        "Not read; bounded and said.",
        PASSES,
        network=True,
        promise=Promise.BOUNDED,
        arm=trick("create", saying("200 OK", _DEEP)),
        told=_LOST,
        status=1,
    ),
    Row(
        "a stop is answered with bytes that are no text",
        "Not believed, sent again.",
        PASSES,
        network=True,
        arm=trick("stop", saying("200 OK", bytes(range(256)), carried_out=False), times=2),
    ),
    Row(
        "the service answers with something that is not HTTP",
        "Sent again; the session is stopped.",
        PASSES,
        network=True,
        arm=trick("stop", lambda connection, _forward: connection.sendall(b"220 mail.example ESMTP\r\n"), times=2),
    ),
)
