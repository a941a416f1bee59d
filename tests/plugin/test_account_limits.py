"""The limits of sessions: left to the account, refused by it, or set individually."""

from collections.abc import Generator
from pathlib import Path

import pytest

from pytest_device import DeviceClient
from pytest_device.sessions.models import Session
from pytest_device.testing import FaultyService, faulty_service

ACCOUNT_MINUTES = 20


@pytest.fixture(scope="module")
def small_account() -> Generator[FaultyService]:
    with faulty_service(max_duration_minutes=ACCOUNT_MINUTES) as service:
        yield service


@pytest.fixture
def account(
    small_account: FaultyService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> FaultyService:
    """An account whose sessions may last for 20 minutes."""
    small_account.reset()
    monkeypatch.setenv("DEVICE_URL", small_account.url)
    monkeypatch.setenv("DEVICE_TOKEN", small_account.token)
    monkeypatch.setenv("DEVICE_APP_ID", small_account.app_id)
    monkeypatch.setenv("DEVICE_POLL_INTERVAL_SECONDS", "0.05")
    monkeypatch.setenv("DEVICE_STATE_DIR", str(tmp_path / "state"))
    return small_account


def created(service: FaultyService) -> Session:
    (session,) = service.sessions()
    with DeviceClient(service.url, service.token) as client:
        return client.get(session["id"])


def suite(pytester: pytest.Pytester, arguments: str = "") -> None:
    pytester.makepyfile(
        f"import pytest\n@pytest.mark.device(platform='ios'{arguments})\ndef test_one(): pass\n"
    )


def test_a_duration_can_be_left_to_the_account(
    pytester: pytest.Pytester, account: FaultyService
) -> None:
    suite(pytester)
    pytester.makeini("[pytest]\ndevice_max_duration_minutes = account")

    result = pytester.runpytest()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["device: *, sessions up to the account's default (idle 10)"]
    )
    assert created(account).max_duration_minutes == ACCOUNT_MINUTES
    assert created(account).max_idle_time_minutes == 10


@pytest.mark.parametrize("word", ["none", "account"])
def test_a_session_can_have_no_idle_limit(
    pytester: pytest.Pytester, account: FaultyService, word: str
) -> None:
    suite(pytester, f", max_duration_minutes='account', max_idle_time_minutes={word!r}")

    pytester.runpytest().assert_outcomes(passed=1)

    assert created(account).max_idle_time_minutes is None


def test_a_refused_default_is_named_with_the_setting_that_changes_it(
    pytester: pytest.Pytester, account: FaultyService
) -> None:
    suite(pytester)

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "config: create: *maxDurationMinutes 30 * 20*",
            (
                "max_duration_minutes=30 is pytest-device's default: to change it, set --device-max-duration-minutes, "
                "DEVICE_MAX_DURATION_MINUTES or device_max_duration_minutes in the ini file, or the marker's "
                "max_duration_minutes; 'account' uses the account's default"
            ),
        ]
    )
    assert account.sessions() == []


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("arguments", "option"), [(", max_duration_minutes=30", ""), ("", "30")]
)
def test_a_refused_value_of_the_suite_is_not_called_a_default(
    pytester: pytest.Pytester, arguments: str, option: str
) -> None:
    suite(pytester, arguments)

    result = pytester.runpytest(
        *([f"--device-max-duration-minutes={option}"] if option else [])
    )

    result.assert_outcomes(errors=1)
    result.stdout.no_fnmatch_line("*pytest-device's default*")


@pytest.mark.parametrize(
    ("arguments", "option"), [(", max_idle_time_minutes=114", ""), ("", "114")]
)
def test_an_idle_limit_alone_gets_a_sufficient_duration(
    pytester: pytest.Pytester, service: FaultyService, arguments: str, option: str
) -> None:
    suite(pytester, arguments)

    result = pytester.runpytest(
        *([f"--device-max-idle-time-minutes={option}"] if option else [])
    )

    result.assert_outcomes(passed=1)
    assert (
        created(service).max_duration_minutes,
        created(service).max_idle_time_minutes,
    ) == (115, 114)


def test_the_suites_idle_limit_is_reduced_to_fit_the_markers_duration(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    suite(pytester, ", max_duration_minutes=12")

    pytester.runpytest("--device-max-idle-time-minutes=60").assert_outcomes(passed=1)

    assert (
        created(service).max_duration_minutes,
        created(service).max_idle_time_minutes,
    ) == (12, 11)


def test_a_fixture_can_add_an_idle_limit_alone(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    suite(pytester)
    pytester.makeconftest(
        "import pytest\n@pytest.fixture\ndef device_request_defaults(): return {'max_idle_time_minutes': 60}"
    )

    pytester.runpytest().assert_outcomes(passed=1)

    assert (
        created(service).max_duration_minutes,
        created(service).max_idle_time_minutes,
    ) == (61, 60)


@pytest.mark.usefixtures("account")
def test_the_ledger_records_the_accounts_duration_from_the_response(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import json, os, pathlib, pytest

        @pytest.mark.device(platform="ios", max_duration_minutes="account")
        def test_one(device_session):
            files = pathlib.Path(os.environ["DEVICE_STATE_DIR"]).rglob("*.json")
            entries = [json.loads(path.read_text()) for path in files]
            (minutes,) = [one["minutes"] for one in entries if one.get("session_id") == str(device_session.id)]
            assert minutes == 25
        """
    )

    pytester.runpytest().assert_outcomes(passed=1)
