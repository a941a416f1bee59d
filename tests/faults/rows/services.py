"""Rows: a service that fails or refuses."""

from typing import Final

from pytest_device.plugin.output.exit_status import INFRASTRUCTURE_ONLY, NO_TEST_FAILED
from tests.faults.acts import (
    at_once,
    boots_for_ever,
    in_test,
    service_fault,
    touches,
    trick,
)
from tests.faults.network import never
from tests.faults.row import Act, Promise, Row, stopped
from tests.faults.row_environment import PATIENCE_SECONDS, RowEnvironment
from tests.faults.suites import PASSES, files, many, suite

_LOST: Final = "1 unknown"
_TWO_THAT_SHARE: Final = files(
    """
    @pytest.mark.device(platform="android", share="run")
    @pytest.mark.parametrize("n", range(2))
    def test_driven(device_session, n): pass
    """
)
_PAGE: Final = "<html><body><h1>default backend"
_UNKNOWN: Final = '{"errors": [{"code": "NOT_FOUND", "message": "no such session"}]}'
_APPIUM: Final = files(
    """
    @pytest.mark.device(platform="android", type="appium")
    def test_driven(device_session):
        pass
    """
)
_UNTIL_GO: Final = suite(
    "reached()\nwhile not (DIRECTORY / 'go').exists(): time.sleep(0.05)"
)


def _happens(what: str) -> Act:
    """Make the service end or fail the session."""
    return lambda env: env.happen(env.service.sessions()[0]["id"], what)


def _faults_end_after_the_run(env: RowEnvironment) -> None:
    env.run.wait(PATIENCE_SECONDS)
    env.end_faults()


