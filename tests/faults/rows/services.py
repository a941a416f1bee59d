"""Rows: a service that fails or refuses."""

from typing import Final

from tests.faults.acts import at_once, boots_for_ever, in_test, service_fault, touches, trick
from tests.faults.network import never
from tests.faults.row import Act, Promise, Row
from tests.faults.suites import PASSES, suite

_LOST: Final = "1 unknown"
_UNTIL_GO: Final = suite("reached()\nwhile not (ROOM / 'go').exists(): time.sleep(0.05)")


def _happens(what: str) -> Act:
    """Make the service end or fail the session."""
    return lambda room: room.happen(room.service.sessions()[0]["id"], what)


ROWS: Final = (
    Row(
        "create returns 504 although it took effect",
        "A gateway lost the response: bounded and reported.",
        PASSES,
        promise=Promise.BOUNDED,
        arm=service_fault("create", "reply", status=504, carried_out=True),
        told=_LOST,
        status=1,
    ),
    Row(
        "create returns 503",
        "It may have taken effect: reported.",
        PASSES,
        promise=Promise.BOUNDED,
        arm=service_fault("create", "reply", status=503),
        told=_LOST,
        sessions=0,
        status=1,
    ),
    Row(
        "create returns 429, twice",
        "Retried: nothing was created before.",
        PASSES,
        arm=service_fault("create", "reply", status=429, times=2, headers={"Retry-After": "0"}, body="{}"),
        status=0,
    ),
    Row(
        "create returns 400",
        "Nothing was created.",
        PASSES,
        promise=Promise.NONE,
        arm=service_fault("create", "reply", status=400, body='{"errors": ["no"]}'),
        told="config: create",
        sessions=0,
        status=1,
    ),
    Row(
        "stop returns 500, three times",
        "Retried.",
        PASSES,
        arm=service_fault("stop", "reply", status=500, times=3),
    ),
    Row(
        "stop returns 404 because the session is gone",
        "There is nothing left to stop.",
        PASSES,
        arm=service_fault("stop", "reply", status=404, carried_out=True),
        status=0,
    ),
    Row(
        "stop returns 429, twice",
        "Retried.",
        PASSES,
        arm=service_fault("stop", "reply", status=429, times=2),
    ),
    Row(
        "stop never responds",
        "Aborted after a timeout and retried.",
        PASSES,
        network=True,
        settings={"DEVICE_STOP_TIMEOUT_SECONDS": "60"},
        arm=trick("stop", never),
        limit=75,
    ),
    Row(
        "stop returns a session that still runs",
        "Rejected and retried.",
        PASSES,
        arm=service_fault("stop", "reply", status=200, body='{"data": {"status": "in-progress"}}', times=2),
    ),
    Row(
        "stop returns a login page",
        "Rejected and retried.",
        PASSES,
        arm=service_fault("stop", "reply", status=200, body="<html><body>Welcome", times=2),
    ),
    Row(
        "every stop returns 403",
        "Nothing can stop it with this token: the run fails and names the session and its cost; its limit ends it.",
        PASSES,
        promise=Promise.BOUNDED,
        arm=service_fault("stop", "reply", status=403, times=None),
        told="NOT CONFIRMED AS STOPPED",
        status=1,
    ),
    Row(
        "the device never boots",
        "Stopped after the wait timeout.",
        PASSES,
        arm=boots_for_ever,
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "1"},
        status=1,
    ),
    Row(
        "the session becomes errored while the run waits",
        "An infrastructure error; the session is also stopped, to be safe.",
        PASSES,
        arm=service_fault("boot", "fail", seconds=0.5),
        status=1,
    ),
    Row(
        "the session reaches its limit in a test",
        "It has ended by itself.",
        _UNTIL_GO,
        when=in_test,
        fault=at_once(_happens("expire"), touches("go")),
        status=0,
    ),
    Row(
        "the session fails in a test",
        "The same.",
        _UNTIL_GO,
        when=in_test,
        fault=at_once(_happens("fail"), touches("go")),
    ),
    Row(
        "get returns 500, five times",
        "Tolerated.",
        PASSES,
        arm=service_fault("get", "reply", status=500, times=5),
        status=0,
    ),
    Row(
        "get returns 401",
        "The run stops waiting and stops the session.",
        PASSES,
        arm=service_fault("get", "reply", status=401, times=None),
        status=1,
    ),
)
