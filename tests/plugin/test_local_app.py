"""A suite that takes its app from the project, on the device of a local service that the run starts."""

import pytest

from tests.app.rows import project_files, put

PROJECT = "3b2b1f6e-6a02-4d4e-9d6f-1a0c3d1b2a11"
CONFIG = {
    "scheme": "acme",
    "extra": {"vendor": {"projectId": PROJECT}},
    "android": {"package": "com.acme.app"},
}
PAGE = """<!doctype html><h1 data-testid="where"></h1>
<script>document.querySelector("h1").textContent = location.pathname</script>
"""
SUITE = f"""
import pytest
from appium.options.android import UiAutomator2Options

pytestmark = pytest.mark.device(platform="android", type="appium", device_identifier="chromium")
build = {{"appium:app": "build", "appium:appPackage": "com.acme.app"}}

@pytest.fixture
def device_appium_options(request):
    return request.param

def where(driver):
    return driver.find_element("xpath", "//*[@resource-id='where']").text

@pytest.mark.parametrize("device_appium_options", [build], indirect=True)
def test_installs_a_build(device_driver):
    assert where(device_driver) == "/"
    device_driver.execute_script("lambda-status=passed")

nothing = [{{}}, UiAutomator2Options(), {{"browserName": "", "appPackage": None}}]

@pytest.mark.parametrize("device_appium_options", nothing, indirect=True)
def test_starts_the_installed_app_of_the_project(device_driver, device_session, device_link):
    assert str(device_session.app_id) == "{PROJECT}"
    assert device_driver.current_package == "com.acme.app"
    device_driver.get(device_link("/notes/[id]", id="7"))
    assert where(device_driver) == "/notes/7"
"""


@pytest.mark.usefixtures("installed_programs")
def test_a_session_has_the_projects_app(pytester: pytest.Pytester) -> None:
    put(
        pytester.path / "app",
        project_files(CONFIG, **{"app/index.tsx": "", "app/notes/[id].tsx": ""}),
    )
    put(pytester.path, {"build/index.html": PAGE})
    pytester.makeini("[pytest]\ndevice_app_root = app\n")
    pytester.makepyfile(SUITE.replace('"build"', repr(str(pytester.path / "build"))))

    result = pytester.runpytest_subprocess("--device-local", "-v")

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            f"device app id: {PROJECT} (device_app_root in the ini file)",
            "the local device ignored scripts for another service (lambda-status): *",
        ]
    )