ROWS: Final = (
    Row(
        "create returns 504 although it took effect",
        "A gateway lost the response: bounded and reported.",
        PASSES,
        promise=Promise.BOUNDED,
        arm=service_fault("create", "reply", status=504, carried_out=True),
        reported=_LOST,
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "two create calls lose their responses",
        "Both are bounded, and reported with different names.",
        _TWO_THAT_SHARE,
        promise=Promise.BOUNDED,
        arm=service_fault("create", "lose-answer", times=2),
        reported=r"a session named '.* · 2' may be running",
        sessions=2,
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "a session becomes errored after its test",
        "Stopped; its device time, which has no end, is an upper bound.",
        PASSES,
        arm=service_fault(
            "stop", "change", fields={"status": "errored", "finishedAt": None}
        ),
        reported=r"1 stopped \(confirmed\); at most \d+ s of device time",
        status=0,
    ),
    Row(
        "create returns 503",
        "It may have taken effect: reported.",
        PASSES,
        promise=Promise.BOUNDED,
        arm=service_fault("create", "reply", status=503),
        reported=_LOST,
        sessions=0,
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "create returns 429, twice",
        "Retried: nothing was created before.",
        PASSES,
        arm=service_fault(
            "create",
            "reply",
            status=429,
            times=2,
            headers={"Retry-After": "0"},
            body="{}",
        ),
        status=0,
    ),
    Row(
        "create returns a gateway's page with 503, twice, during a deployment",
        "Each may have taken effect and is not repeated: two tests fail. The next create calls wait, then succeed.",
        many(5, "pass"),
        promise=Promise.BOUNDED,
        arm=service_fault("create", "reply", status=503, body=_PAGE, times=2),
        reported=r"3 created, 3 stopped \(confirmed\), 2 unknown",
        sessions=3,
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "create returns a gateway's page with 404, twice",
        "Nothing was created: sent again after a pause.",
        PASSES,
        arm=service_fault("create", "reply", status=404, body=_PAGE, times=2),
        status=0,
    ),
    Row(
        "a firewall answers two create calls with 403 and its own page",
        "The same.",
        PASSES,
        arm=service_fault("create", "reply", status=403, body=_PAGE, times=2),
        status=0,
    ),
    Row(
        "create returns 401, twice, to a token that has worked",
        "Sent again after a pause.",
        many(4, "pass"),
        arm=service_fault("create", "reply", status=401, body="{}", skip=1, times=2),
        reported=stopped(4),
        sessions=4,
        status=0,
    ),
    Row(
        "create returns 401 from the second call on",
        "The token is tried three times, with pauses; then no other test tries it.",
        many(12, "pass"),
        arm=service_fault("create", "reply", status=401, body="{}", skip=1, times=None),
        reported="11 tests affected",
        status=NO_TEST_FAILED,
    ),
    Row(
        "create returns 400",
        "Nothing was created.",
        PASSES,
        promise=Promise.NONE,
        arm=service_fault("create", "reply", status=400, body='{"errors": ["no"]}'),
        reported="config: create",
        sessions=0,
        status=NO_TEST_FAILED,
    ),
    Row(
        "stop returns 500, three times",
        "Retried.",
        PASSES,
        arm=service_fault("stop", "reply", status=500, times=3),
    ),
    Row(
        "stop returns 404 although it stopped the session",
        "A 404 proves nothing; the lookup does.",
        PASSES,
        arm=service_fault("stop", "reply", status=404, carried_out=True),
        status=0,
    ),
    Row(
        "an ingress returns its own page with 404 during a deployment",
        "Not the service's own response: polls continue, the stop is retried.",
        PASSES,
        arm=at_once(
            *(
                service_fault(operation, "reply", status=404, body=_PAGE, times=3)
                for operation in ("get", "stop")
            )
        ),
        status=0,
    ),
    Row(
        "the service does not know the session for a while",
        "Polls continue, and the stop is retried; after a minute, it would count as gone.",
        PASSES,
        arm=at_once(
            *(
                service_fault(operation, "reply", status=404, body=_UNKNOWN, times=3)
                for operation in ("get", "stop")
            )
        ),
        status=0,
    ),
    Row(
        "stop returns 204",
        "The lookup proves the stop.",
        PASSES,
        arm=service_fault("stop", "reply", status=204, carried_out=True, times=None),
        status=0,
    ),
    Row(
        "stop returns 500 although it stopped the session, every time",
        "The lookup proves the stop.",
        PASSES,
        arm=service_fault("stop", "reply", status=500, carried_out=True, times=None),
        status=0,
    ),
    Row(
        "stop returns 409 because the device still boots",
        "Retried in the background.",
        PASSES,
        arm=service_fault("stop", "reply", status=409, body="{}"),
        status=0,
    ),
    Row(
        "a firewall answers one stop with 403 and its own page",
        "Retried.",
        PASSES,
        arm=service_fault("stop", "reply", status=403, body=_PAGE),
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
        arm=service_fault(
            "stop",
            "reply",
            status=200,
            body='{"data": {"status": "in-progress"}}',
            times=2,
        ),
    ),
    Row(
        "stop returns a login page",
        "Rejected and retried.",
        PASSES,
        arm=service_fault(
            "stop", "reply", status=200, body="<html><body>Welcome", times=2
        ),
    ),
    Row(
        "every stop returns 403 until the run is over",
        "The run fails and names the session and its cost; the reaper retries until its limit.",
        PASSES,
        arm=service_fault("stop", "reply", status=403, times=None),
        fault=_faults_end_after_the_run,
        settings={"DEVICE_STOP_TIMEOUT_SECONDS": "1"},
        reported="NOT CONFIRMED AS STOPPED",
        status=1,
    ),
    Row(
        "the device never boots",
        "Stopped after the wait timeout.",
        PASSES,
        arm=boots_for_ever,
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "1"},
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "the session becomes errored while the run waits",
        "An infrastructure error; the session is also stopped, to be safe.",
        PASSES,
        arm=service_fault("boot", "fail", seconds=0.5),
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "the session reaches its limit in a test",
        "Its limit ended it.",
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
        "get returns a page of HTML, then 404",
        "Tolerated like a 500, for up to a minute.",
        PASSES,
        arm=at_once(
            service_fault("get", "reply", status=200, body=_PAGE),
            service_fault("get", "reply", status=404, body=_UNKNOWN),
        ),
        status=0,
    ),
    Row(
        "get never returns the capabilities of an Appium session",
        "It is not ready: the error names the missing field.",
        _APPIUM,
        arm=service_fault(
            "get",
            "change",
            fields={
                "status": "in-progress",
                "remoteConfig": {"appiumUrl": "http://127.0.0.1:9/"},
            },
            times=None,
        ),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        reported=r"in-progress without remoteConfig\.capabilities",
    ),
    Row(
        "get returns 401, twice",
        "The token has worked before: tolerated like a 500, for up to a minute.",
        PASSES,
        arm=service_fault("get", "reply", status=401, body="{}", times=2),
        status=0,
    ),
    Row(
        "get returns 401 from now on",
        "The same, then the run stops waiting; the session is stopped.",
        PASSES,
        arm=service_fault("get", "reply", status=401, body="{}", times=None),
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        status=INFRASTRUCTURE_ONLY,
    ),
)
