"""Allure formats errors, steps and parameters itself; its results contain no secret."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_device.testing import FaultyService

NEEDLES = ("core-of-the-token", "planted-preview", "core-of-the-passphrase")
CONFIGS = {
    "agent-device": {
        "agentDeviceRemoteSessionToken": "a'g\"e\\n<t>&core-of-the-token/+%",
        "agentDeviceRemoteSessionUrl": "https://one:core-of-the-passphrase@planted-host.invalid/wd",
        "webPreviewUrl": "https://planted-preview.invalid/?signature=1234567",
    },
    "appium": {
        "appiumUrl": "http://127.0.0.1:9/wd",
        "capabilities": {"vendor:options": {"password": "core-of-the-passphrase"}},
        "webPreviewUrl": "https://planted-preview.invalid/?signature=1234567",
    },
}
CONFTEST = """
import dataclasses, os, pytest, traceback

@pytest.fixture
def device_wait_policy(device_wait_policy):  # nothing answers at what is planted
    return dataclasses.replace(device_wait_policy, controller_timeout_seconds=None)

class Theirs:
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call):
        report = yield
        if call.excinfo:
            with open(f"theirs{os.getpid()}.txt", "a") as file:
                file.writelines(traceback.format_exception(call.excinfo.value))
        return report

def pytest_configure(config): config.pluginmanager.register(Theirs())
"""
SUITE = """
import os, allure, pytest

pytestmark = pytest.mark.device(platform="android", type={type!r})
access = os.environ["DEVICE_TOKEN"]

def secrets_of(session):
    config = session.remote_config
    if session.type == "appium":
        return [access, config.capabilities["vendor:options"]["password"], config.web_preview_url]
    return [access, config.agent_device_remote_session_token.get_secret_value(), config.web_preview_url]

@pytest.fixture
def secrets(device_session): return secrets_of(device_session)

@pytest.fixture
def broken(secrets): raise RuntimeError(str(secrets))

@pytest.fixture
def broken_later(secrets):
    yield
    raise KeyError(*secrets)

@allure.step("signed in with {{secret}}")
def sign_in(secret, fails=False): assert not fails, secret

def test_steps(secrets):
    for secret in secrets:
        sign_in(secret)
        with allure.step(f"opened {{secret}}"): allure.dynamic.parameter("secret", secret)
        allure.dynamic.link(secret, name=secret)
        allure.dynamic.description(secret)
        allure.dynamic.title(secret)
    sign_in("".join(secrets), fails=True)

def test_attachments(secrets, tmp_path):
    for secret in secrets:
        allure.attach(secret, name=secret)
        allure.attach(b"\\x89PNG\\0" + b"picture", name="picture", attachment_type=allure.attachment_type.PNG)
        allure.attach(f"\\u00e9 {{secret}}".encode(), name="bytes")
        (tmp_path / "file.txt").write_text(f"kept {{secret}}")
        allure.attach.file(str(tmp_path / "file.txt"))
        print(secret)

def test_chained(secrets):
    try:
        raise KeyError(secrets)
    except KeyError as error:
        raise ExceptionGroup("several", [OSError(2, secrets[0], secrets[1]), ValueError(*secrets)]) from error

