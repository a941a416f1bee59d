"""Rows: shared sessions, several devices in one test, retried boots."""

from typing import Final

from pytest_device.plugin.output.exit_status import NO_TEST_FAILED
from tests.faults.acts import (
    INT,
    KILL,
    TERM,
    at_once,
    beside_one_ahead,
    goes_on,
    hangs,
    in_test,
    inside,
    sends,
    sends_worker,
    service_fault,
)
from tests.faults.acts import while_booting as booting
from tests.faults.row import (
    NOBODY,
    NONE_KEPT_OR_UNKNOWN,
    Promise,
    Row,
    nothing,
    stopped,
)
from tests.faults.suites import files

_SHARED: Final = {"DEVICE_SHARE": "run", "DEVICE_REORDER": "false"}
_IDLE: Final = files(
    """
    pytestmark = []

    @pytest.mark.device(platform="android")
    def test_first(device_session): pass

    def test_plain(): hold()

    @pytest.mark.device(platform="android")
    def test_last(device_session): pass
    """
)
"""A suite that is in a test without a device while an idle session waits for the last test."""


_AHEAD: Final = files(
    """
    @pytest.mark.device(platform="android")
    def test_first(device_session): hold()

    @pytest.mark.device(platform="ios")
    def test_second(device_session): pass
    """
)
"""A suite that is in a test while the device of the next test boots."""


def _three(body: str, *, conftest: str = "") -> dict[str, str]:
    return dict(
        files(
            f"""
            @pytest.mark.parametrize("n", range(3))
            @pytest.mark.device(platform="android")
            def test_driven(device_session, n):
                {body}
            """,
            conftest=conftest,
        )
    )


_TWO: Final = files(
    """
    @pytest.mark.device("alice", platform="android")
    @pytest.mark.device("bob", platform="ios")
    def test_chats(device_sessions): hold()
    """
)
_FAILS_TO_BOOT_ONCE: Final = at_once(
    service_fault("boot", "fail", times=1, reason="no booted device"),
    service_fault("boot", "delay", seconds=3600, times=None),
)
_AGAIN: Final = {"DEVICE_START_ATTEMPTS": "2"}
_OF_ONES_OWN: Final = files(
    """
    @pytest.fixture(scope="module")
    def phone(device_lease):
        with device_lease(platform="ios") as session:
            yield session

    def test_one(phone): pass
    def test_two(phone): {body}
    """
)


def _own(body: str) -> dict[str, str]:
    return {name: text.replace("{body}", body) for name, text in _OF_ONES_OWN.items()}


