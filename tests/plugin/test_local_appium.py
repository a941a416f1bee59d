"""A suite for Android, and one in another language, at the real Appium of a local service that the run starts."""

import zipfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.fakes.http_server import serving_files

APP = """<!doctype html><title>Notes</title>
<h1 aria-label="title">Notes</h1><p aria-label="where"></p><p aria-label="reported"></p>
<script>
const say = (label, text) => { document.querySelector(`[aria-label=${label}]`).textContent = text; };
say("where", location.pathname); say("reported", (window.launchArguments || []).join(" "));
</script>
"""
SUITE = """
import json, os, subprocess, sys, pytest
from appium.options.android import UiAutomator2Options

ELSEWHERE = '''
import json, os, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))

def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["APPIUM_URL"] + path, data, {{"Content-Type": "application/json"}})
    request.method = method
    with opener.open(request, timeout=30) as reply:
        return json.load(reply)["value"]

wanted = json.loads(os.environ["APPIUM_CAPS"])
session = ask("POST", "/session", {{"capabilities": {{"alwaysMatch": wanted}}}})["sessionId"]
print(ask("GET", f"/session/{{session}}/source")[:4])
ask("DELETE", f"/session/{{session}}")
'''
app = {{"application_archive_url": "{url}/app.zip", "launch_args": ["--es", "who", "Ada"], "open_url": "notes://list/7"}}
notes = pytest.mark.device(platform="android", type="appium", **app)

@pytest.fixture
def device_appium_options(request):
    options = UiAutomator2Options()
    options.automation_name = "UiAutomator2"
    options.orientation = "LANDSCAPE"
    return options.load_capabilities(getattr(request, "param", {{}}))

@notes
def test_has_the_markers_app(device_driver):
    assert device_driver.find_element("accessibility id", "title").text == "Notes"
    assert device_driver.find_element("accessibility id", "where").text == "/list/7"
    assert device_driver.orientation == "LANDSCAPE"
    device_driver.execute_script("lambda-status=passed")
    device_driver.execute_script("lambda-status=failed")

@notes
@pytest.mark.parametrize("device_appium_options", [{{"app": "{url}/none.zip"}}], indirect=True)
def test_has_no_app(device_driver): pass

@pytest.mark.device(platform="android", type="appium")
@pytest.mark.parametrize("device_appium_options", [{{"appPackage": "org.example.other"}}], indirect=True)
def test_names_an_app_that_is_not_installed(device_driver): pass

@pytest.mark.device(platform="android", type="appium", device_identifier="fake")
def test_elsewhere(device_environment):
    environment = {{**os.environ, **device_environment}}
    ran = subprocess.run([sys.executable, "-c", ELSEWHERE], env=environment, check=True, capture_output=True, text=True)
    assert ran.stdout == "<app\\n"
"""


@pytest.fixture
def builds(tmp_path: Path) -> Generator[str]:
    """Provide the address of a place that has the app."""
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("index.html", APP)

    with serving_files(tmp_path) as url:
        yield url


# In the gate, `test_appium` has the errors and the environment on recorded answers, and the examples have the options.
@pytest.mark.nightly
@pytest.mark.usefixtures("installed_programs")
def test_suites_for_android_and_in_another_language_run_unchanged(
    pytester: pytest.Pytester, builds: str
) -> None:
    pytester.makepyfile(test_it=SUITE.format(url=builds))

    result = pytester.runpytest_subprocess("--device-local")

    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(
        [
            f"app: Appium could not install and start the app {builds}/none.zip: *",
            "config: Appium rejected the capabilities: *org.example.other is not installed on this device*",
            "Fix: set appium:app or application_archive_url as well*",
            "devices: 3 created, 3 stopped (confirmed); *",
            "the local device ignored scripts for another service (lambda-status): *",
        ]
    )