def test_set_up(broken): pass
def test_torn_down(broken_later): pass
def test_skipped(secrets): pytest.skip(str(secrets))
def test_expected(secrets): pytest.xfail(str(secrets))
"""


@pytest.mark.parametrize(
    ("kind", "distributed"), [("agent-device", []), ("appium", ["-n2"])]
)
def test_allure_results_contain_no_secret(
    pytester: pytest.Pytester, service: FaultyService, kind: str, distributed: list[str]
) -> None:
    service.add_fault(
        "get", "change", fields={"remoteConfig": CONFIGS[kind]}, times=None
    )
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(SUITE.format(type=kind))

    result = pytester.runpytest_subprocess("--alluredir=results", *distributed)

    result.assert_outcomes(passed=2, failed=2, skipped=1, xfailed=1, errors=2)
    files = [*(pytester.path / "results").iterdir(), *pytester.path.glob("theirs*")]
    assert leaks(files, service.token) == []
    read = [
        json.loads(file.read_text())
        for file in files
        if file.name.endswith("-result.json")
    ]
    assert sorted({one["status"] for one in read}) == [
        "broken",
        "failed",
        "passed",
        "skipped",
    ]
    assert {step["name"] for one in read for step in one.get("steps", ())} >= {
        "opened ***",
        "signed in with '***'",
    }
    texts = [file.read_bytes() for file in files if "-attachment" in file.name]
    assert {b"kept ***", b"\xc3\xa9 ***", b"\x89PNG\0picture"} <= set(texts)


def leaks(files: list[Path], access: str) -> list[str]:
    """Return where a secret was found, with the surrounding text."""
    found = (
        (file.name, file.read_bytes(), needle.encode())
        for file in files
        for needle in (*NEEDLES, access)
    )
    return [
        f"{name}: {text[max(0, text.index(at) - 60) :][:200]!r}"
        for name, text, at in found
        if at in text
    ]


LOSES = """
import os, pathlib, pytest
import httpx

@pytest.mark.device(platform="android")
def test_loses_its_device(device_session):
    with httpx.Client(headers={"Authorization": "Bearer " + os.environ["DEVICE_TOKEN"]}) as http:
        url = os.environ["DEVICE_URL"] + "/testing/sessions"
        http.post(f"{url}/{device_session.id}/expire").raise_for_status()
        for _ in range(10_000):
            sessions = http.get(url).json()["data"]
            mine = next(one for one in sessions if one["id"] == str(device_session.id))
            if mine["status"] != "in-progress":
                break
    assert mine["status"] == "in-progress"

def test_fails_itself():
    assert False
"""


def test_a_failure_with_a_verdict_says_which(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(LOSES)

    pytester.runpytest("--alluredir=results")

    results = [
        json.loads(path.read_text())
        for path in (pytester.path / "results").glob("*-result.json")
    ]
    labels = {
        (result["name"], label["value"])
        for result in results
        for label in result["labels"]
        if label["name"] == "device_verdict"
    }
    assert labels == {("test_loses_its_device", "infrastructure")}
    assert set(service.statuses()) <= {"stopped", "errored"}


FAILING = """
import pytest

@pytest.mark.device(platform="android")
def test_fails(device_session): assert False

@pytest.mark.device("alice", platform="android")
@pytest.mark.device("bob", platform="ios")
def test_passes(device_sessions): pass

def test_plain(): assert False
"""


@pytest.mark.parametrize("distributed", [[], ["-n1"]])
def test_allure_shows_devices_in_its_timeline_and_the_files_of_a_failed_test(
    pytester: pytest.Pytester, service: FaultyService, distributed: list[str]
) -> None:
    pytester.makeconftest(CONFTEST.partition("class Theirs")[0])
    pytester.makepyfile(FAILING)

    pytester.runpytest_subprocess("--alluredir=results", *distributed)

    results = {
        result["name"]: result
        for file in (pytester.path / "results").glob("*-result.json")
        for result in [json.loads(file.read_text())]
    }
    failed = results["test_fails"]
    attached = {item["name"]: item for item in failed["attachments"]}
    assert {"failure.md", "trace.zip"} <= set(attached)
    trace = attached["trace.zip"]
    assert trace["type"] == "application/vnd.allure.playwright-trace"
    content = (pytester.path / "results" / trace["source"]).read_bytes()
    assert content.startswith(b"PK")

    ids = {session["id"] for session in service.sessions()}
    assert {label(result, "thread") for result in results.values()} & ids
    assert label(failed, "thread") in ids
    assert results["test_passes"].get("attachments", []) == []
    assert label(results["test_plain"], "thread") not in ids


def label(result: dict[str, Any], name: str) -> str:
    (value,) = [item["value"] for item in result["labels"] if item["name"] == name]
    return str(value)
