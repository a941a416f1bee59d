"""No output of a run contains a secret, however the run ends."""

import logging
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_device.redact import Redactor
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest
from pytest_device.settings import resolve
from pytest_device.testing import FaultyService
from tests.contract.document import example_session

URL = "https://some%40one:pass-w0rd-core@planted-host.invalid/wd?access_token=query-core-token"
PAGE = "http://reader:core-of-the-page@127.0.0.1:9/sessions/1?token=page-query-core"
AGENT_DEVICE = {
    # Signs that a repr, JSON, XML and an address each spell in their own way.
    "agentDeviceRemoteSessionToken": "a'g\"e\\n<t>&core-of-the-token/+%",
    "agentDeviceRemoteSessionUrl": URL,
    "webPreviewUrl": "https://planted-preview.invalid/?signature=preview-core-signature",
}
APPIUM = {
    "appiumUrl": "http://some%40one:pass-w0rd-core@127.0.0.1:9/wd",
    "capabilities": {
        "platformName": "Android",
        "vendor:options": {
            "accessKey": "core-of-the-access-key",
            "tunnel": [{"password": "core-of-the-passphrase"}],
        },
        "appium:app": "https://builder:core-of-the-builder@builds.invalid/app.apk?sig=1",
    },
}
ARGENT = {"toolsUrl": URL, "toolsAuthToken": "core-of-the-token"}
NEEDLES = (
    *(
        "pass-w0rd-core",
        "planted-host.invalid",
        "query-core-token",
        "core-of-the-token",
        "planted-preview",
    ),
    *(
        "core-of-the-page",
        "page-query-core",
        "preview-core-signature",
        "core-of-the-access-key",
        "core-of-the-passphrase",
        "core-of-the-builder",
    ),
    "c29tZUBvbmU6cGFzcy13MHJkLWNvcmU",  # what basic authentication makes of some@one and the password
)
"""The part of each secret that is the same in every encoding."""

UNASKED = """
import dataclasses, pytest

@pytest.fixture
def device_wait_policy(device_wait_policy):  # nothing answers at what is planted
    return dataclasses.replace(device_wait_policy, controller_timeout_seconds=None)
"""

SUITE = """
import logging, os, pathlib, warnings
import httpx, pytest, urllib3
from selenium.webdriver.remote.remote_connection import RemoteConnection

pytestmark = pytest.mark.device(platform="android")
access = os.environ["DEVICE_TOKEN"]

def connection_of(session):
    config = session.remote_config
    return config.agent_device_remote_session_url, config.agent_device_remote_session_token.get_secret_value()
"""


