"""Established names of other plugins remain theirs."""

import pytest

from pytest_device.testing import FaultyService

THEIRS = """
import pytest

@pytest.fixture(scope="session")
def driver_class():  # stands for a browser
    return Browser

@pytest.fixture
def driver_kwargs():
    return {}

class Browser:
    page_source, current_url = "<html/>", "about:blank"
    def get_log(self, type): return []
    def get_screenshot_as_base64(self): return ""
    def quit(self): self.page_source = None
"""


def test_the_option_and_the_fixture_device_belong_to_pytest_playwright(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="ios")
        def test_both(device, device_session, device_platform):
            assert device == "iPhone 13"
            assert device_session.platform == device_platform == "ios"

        def test_theirs(device, browser_context_args):
            assert device == "iPhone 13"
            assert "iPhone" in browser_context_args["user_agent"]
        """
    )

    result = pytester.runpytest("--device", "iPhone 13")

    result.assert_outcomes(passed=2)
    assert service.statuses() == ["stopped"]


def test_the_option_and_the_fixture_driver_belong_to_pytest_selenium(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(THEIRS)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="ios")
        def test_both(driver, selenium, device_session):
            assert type(driver).__name__ == "Browser"
            assert selenium is driver
            assert device_session.platform == "ios"

        @pytest.mark.device(platform="ios")
        def test_fails(driver, device_session): assert driver is device_session

        def test_theirs(driver): assert driver.page_source == "<html/>"
        """
    )

    result = pytester.runpytest("--driver=Firefox", "--html=report.html")

    result.assert_outcomes(passed=2, failed=1)
    # What theirs adds to a failure.
    result.stdout.fnmatch_lines(["*--*pytest-selenium*--*", "URL: about:blank"])
    assert service.statuses() == ["stopped"]


@pytest.mark.usefixtures("service")
def test_without_an_option_their_fixture_works_as_without_this_plugin(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("def test_theirs(device): assert device is None")

    pytester.runpytest().assert_outcomes(passed=1)


@pytest.mark.usefixtures("service")
def test_no_plugins_fixture_hides_another(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")

    shown = [
        line
        for line in pytester.runpytest("--fixtures", "-v").outlines
        if " -- " in line
    ]

    def homes(name: str) -> list[str]:
        return [
            line.partition(" -- ")[2]
            for line in shown
            if line.partition(" ")[0] == name
        ]

    ours = sorted(
        {line.split()[0] for line in shown if "pytest_device/plugin/" in line}
    )
    assert ours
    assert [len(homes(name)) for name in ours] == [1] * len(ours)
    assert "pytest_playwright" in homes("device")[0]
    assert "pytest_selenium" in homes("driver")[0]


@pytest.mark.usefixtures("service")
def test_a_run_with_workers_loads_all_plugins(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("n", range(6))
        @pytest.mark.device(platform="android")
        def test_both(device, device_session, n): assert device == "Pixel 5"
        """
    )

    result = pytester.runpytest("-n2", "--device=Pixel 5")

    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["devices: 2 created, 2 stopped (confirmed); *"])
