"""Why a device of the local service failed: in the report itself, since the service's pages end with the run."""

import pytest

from tests.plugin.runs import ON_A_WORKER

BUILD = "5b0f6f0e-7c52-4f0b-9a53-2d1f8f0f6a99"
SUITE = f"""
import time
import psutil, pytest, pytest_device
pytestmark = pytest.mark.device(platform="android", type="web-preview-only")

@pytest.mark.device(build_id="{BUILD}")
def test_build(device_session): pass

@pytest.mark.device(device_identifier="iPhone 99")
def test_device(device_session): pass

@pytest.mark.device(application_archive_url="http://127.0.0.1:1/app.zip")
def test_app(device_session): pass

def test_lost(device_session):
    raise pytest_device.ControllerLostError("the controller does not respond")

def test_dies(device_session, device_client):
    words = "--remote-debugging-pipe", str(device_session.id)
    for one in psutil.process_iter(["cmdline"]):
        line = " ".join(one.info["cmdline"] or ())
        if all(word in line for word in words) and "--type=" not in line:
            one.kill()
    while device_client.get(device_session.id).status == "in-progress":
        time.sleep(0.1)
    assert False
"""


@pytest.mark.usefixtures("installed_programs")
@pytest.mark.parametrize("options", ON_A_WORKER)
def test_the_message_has_the_reason_but_no_url_that_ends_with_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest_subprocess(
        "--device-local", "--device-no-reorder", *options
    )

    result.assert_outcomes(errors=5)
    for line in (
        f"config: buildId {BUILD}: the local service has no directory of builds*",
        "config: deviceIdentifier 'iPhone 99' is not an android phone *: set it to one of Pixel 8, *",
        "config: http://127.0.0.1:1/app.zip cannot be downloaded: *",
        "infrastructure: the session is gone: it failed*: the browser exited unexpectedly: killed by SIGKILL*",
        "devices: 4 created, 4 stopped (confirmed); *",  # each was attempted once
    ):
        result.stdout.fnmatch_lines([line])
    result.stdout.fnmatch_lines(
        [
            "-* device -*",
            "android web-preview-only on Pixel 8 (chromium)",
            "artifacts: device-artifacts*test_dies*",
        ]
    )
    assert not [
        line
        for line in result.outlines
        if "/sessions/" in line and not line.startswith("device_session =")
    ]
    (log,) = pytester.path.glob("device-artifacts/*test_lost*/service.log")
    assert "in-progress" in log.read_text()
    result.stdout.no_fnmatch_line("*local device service log*")
    result.stdout.no_fnmatch_line("  device *")