def leaks(path: Path, access: str, *outputs: str) -> list[str]:
    """Return where a secret is found: in one of the outputs, or in a file of a directory, with what is around it."""
    needles = [
        needle.encode()
        for needle in (
            *NEEDLES,
            access,
            access[: len(access) // 2],
            access[len(access) // 2 :],
        )
    ]
    sources = {
        file.name: file.read_bytes() for file in path.rglob("*") if file.is_file()
    }
    sources |= {
        f"output {number}": output.encode() for number, output in enumerate(outputs)
    }
    return [
        f"{name}: {found[max(0, found.index(needle) - 60) :][:200]!r}"
        for name, found in sources.items()
        for needle in needles
        if needle in found
    ]


@pytest.fixture
def planted(
    service: FaultyService, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> FaultyService:
    """A service whose connection details are the planted ones; what the user's directories hold is searched too."""
    service.add_fault("create", "change", fields={"url": PAGE}, times=None)
    service.add_fault(
        "get", "change", fields={"url": PAGE, "remoteConfig": AGENT_DEVICE}, times=None
    )
    monkeypatch.setenv("DEVICE_STATE_DIR", str(pytester.path / "state"))
    monkeypatch.setenv("HOME", str(pytester.path / "home"))
    pytester.makeconftest(UNASKED)
    return service


Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, planted: FaultyService) -> Run:
    """Run tests of a suite in a separate process and check that its output contains no secret."""

    def run(tests: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(SUITE + tests)
        result = pytester.runpytest_subprocess("--basetemp=temp", *options)
        assert (
            leaks(
                pytester.path, planted.token, result.stdout.str(), result.stderr.str()
            )
            == []
        )
        return result

    return run


EVERYTHING = """
def test_driven(device_session, record_property, extras, json_metadata):
    url, token = connection_of(device_session)
    headers = {"Authorization": f"Bearer {access}", "X-Token": token}
    everything = [access, url, token, headers, device_session, device_session.remote_config]
    everything.append(device_session.model_dump())
    record_property("everything", f"{everything}")
    extras.append({"name": "all", "format_type": "text", "content": str(everything), "mime_type": "text/plain",
                   "extension": "txt"})
    json_metadata["everything"] = [url, {"token": token}]
    warnings.warn(f"{url} {access}")
    warnings.warn(UserWarning(url, access))
    print(everything)
    os.write(2, f"{token} {url}".encode())
    logging.getLogger("a").debug("%s and %r", token, everything)
    logging.getLogger("a").info({"url": url})
    logging.getLogger("a").error("no arguments %s", extra={"token": token})
    try:
        raise KeyError(token, url)
    except KeyError:
        logging.getLogger("a").exception("failed")
    assert everything == [], f"{token} {access}"

def test_chained(device_session):
    url, token = connection_of(device_session)
    here = url.replace("https:", "http:").replace(httpx.URL(url).host, "127.0.0.1:9")
    try:
        httpx.get(here, headers={"Authorization": f"Bearer {access}"})
    except httpx.HTTPError as error:
        try:
            urllib3.PoolManager().request("GET", f"{here}&token={token}", retries=1)
        except urllib3.exceptions.HTTPError:
            RemoteConnection(here).execute("newSession", {"capabilities": {"password": token, "app": url}})

def test_stopped_late(device_session):
    raise ExceptionGroup(access, [ValueError(connection_of(device_session)), RuntimeError(access)])

@pytest.mark.parametrize("value", [access, f"x{access}y"])
def test_named(device_session, value): assert value == device_session

def test_skipped(device_session): pytest.skip(connection_of(device_session)[1])

def test_expected(device_session): pytest.xfail(connection_of(device_session)[1])

def test_cut(device_session): assert "x" * 100 + connection_of(device_session)[1] + "x" * 100 == access * 10

def test_behind_the_scenes(device_session):
    with open("ledger.txt", "ab") as file:
        for path in pathlib.Path(os.environ["DEVICE_STATE_DIR"]).rglob("*.json"): file.write(path.read_bytes())
    for process in os.listdir("/proc"):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file: found = file.read()
            if os.getsid(int(process)) != os.getsid(0):  # those here are pytest's, and were given the token
                with open(f"/proc/{process}/environ", "rb") as file: found += file.read()
        except (OSError, ValueError):
            continue
        with open("processes.txt", "ab") as file: file.write(found)
"""
ALL_ON = (
    *(
        "-vv",
        "-ra",
        "--showlocals",
        "--full-trace",
        "--durations=0",
        "--junitxml=report.xml",
        "-o",
        "junit_logging=all",
    ),
    *("-p", "metadata", "-p", "html", "-p", "pytest_jsonreport"),
    *(
        "--html=report.html",
        "--self-contained-html",
        "--json-report",
        "--json-report-file=report.json",
    ),
    *(
        "-o",
        "log_cli=true",
        "--log-level=DEBUG",
        "--log-cli-level=DEBUG",
        "--log-file=log.txt",
        "-o",
        "log_format=%(message)s",
    ),
    *("--log-file-level=DEBUG", "--color=yes", "-Wdefault"),
)


@pytest.mark.parametrize("distributed", [[], ["-n1"]])
def test_no_output_of_a_failing_run_contains_a_secret(
    run: Run, planted: FaultyService, pytester: pytest.Pytester, distributed: list[str]
) -> None:
    echo = f"token {planted.token} {AGENT_DEVICE['agentDeviceRemoteSessionToken']}"
    planted.add_fault("stop", "reply", status=500, body=echo, times=3)

    result = run(EVERYTHING, *ALL_ON, *distributed)

    outcomes = result.parseoutcomes()
    assert {
        name: outcomes[name] for name in ("passed", "failed", "skipped", "xfailed")
    } == {
        "passed": 1,
        "failed": 5,
        "skipped": 1,
        "xfailed": 1,
    }
    result.stdout.fnmatch_lines(["*UserWarning: [*][*][*] [*][*][*]*"])
    assert (
        b"pytest_device.sessions.reaper"
        in (pytester.path / "processes.txt").read_bytes()
    )
    files = (
        "report.xml",
        "report.html",
        "report.json",
        "processes.txt",
        "ledger.txt",
        *([] if distributed else ["log.txt"]),
    )
    assert [name for name in files if not (pytester.path / name).stat().st_size] == []


def test_no_secret_is_in_the_logs_of_a_controller_check(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("")
    checked = (
        "--device-controller-timeout-seconds=0.1",
        "--device-start-attempts=1",
        "--log-cli-level=DEBUG",
    )

    result = run(
        "def test_starts(device_session): pass",
        *checked,
        "--log-file=log.txt",
        "--log-file-level=DEBUG",
    )

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["DEBUG*connect_tcp.started*[*][*][*]*"])


OWN_SESSION = """
from pytest_device import SessionRequest

pytestmark = []

def test_creates(device_client):
    request = SessionRequest.from_arguments(app_id=os.environ["DEVICE_APP_ID"], platform="android")
    session = device_client.get(device_client.create(request).id)
    device_client.stop(session.id)
    assert connection_of(session) == ()

@pytest.mark.device(platform="android")
def test_marked(): pass
"""


def test_no_secret_of_a_session_that_a_test_created_itself_is_shown(run: Run) -> None:
    result = run(OWN_SESSION)

    result.assert_outcomes(passed=1, failed=1)


def test_no_object_of_this_package_shows_a_secret() -> None:
    access = "core-of-the-access-token"
    wire = example_session(
        url=PAGE, applicationArchiveUrl=f"{URL}&x=1", status="in-progress"
    )
    configs = {
        "agent-device": AGENT_DEVICE,
        "appium": APPIUM,
        "argent": ARGENT,
        "web-preview-only": AGENT_DEVICE,
    }
    sessions = [
        Session.from_wire({**wire, "type": kind, "remoteConfig": config})
        for kind, config in configs.items()
    ]
    request = SessionRequest.from_arguments(
        app_id=wire["appId"],
        platform="ios",
        application_archive_url=URL,
        launch_args=["--token", access],
    )
    with DeviceClient("https://devices.example", access) as client:
        objects: list[object] = [
            client,
            *sessions,
            *(session.remote_config for session in sessions),
            request,
            Redactor([access]),
        ]
        objects += [resolve(lambda _: None, {"DEVICE_TOKEN": access}, lambda _: None)]
        shown = " ".join(f"{one} {one!r} {[one]}" for one in objects)

    assert [needle for needle in (*NEEDLES, access) if needle in shown] == []


APPIUM_SUITE = """
import logging, pytest
from base64 import b64encode
from urllib.parse import unquote, urlsplit
from selenium.webdriver.remote.remote_connection import RemoteConnection

pytestmark = pytest.mark.device(platform="android", type="appium")

@pytest.fixture
def device_appium_options(device_session):
    logging.getLogger("suite").info("capabilities: %s", device_session.remote_config.capabilities)
    return device_session.remote_config.capabilities

def headers_for(url):
    return {"Authorization": "Basic " + b64encode(f"{unquote(url.username)}:{url.password}".encode()).decode()}

def test_driven(device_driver): pass

def test_chained(device_session):
    config = device_session.remote_config
    logging.getLogger("suite").warning("headers: %s", headers_for(urlsplit(config.appium_url)))
    try:
        RemoteConnection(config.appium_url).execute("newSession", {"capabilities": config.capabilities})
    except Exception as error:
        raise RuntimeError(config.appium_url, config.capabilities) from error
"""


@pytest.mark.parametrize("distributed", [[], ["-n1"]])
def test_the_report_of_a_driver_that_fails_to_start_contains_no_secret(
    pytester: pytest.Pytester, planted: FaultyService, distributed: list[str]
) -> None:
    planted.reset()
    planted.add_fault("get", "change", fields={"remoteConfig": APPIUM}, times=None)
    pytester.makepyfile(APPIUM_SUITE)

    result = pytester.runpytest_subprocess("--basetemp=temp", *ALL_ON, *distributed)

    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(["*infrastructure: Appium did not start a driver: *"])
    result.stdout.fnmatch_lines(["*newSession*"])
    assert (
        leaks(pytester.path, planted.token, result.stdout.str(), result.stderr.str())
        == []
    )


ENDINGS = {
    # what the test does with the text, and what is shown of it
    "pytest.exit(text)": "*! _pytest.outcomes.Exit: *text[*][*][*]* !*",
    "raise KeyboardInterrupt(text)": "*! KeyboardInterrupt: *text[*][*][*]* !*",
    "breaks(request, 'pytest_runtest_logfinish', text)": "INTERNALERROR> *text[*][*][*]*",
    "breaks(request, 'pytest_sessionfinish', text)": "RuntimeError: *text[*][*][*]*",
    "breaks(request, 'pytest_unconfigure', text)": "RuntimeError: *text[*][*][*]*",
    "request.session.shouldstop = text": "*! *text[*][*][*]* !*",
    "request.session.shouldfail = text": "*! *text[*][*][*]* !*",
}
ENDING = """
def breaks(request, hook, text):
    def fail(): raise RuntimeError(text)
    request.config.pluginmanager.register(type("Broken", (), {{hook: staticmethod(fail)}})())

def ends(request, text):
    {how}

def test_driven(device_session, request): ends(request, "text" + access + " ".join(connection_of(device_session)))
"""


@pytest.mark.parametrize("how", ENDINGS)
def test_the_report_of_a_run_that_ends_early_contains_no_secret(
    run: Run, how: str
) -> None:
    result = run(
        ENDING.format(how=how), "--full-trace", "--showlocals", "--junitxml=report.xml"
    )

    assert result.ret != 0
    shown = result.stdout if result.stdout.str().count("text***") else result.stderr
    shown.fnmatch_lines([ENDINGS[how]])


@pytest.mark.parametrize(
    "how", [how for how in ENDINGS if "request" in how]
)  # of the others a worker reports nothing
def test_the_report_of_a_worker_that_ends_early_contains_no_secret(
    run: Run, planted: FaultyService, how: str
) -> None:
    run(ENDING.format(how=how), "--full-trace", "--showlocals", "-v", "-n1")

    assert len(planted.sessions()) == 1


def test_other_plugins_see_no_secret_in_an_interrupt(
    run: Run, pytester: pytest.Pytester
) -> None:
    theirs = "def pytest_keyboard_interrupt(excinfo): open('theirs', 'w').write(repr(excinfo.value))"
    pytester.makeconftest(UNASKED + theirs)

    run(ENDING.format(how="raise KeyboardInterrupt(text)"))

    assert (
        pytester.path / "theirs"
    ).read_text() == "KeyboardInterrupt('text****** ***')"


def test_the_report_of_a_worker_that_dies_contains_no_secret(run: Run) -> None:
    how = "print(text, flush=True); os._exit(3)"

    result = run(ENDING.format(how=how), "-v", "-n1", "--max-worker-restart=0")

    result.stdout.fnmatch_lines(["*worker 'gw0' crashed while running *"])


@pytest.mark.skipif(
    pytest.version_tuple < (9,) and not find_spec("pytest_subtests"),
    reason="pytest has no subtests",
)
@pytest.mark.parametrize("distributed", [[], ["-n1"]])
def test_reports_of_subtests_contain_no_secret(
    run: Run, distributed: list[str]
) -> None:
    tests = """
def test_driven(device_session, subtests):
    url, token = connection_of(device_session)
    with subtests.test(f"part {url}", access=access, token=token):
        print(token)
        assert token == url
"""
    result = run(tests, "-vv", "--showlocals", "--junitxml=report.xml", *distributed)

    result.stdout.fnmatch_lines(["*part [*][*][*]*access=*[*][*][*]*"])


@pytest.mark.parametrize("distributed", [[], ["-n1"]])
def test_the_report_of_a_module_that_cannot_be_collected_contains_no_secret(
    run: Run, distributed: list[str]
) -> None:
    result = run(
        "assert access == ''", "--showlocals", "--junitxml=report.xml", *distributed
    )

    result.stdout.fnmatch_lines(["*assert '[*][*][*]' == ''*"])


def test_the_cache_of_failed_tests_contains_no_secret(
    run: Run, pytester: pytest.Pytester
) -> None:
    run(
        "@pytest.mark.parametrize('value', [access])\ndef test_named(value, device_session): assert not value"
    )

    assert (
        "test_named[***]"
        in (pytester.path / ".pytest_cache/v/cache/lastfailed").read_text()
    )


LOGGING = """
import logging, os, pytest
from logging.handlers import QueueHandler
from pickle import dumps
from queue import SimpleQueue

@pytest.mark.device(platform="android")
def test_logs(device_session, caplog):
    logging.getLogger().warning("plain %s", ("kept", 1))
    logging.getLogger().warning("secret %s", os.environ["DEVICE_TOKEN"])
    plain, secret = caplog.records
    assert plain.args == (("kept", 1),)
    assert secret.getMessage() == "secret ***"
    assert secret.made_by == "the suite's own"
    assert os.environ["DEVICE_TOKEN"].encode() not in dumps(QueueHandler(SimpleQueue()).prepare(secret))

@pytest.mark.device(platform="android")
def test_logs_nonsense(device_session, capsys):
    logger = logging.getLogger("own")
    logger.propagate = False  # where pytest does not listen, nonsense is no error of the test
    logger.addHandler(logging.StreamHandler())
    logger.warning("none", 1)
    assert "not all arguments converted" in capsys.readouterr().err
"""
OWN_RECORDS = """
import logging
make = logging.getLogRecordFactory()

def pytest_configure(config):
    def marked(*args, **kwargs):
        record = make(*args, **kwargs)
        record.made_by = "the suite's own"
        return record
    logging.setLogRecordFactory(marked)
    config.add_cleanup(lambda: print("ends with", logging.getLogRecordFactory() is marked))
    config.add_cleanup(lambda: logging.setLogRecordFactory(make))
"""


@pytest.mark.usefixtures("planted")
def test_log_records_without_a_secret_are_unchanged(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(UNASKED + OWN_RECORDS)
    pytester.makepyfile(LOGGING)

    pytester.runpytest_subprocess().assert_outcomes(passed=2)


@pytest.mark.usefixtures("planted")
def test_after_the_run_log_records_are_created_as_before(
    pytester: pytest.Pytester,
) -> None:
    before = logging.getLogRecordFactory()
    pytester.makepyfile(LOGGING.replace("caplog):", "caplog):\n    return"))

    pytester.runpytest().assert_outcomes(passed=2)

    assert logging.getLogRecordFactory() is before
