"""No output of a run contains a secret, however the run ends."""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from zipfile import ZipFile, is_zipfile

import pytest

from pytest_device.redact import Redactor
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest
from pytest_device.settings import resolve
from pytest_device.testing import FaultyService
from pytest_device.updates.signing import generate_code_signing
from tests.contract.document import example_session
from tests.fakes.http_server import Answer, says, scripted_server
from tests.plugin.runs import NEEDS_SUBTESTS, ON_A_WORKER

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
    needles = (*NEEDLES, access, access[: len(access) // 2], access[len(access) // 2 :])
    return leaks_of(needles, path, *outputs)


def contents(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield a file, and the files in it if it is an archive, such as a report or the trace in one."""
    yield name, content
    if is_zipfile(BytesIO(content)):
        with ZipFile(BytesIO(content)) as archive:
            for member in archive.namelist():
                yield from contents(f"{name}/{member}", archive.read(member))


def leaks_of(secrets: Iterable[str], path: Path, *outputs: str) -> list[str]:
    """Return where these secrets are found."""
    needles = [secret.encode() for secret in secrets]
    sources = {
        name: content
        for file in path.rglob("*")
        if file.is_file()
        for name, content in contents(str(file.relative_to(path)), file.read_bytes())
    }
    sources |= {
        f"name {number}": str(file).encode()
        for number, file in enumerate(path.rglob("*"))
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
    *("--device-trace=on", "--device-minute-price=1"),
    *(
        "-vv",
        "-ra",
        "--showlocals",
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


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-n1"],
        # Takes long: pytest parses the source of each frame.
        pytest.param(["--full-trace"], marks=pytest.mark.nightly),
    ],
)
def test_no_output_of_a_failing_run_contains_a_secret(
    run: Run, planted: FaultyService, pytester: pytest.Pytester, options: list[str]
) -> None:
    echo = f"token {planted.token} {AGENT_DEVICE['agentDeviceRemoteSessionToken']}"
    planted.add_fault("stop", "reply", status=500, body=echo, times=3)

    result = run(EVERYTHING, *ALL_ON, *options)

    outcomes = result.parseoutcomes()
    assert {
        name: outcomes[name] for name in ("passed", "failed", "skipped", "xfailed")
    } == {
        "passed": 1,
        "failed": 3,
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
        "device-report/device-run.json",
        *([] if "-n1" in options else ["log.txt"]),
    )
    assert [name for name in files if not (pytester.path / name).stat().st_size] == []
    assert [*(pytester.path / "device-report").glob("run-*.zip")]
    assert [*pytester.path.rglob("trace.zip")]


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
    result = run(OWN_SESSION, "--showlocals", "--full-trace")

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
        objects += [resolve({}, {"DEVICE_TOKEN": access}, {})]
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


@pytest.mark.parametrize(
    "distributed", [[], pytest.param(["-n1"], marks=pytest.mark.nightly)]
)
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
    "breaks(request, 'pytest_runtest_logfinish', RuntimeError(text))": "INTERNALERROR> *text[*][*][*]*",
    "breaks(request, 'pytest_sessionfinish', SystemExit(text))": "text[*][*][*]*",
    "breaks(request, 'pytest_unconfigure', ImportError(text))": "ImportError: *text[*][*][*]*",
    "request.session.shouldstop = text": "*! *text[*][*][*]* !*",
    "request.session.shouldfail = text": "*! *text[*][*][*]* !*",
}
LIKE_ANOTHER = ("raise KeyboardInterrupt(text)", "request.session.shouldstop = text")
"""The first is masked like `pytest.exit`, the second like ``shouldfail``."""
AFTER_THE_TESTS = tuple(
    how for how in ENDINGS if "sessionfinish" in how or "unconfigure" in how
)
"""Of a worker, they are masked like an error in ``pytest_runtest_logfinish``."""
ENDING = """
def breaks(request, hook, error):
    def fail(): raise error
    request.config.pluginmanager.register(type("Broken", (), {{hook: staticmethod(fail)}})())

def ends(request, text):
    {how}

def test_driven(device_session, request): ends(request, "text" + access + " ".join(connection_of(device_session)))
"""


def endings(at_night: Collection[str], *, containing: str = "") -> list[Any]:
    """Return the endings as parameters; some only at night, which take the way of another one."""
    return [
        pytest.param(how, marks=pytest.mark.nightly if how in at_night else ())
        for how in ENDINGS
        if containing in how
    ]


@pytest.mark.parametrize("how", endings(LIKE_ANOTHER))
def test_the_report_of_a_run_that_ends_early_contains_no_secret(
    run: Run, how: str
) -> None:
    result = run(ENDING.format(how=how), "--showlocals", "--junitxml=report.xml")

    assert result.ret != 0
    shown = result.stdout if result.stdout.str().count("text***") else result.stderr
    shown.fnmatch_lines([ENDINGS[how]])


# Of the others a worker reports nothing.
@pytest.mark.parametrize(
    "how", endings((*LIKE_ANOTHER, *AFTER_THE_TESTS), containing="request")
)
def test_the_report_of_a_worker_that_ends_early_contains_no_secret(
    run: Run, planted: FaultyService, how: str
) -> None:
    run(ENDING.format(how=how), "--showlocals", "-v", "-n1")

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


@NEEDS_SUBTESTS
@pytest.mark.parametrize("distributed", ON_A_WORKER)
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


@pytest.mark.parametrize("distributed", ON_A_WORKER)
def test_the_report_of_a_module_that_cannot_be_collected_contains_no_secret(
    run: Run, distributed: list[str]
) -> None:
    result = run(
        "assert access == ''", "--showlocals", "--junitxml=report.xml", *distributed
    )

    result.stdout.fnmatch_lines(["*assert '[*][*][*]' == ''*"])


def test_the_error_of_a_conftest_that_cannot_be_imported_contains_no_secret(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = token_urlsafe()
    monkeypatch.setenv("DEVICE_TOKEN", token)
    pytester.makeconftest("import os\nassert os.environ['DEVICE_TOKEN'] == ''\n")

    result = pytester.runpytest_subprocess()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*assert '[*][*][*]' == ''*"])
    result.stderr.no_fnmatch_line(f"*{token}*")


FOREIGN = {
    # what a provider that knows nothing of this package issues
    "code": token_urlsafe(12),
    "access_token": f"eyJhbGciOiJSUzI1NiJ9.{token_urlsafe(300)}",
    "refresh_token": token_urlsafe(32),
    "nested_token": token_urlsafe(32),
    # what its client sends
    "client_secret": "the-client's-own",
    "password": "correct horse 1",
    "device_code": token_urlsafe(16),
    "x-api-key": token_urlsafe(16),
}


def foreign_answer(call: str) -> Answer:
    """Answer as a provider with two endpoints: it redirects with a code, and exchanges anything for tokens."""
    if call.startswith("GET"):
        state = call.partition("state=")[2].partition("&")[0]
        url = f"myapp://redirect?code={FOREIGN['code']}&state={state}"
        return Answer(302, b"", {"Location": url})

    tokens = {name: FOREIGN[name] for name in ("access_token", "refresh_token")}
    nested = {"authed_user": {"access_token": FOREIGN["nested_token"]}}
    return says({**tokens, **nested, "token_type": "bearer"})


@pytest.fixture
def foreign_provider() -> Iterator[str]:
    with scripted_server(foreign_answer) as server:
        yield server.url


SIGN_IN = """
import json, logging, os, pathlib, warnings
import httpx, pytest
from pytest_device import auth

FOREIGN = json.loads(os.environ["FOREIGN"])
AT = {name: f"{FOREIGN['url']}/" for name in ("authorization_endpoint", "token_endpoint", "revocation_endpoint")}
APP = {"client_id": "app", "redirect_uri": "myapp://redirect"}

def shown(text):
    print(text)
    warnings.warn(str(text))
    logging.getLogger("a").warning("%s", text)
    assert text == "", text

def test_signs_in(record_property):
    request = auth.AuthRequest(APP)
    result = request.prompt(AT, browser=lambda url: httpx.get(url).headers["location"])
    config = {**APP, "client_secret": FOREIGN["client_secret"], "code": result.params["code"]}
    verifier = {"code_verifier": request.code_verifier}
    tokens = auth.exchange_code({**config, "extra_params": verifier}, AT)
    text = f"{config} {verifier} {result.url} {auth.launch_arguments(tokens)} {tokens.raw_response}"
    record_property("everything", text)
    pathlib.Path(os.environ["VERIFIERS"], str(os.getpid())).write_text(request.code_verifier)
    shown(text)

def test_signs_in_with_a_password():
    sent = {name: FOREIGN[name] for name in ("password", "device_code")}
    key = {"x-api-key": FOREIGN["x-api-key"]}
    config = {"client_id": "app", "refresh_token": FOREIGN["refresh_token"], "extra_headers": key}
    auth.refresh({**config, "extra_params": sent}, AT)
    shown(f"{sent} {config}")

def test_gives_wrong_options():
    config = {"client_id": "app", "clientSecret": FOREIGN["client_secret"], "unknown": 1}
    auth.AuthRequest(config)

def test_sees_another_redirect():
    request = auth.AuthRequest(APP)
    url = f"myapp://other#access_token={FOREIGN['access_token']}"
    result = request.prompt(AT, browser=lambda _: url)
    assert result.url == AT
"""


@pytest.mark.parametrize("distributed", ON_A_WORKER)
def test_no_output_contains_a_secret_of_a_sign_in_at_any_provider(
    pytester: pytest.Pytester,
    foreign_provider: str,
    distributed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    verifiers = tmp_path_factory.mktemp("verifiers")
    monkeypatch.setenv("FOREIGN", json.dumps({**FOREIGN, "url": foreign_provider}))
    monkeypatch.setenv("VERIFIERS", str(verifiers))
    pytester.makepyfile(SIGN_IN)

    result = pytester.runpytest_subprocess(*ALL_ON, *distributed)

    result.assert_outcomes(failed=4)
    texts = [
        FOREIGN["access_token"][-200:],
        *FOREIGN.values(),
        *(file.read_text() for file in verifiers.iterdir()),
    ]
    assert (
        leaks_of(texts, pytester.path, result.stdout.str(), result.stderr.str()) == []
    )


KEYS = """
import logging, os, pathlib, textwrap, warnings
import pytest
from pytest_device.auth.provider import Client, IdentityProvider
from pytest_device.updates import signing

NEW = [signing.generate_code_signing(name, years=1) for name in ("a", "b")]
FROM_VARIABLE = os.environ["SIGNING_KEY"]
signing.sign(b"", FROM_VARIABLE.replace("\\\\n", "\\n"))
KEYS = [NEW[0].private_key, NEW[1].private_key]
BODY = "".join(KEYS[0].splitlines()[1:-1])
pathlib.Path(os.environ["KEYS"], str(os.getpid())).write_text("\\n".join(KEYS))

def test_equal(): assert KEYS[0] == KEYS[1]
def test_equal_lines(): assert KEYS[0].splitlines() == KEYS[1].splitlines()
def test_equal_pairs(): assert NEW[0] == NEW[1]
def test_equal_mappings(): assert {"key": KEYS[0], "same": 1} == {"key": KEYS[1], "same": 1}
def test_equal_variable(): assert FROM_VARIABLE == KEYS[0]
def test_contains_a_line(): assert KEYS[0].splitlines()[9] in KEYS[1]
def test_contains_a_part(): assert KEYS[0].splitlines()[9][20:50] in KEYS[1]
def test_wrapped(): assert textwrap.wrap(BODY, 76) == []
def test_in_hex_lines(): assert repr(KEYS[0].encode()) == str(KEYS[1].encode())

def test_printed(record_property):
    lines = KEYS[0].splitlines()
    record_property("lines", lines)
    for line in lines:
        print(line)
        warnings.warn(line)
        logging.getLogger("a").warning("line %s", line)
    logging.getLogger("a").warning(KEYS[0])
    os.write(2, KEYS[0].encode())
    raise ExceptionGroup(lines[3], [ValueError(lines[4]), KeyError(KEYS[0])])

def test_of_a_provider():
    with IdentityProvider(clients=[Client("app", ["my://r"])]) as provider:
        provider.sign_in("user", ["openid"])
        key = provider._settings.keys._keys[0]
        pem, members = key.as_pem(private=True), key.as_dict(private=True)
        private = [members[name] for name in ("d", "p", "q", "dp", "dq", "qi")]
        pathlib.Path(os.environ["KEYS"], f"provider-{os.getpid()}").write_text("\\n".join([pem.decode(), *private]))
        print(pem.decode(), members)
        assert pem == members
"""
SHOWS_UNKNOWN_KEY = """
import json, os
from pytest_device.auth import TokenResponse
TokenResponse("the first secret of the run")
KEY = json.loads(os.environ["UNKNOWN_KEY"])
def test_printed():
    print(KEY)
    print(KEY[:-60])
    assert KEY == "", {"key": KEY}
"""


@pytest.fixture
def keys(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A directory, outside of what is searched, to which a run writes the keys that it generates."""
    path = tmp_path_factory.mktemp("keys")
    monkeypatch.setenv("KEYS", str(path))
    key = generate_code_signing("c", years=1).private_key
    path.joinpath("variable").write_text(key)
    monkeypatch.setenv("SIGNING_KEY", key.replace("\n", "\\n"))
    return path


def lines_of(keys: Path) -> list[str]:
    """Return each line of the keys, without the first one, which is mostly the same in all keys."""
    lines = [line for file in keys.iterdir() for line in file.read_text().splitlines()]
    return [
        line
        for line in lines
        if len(line) >= 16 and not line.startswith(("-----", "MII"))
    ]


# A run takes long, as it masks much text; workers mask their reports as a single process does.
@pytest.mark.parametrize(
    "options",
    [
        ["--verbosity=0"],
        pytest.param(["-vv", "-n1", "--full-trace"], marks=pytest.mark.nightly),
    ],
)
def test_no_output_contains_a_line_of_a_signing_key(
    pytester: pytest.Pytester, keys: Path, options: list[str]
) -> None:
    pytester.makepyfile(KEYS)

    always = (*ALL_ON, "--basetemp=temp")
    result = pytester.runpytest_subprocess(*always, *options)

    assert result.parseoutcomes()["failed"] == 11
    lines = lines_of(keys)
    assert len(lines) > 90
    assert (
        leaks_of(lines, pytester.path, result.stdout.str(), result.stderr.str()) == []
    )


def test_a_private_key_is_recognized_by_its_form(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = generate_code_signing("d", years=1).private_key
    monkeypatch.setenv("UNKNOWN_KEY", json.dumps(key))
    pytester.makepyfile(SHOWS_UNKNOWN_KEY)

    result = pytester.runpytest_subprocess("-vv", "--showlocals")

    assert (
        leaks_of(
            key.splitlines()[1:-1],
            pytester.path,
            result.stdout.str(),
            result.stderr.str(),
        )
        == []
    )


CHOSEN = {
    # secrets that people choose, by where they are
    "user": "a password of ada",
    "env": "value/of+the.token",
    "local": "another one",
    "url": "core-of-a-connection",
    "config": "value-of-the-api-key",
    "hook": "value-of-the-auth-token",
}
SHOWN = (
    "shown-to-anybody",
    "https://login.example/token",
    "short-1",
    "public-key-value",
)
PROJECT = {
    "app.json": json.dumps(
        {
            "vendor": {
                "name": "app",
                "slug": "app",
                "extra": {"apiKey": CHOSEN["config"], "publicKey": SHOWN[3]},
                "hooks": {
                    "postPublish": [{"config": {"authTokens": [CHOSEN["hook"]]}}]
                },
            }
        }
    ),
    "package.json": json.dumps({"dependencies": {"vendor": "57.0.0"}}),
    ".env": f"API_TOKEN={CHOSEN['env']}\nVENDOR_PUBLIC_TOKEN={SHOWN[0]}\nTOKEN_URL={SHOWN[1]}\nKEY_OF_A={SHOWN[2][:7]}",
    ".env.local": f"DB_PASSWORD='{CHOSEN['local']}'\nDATABASE=postgres://ada:{CHOSEN['url']}@db.example/",
}
CONFIGURED = """
import pytest
from pytest_device.auth.provider import Client, User

@pytest.fixture(scope="session")
def device_service_settings():
    users = [User("ada", password=PASSWORD)]
    return {"device_identity_provider": {"users": users, "clients": [Client("app", ["my://r"])]}}

def test_shows(device_app, device_identity_provider, device_service_settings):
    texts = [device_app.env.values, device_app.config, PASSWORD, SHOWN]
    print(texts)
    assert texts == [], f"{texts}"
"""


@pytest.mark.parametrize(
    "distributed",
    [
        *(pytest.param(case, marks=pytest.mark.nightly) for case in (["-q"], ["-n2"])),
        ["-n1"],
    ],
)
def test_no_output_contains_a_secret_that_people_chose(
    pytester: pytest.Pytester, distributed: list[str]
) -> None:
    for name, text in PROJECT.items():
        pytester.mkdir("app") if not (pytester.path / "app").exists() else None
        pytester.path.joinpath("app", name).write_text(text)
    constants = f"PASSWORD, SHOWN = {CHOSEN['user']!r}, {SHOWN!r}\n"
    pytester.path.joinpath("constants.py").write_text(constants)
    pytester.makepyfile("from constants import *" + CONFIGURED)
    pytester.syspathinsert()

    options = (
        "-vv",
        "--showlocals",
        "-rA",
        "--device-app-root=app",
        "--junitxml=report.xml",
        "-p",
        "no:cacheprovider",
    )
    result = pytester.runpytest_subprocess(*options, *distributed)

    result.assert_outcomes(failed=1)
    output = (
        result.stdout.str()
        + result.stderr.str()
        + pytester.path.joinpath("report.xml").read_text()
    )
    assert [name for name, secret in CHOSEN.items() if secret in output] == []
    assert [text for text in SHOWN if text not in output] == []


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
    logging.getLogger().warning("stack", stack_info=True)  # https://ann:in-the-source@service.invalid
    assert "ann:in-the-source" not in caplog.text

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


NAMED = """
import os
from typing import NamedTuple
import pytest

class Place(NamedTuple):
    file: str
    text: str

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(call):
    report = yield
    report.plain = Place("a.py", "nothing secret")
    report.secret = Place("a.py", os.environ["DEVICE_TOKEN"])
    return report

@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    print(report.plain.text, "in", report.plain.file)
    print("text", report.secret.text, "in", report.secret.file)
"""


@pytest.mark.usefixtures("planted")
def test_named_tuples_in_a_report_stay_named_tuples(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(UNASKED + NAMED)
    pytester.makepyfile(
        "import pytest\n\n@pytest.mark.device(platform='android')\ndef test_it(device_session): pass"
    )

    result = pytester.runpytest("-s")

    result.stdout.fnmatch_lines(
        ["*nothing secret in a.py*", "*text [*][*][*] in a.py*"]
    )


@pytest.mark.usefixtures("planted")
def test_after_the_run_log_records_are_created_as_before(
    pytester: pytest.Pytester,
) -> None:
    before = logging.getLogRecordFactory()
    pytester.makepyfile(LOGGING.replace("caplog):", "caplog):\n    return"))

    pytester.runpytest().assert_outcomes(passed=2)

    assert logging.getLogRecordFactory() is before