ROWS: Final = (
    *(
        Row(
            f"{name} while the next device boots in advance",
            "Both are stopped.",
            _AHEAD,
            settings={"DEVICE_SHARE": "run"},
            arm=arm,
            when=beside_one_ahead,
            fault=sends(number),
            reported=reported,
            sessions=2,
        )
        for name, number, reported, arm in (
            ("SIGKILL", KILL, NOBODY, nothing),
            ("Ctrl-C", INT, stopped(2), nothing),
            ("SIGTERM", TERM, stopped(2), nothing),
            (
                "SIGKILL inside create,",
                KILL,
                NOBODY,
                service_fault("create", "delay", seconds=3.0, skip=1),
            ),
        )
    ),
    Row(
        "SIGKILL while a shared session is idle",
        "Stopped by the reaper.",
        _IDLE,
        settings=_SHARED,
        when=in_test,
        fault=sends(KILL),
        reported=NOBODY,
    ),
    Row(
        "Ctrl-C while a shared session is idle",
        "Stopped before the run ends.",
        _IDLE,
        settings=_SHARED,
        when=in_test,
        fault=sends(INT),
        status=2,
    ),
    Row(
        "SIGTERM while a shared session is idle",
        "The same.",
        _IDLE,
        settings=_SHARED,
        when=in_test,
        fault=sends(TERM),
        status=143,
    ),
    Row(
        "SIGKILL of a worker while its shared session is idle",
        "Stopped; the replacement worker has its own session.",
        _IDLE,
        settings=_SHARED,
        options=("-n1", "--dist=load"),
        when=in_test,
        fault=sends_worker(KILL),
        reported=stopped(2),
        sessions=2,
        status=1,
    ),
    Row(
        "-x while other tests need the session",
        "Stopped.",
        _three("assert n"),
        settings=_SHARED,
        options=("-x",),
        status=1,
    ),
    Row(
        "a test with a shared session ends its process",
        "Stopped.",
        _three("os._exit(3)"),
        settings=_SHARED,
        reported=NOBODY,
    ),
    Row(
        "workers hold shared sessions until their end",
        "Each worker stops its own.",
        _three("pass"),
        settings=_SHARED,
        options=("-n2",),
        reported=rf"[12] created, [12] stopped \(confirmed\){NONE_KEPT_OR_UNKNOWN}",
        status=0,
    ),
    Row(
        "a worker's last stop returns 503 for a while",
        "Retried until it succeeds.",
        _three("pass"),
        settings=_SHARED,
        options=("-n1",),
        arm=service_fault("stop", "reply", status=503, times=4),
        status=0,
    ),
    Row(
        "pytest_device_stopping raises",
        "Still stopped; the error belongs to the test.",
        _three(
            "pass",
            conftest="def pytest_device_stopping(): raise RuntimeError('nothing saved')",
        ),
        settings=_SHARED,
        status=1,
    ),
    Row(
        "pytest_device_stopping raises at a worker's end",
        "Still stopped.",
        _three(
            "pass",
            conftest="def pytest_device_stopping(): raise RuntimeError('nothing saved')",
        ),
        settings=_SHARED,
        options=("-n1",),
        reported=NOBODY,
    ),
    Row(
        "a shared session is kept when a test fails",
        "Kept; the next test gets a new one.",
        _three("assert n"),
        settings=_SHARED,
        options=("--device-keep-on-failure",),
        promise=Promise.KEPT,
        reported=r"2 created, 1 stopped \(confirmed\), 1 kept(?!.* unknown)",
        sessions=2,
        status=1,
    ),
    Row(
        "a test is repeated after its failure",
        "Its session is stopped as after any other test.",
        _three("assert n"),
        settings=_SHARED,
        options=("--reruns=1",),
        reported=rf"[12] created, [12] stopped \(confirmed\){NONE_KEPT_OR_UNKNOWN}",
        status=1,
    ),
    Row(
        "SIGKILL while two devices boot",
        "Both stopped.",
        _TWO,
        arm=service_fault("boot", "delay", seconds=3600, times=None),
        when=booting,
        fault=sends(KILL),
        reported=NOBODY,
    ),
    Row(
        "Ctrl-C while two devices boot",
        "Both stopped.",
        _TWO,
        arm=service_fault("boot", "delay", seconds=3600, times=None),
        when=booting,
        fault=sends(INT),
        reported=rf"[12] created, [12] stopped \(confirmed\){NONE_KEPT_OR_UNKNOWN}",
        status=2,
    ),
    Row(
        "Ctrl-C while a test has two devices",
        "Both stopped.",
        _TWO,
        when=in_test,
        fault=sends(INT),
        reported=stopped(2),
        sessions=2,
        status=2,
    ),
    Row(
        "SIGKILL while a test has two devices",
        "Both stopped.",
        _TWO,
        when=in_test,
        fault=sends(KILL),
        reported=NOBODY,
        sessions=2,
    ),
    Row(
        "SIGTERM inside the create call of the second device",
        "Both stopped.",
        _TWO,
        arm=hangs("create"),
        when=inside("create"),
        fault=at_once(sends(TERM), goes_on),
        reported=rf"[12] stopped \(confirmed\){NONE_KEPT_OR_UNKNOWN}",
        status=143,
    ),
    Row(
        "the second of two devices is refused",
        "The first one is stopped.",
        _TWO,
        arm=at_once(
            service_fault("boot", "delay", seconds=3600, times=None),
            service_fault("get", "reply", status=403),
        ),
        reported=stopped(2),
        sessions=2,
        status=NO_TEST_FAILED,
    ),
    Row(
        "Ctrl-C while a boot is retried",
        "Both stopped.",
        _three("pass"),
        settings=_AGAIN,
        arm=_FAILS_TO_BOOT_ONCE,
        when=lambda env: env.wait_for(
            lambda: len(env.service.sessions()) == 2, "a second session"
        ),
        fault=sends(INT),
        reported=stopped(2),
        sessions=2,
        status=2,
    ),
    Row(
        "SIGKILL while a boot is retried",
        "Both stopped.",
        _three("pass"),
        settings=_AGAIN,
        arm=_FAILS_TO_BOOT_ONCE,
        when=lambda env: env.wait_for(
            lambda: len(env.service.sessions()) == 2, "a second session"
        ),
        fault=sends(KILL),
        reported=NOBODY,
        sessions=2,
    ),
    Row(
        "a device_lease session, and a test that ends its process",
        "Stopped.",
        _own("os._exit(3)"),
        reported=NOBODY,
    ),
    Row(
        "a device_lease session, and Ctrl-C",
        "Stopped.",
        _own("hold()"),
        when=in_test,
        fault=sends(INT),
        status=2,
    ),
    Row(
        "a device_lease session, and SIGKILL",
        "Stopped.",
        _own("hold()"),
        when=in_test,
        fault=sends(KILL),
        reported=NOBODY,
    ),
    Row(
        "a session that a test created with device_client and did not stop",
        "Stopped at the end of the run.",
        files(
            """
            from pytest_device import SessionRequest

            def test_creates(device_client):
                device_client.create(
                    SessionRequest.from_arguments(app_id=os.environ["DEVICE_APP_ID"], platform="ios")
                )
            """
        ),
        status=0,
    ),
)
