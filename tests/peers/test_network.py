"""Plugins that answer, block or fake the tests' calls must not affect the calls to the service."""

import pytest

from pytest_device import DeviceClient, ServiceError, SessionRequest, lease
from pytest_device.testing import FaultyService

BLOCKS_ALL = (
    "pytest-socket blocks the connection to 127.0.0.1 (--disable-socket, or *):"
    " allow it with --allow-hosts=127.0.0.1, or *"
)
BLOCKS_HOST = (
    "pytest-socket blocks the connection to 127.0.0.1, which is missing in"
    " --allow-hosts or *: add 127.0.0.1. No device was requested*"
)
WARNING_IS_ERROR = "error:A test tried:UserWarning"


def test_a_device_is_provided_or_the_intercepting_plugin_is_named_immediately(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEVICE_WAIT_TIMEOUT_SECONDS", "600")  # nothing may serve it
    pytester.makepyfile(
        """
        import os
        from pathlib import Path
        import pytest, respx

        pytestmark = pytest.mark.device(platform="android", share="test")
        STATE = Path(os.environ["DEVICE_STATE_DIR"])

        @pytest.fixture
        def mocked():
            with respx.mock:
                yield

        def test_httpx(httpx_mock, device_session): pass

        def test_fs(fs, device_session):
            assert not STATE.exists()
            fs.pause()
            assert len(list(STATE.glob("runs/*/*.json"))) == 1

        def test_respx(mocked, device_session): pass

        @pytest.fixture
        def passed():
            with respx.mock as router:
                router.route(host="127.0.0.1").pass_through()
                yield

        def test_respx_passes(passed, device_session): pass

        @pytest.fixture
        def answered():
            with respx.mock(assert_all_called=False) as router:
                router.route().respond(json={"data": []})
                yield

        def test_respx_answers(answered, device_session): pass

        @pytest.mark.disable_socket
        def test_socket(device_session): pass
        """
    )

    result = pytester.runpytest_subprocess(
        "-Wignore", "--device-retry-infrastructure=1"
    )

    result.assert_outcomes(passed=3, errors=3)
    result.stdout.fnmatch_lines(
        [
            'config: respx intercepts calls to 127.0.0.1: let it pass with *(host="127.0.0.1")*',
            f"config: {BLOCKS_ALL}",
            "config: 2 tests affected, first *::test_respx",
        ]
    )
    # None for the test without sockets, and no second one for those that another device would not help.
    assert service.statuses() == ["stopped"] * 5


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (["--disable-socket", f"-W{WARNING_IS_ERROR}"], BLOCKS_ALL),
        (["--allow-hosts=127.0.0.2"], BLOCKS_HOST),
        (["--disable-socket", "--allow-hosts=127.0.0.1"], None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_no_device_is_requested_if_its_service_is_blocked(
    pytester: pytest.Pytester,
    service: FaultyService,
    options: list[str],
    refusal: str | None,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        @pytest.mark.parametrize("number", range(2))
        def test_driven(device_session, number): pass
        """
    )

    result = pytester.runpytest_subprocess("-Wignore", *options)

    if refusal is None:
        result.assert_outcomes(passed=2)
    else:
        result.stdout.fnmatch_lines(
            [f"config: {refusal}", "*= 1 error, 1 not attempted in *"]
        )
        assert service.requests() == []


def test_a_test_without_network_does_not_fail_the_one_whose_device_boots_meanwhile(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    # Else its first poll could come before the network is blocked, and leave a connection.
    service.add_fault("create", "delay", seconds=0.5)
    pytester.makepyfile(
        """
        import pytest, socket, threading

        @pytest.mark.disable_socket
        def test_plain(monkeypatch):
            is_tried = threading.Event()
            blocked = socket.getaddrinfo

            def noted(*arguments):
                is_tried.set()
                return blocked(*arguments)

            with monkeypatch.context() as patched:
                patched.setattr(socket, "getaddrinfo", noted)
                assert is_tried.wait(60)

        @pytest.mark.device(platform="android")
        def test_driven(device_session): pass
        """
    )

    result = pytester.runpytest_subprocess(
        f"-W{WARNING_IS_ERROR}", "--device-no-reorder"
    )

    result.assert_outcomes(passed=2)
    assert service.statuses() == ["stopped"]


def test_a_create_call_that_a_plugin_intercepts_created_nothing(
    service: FaultyService,
) -> None:
    respx = pytest.importorskip("respx")
    request = SessionRequest.from_arguments(app_id=service.app_id, platform="ios")

    with (
        respx.mock,
        DeviceClient(service.url, service.token) as client,
        pytest.raises(ServiceError, match="respx intercepts calls") as intercepted,
        lease(client, request),
    ):
        pass

    assert not hasattr(intercepted.value, "__notes__")
    assert not client.leaves_unknown(intercepted.value)
    assert service.statuses() == []
