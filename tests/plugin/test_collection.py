"""What is decided at collection, before anything is sent."""

import pytest

from pytest_device.plugin import fixtures

pytestmark = pytest.mark.every_python

SERVICE = (
    "--device-url=http://127.0.0.1:9",
    "--device-app-id=7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c",
)
"""A service that does not exist: every call to it fails."""
TOKEN = "open-sesame-open"

ANDROID = """
import pytest

@pytest.mark.device(platform="android", type="appium")
def test_driven(device_driver): pass
"""


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICE_TOKEN", TOKEN)


def problems_of(result: pytest.RunResult) -> list[str]:
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    lines = [
        line.removeprefix("ERROR: ") for line in (*result.errlines, *result.outlines)
    ]
    return [
        line
        for line in lines
        if line.startswith(("test_", "no ", "--", "DEVICE_", "service"))
    ]


INVALID_MARKERS = [
    ("", "platform is missing: it must be android or ios"),
    (
        "'android'",
        (
            "device() takes keyword arguments, for example device(platform='android'); in a test with several "
            "devices, a name comes first: device('alice', platform='android')"
        ),
    ),
    ("platform='windows'", "platform='windows' must be android or ios"),
    (
        "platform='ios', typ='appium'",
        "typ is not an argument of the marker: did you mean type?",
    ),
    (
        "platform='ios', type='serve-sim'",
        "type='serve-sim' was removed: use 'web-preview-only'",
    ),
    (
        "platform='ios', max_duration_minutes=116",
        "max_duration_minutes=116 must be a whole number of minutes from 0 to 115, or 'account'",
    ),
    (
        "platform='ios', max_duration_minutes='30'",
        "max_duration_minutes='30' must be a whole number of minutes from 0 to 115, or 'account'",
    ),
    (
        "platform='ios', sdk_version='54'",
        "sdk_version='54' is valid only with vendor_go=True",
    ),
]


def test_invalid_markers_are_reported_with_file_line_and_rule(
    pytester: pytest.Pytester,
) -> None:
    tests = (
        f"@pytest.mark.device({arguments})\ndef test_{number}(): pass\n"
        for number, (arguments, _) in enumerate(INVALID_MARKERS)
    )
    pytester.makepyfile(test_it="\n".join(["import pytest\n", *tests]))

    result = pytester.runpytest(*SERVICE)

    assert [line.strip() for line in problems_of(result)] == [
        f"test_it.py:{3 + 3 * number}: test_{number}: {problem}"
        for number, (_, problem) in enumerate(INVALID_MARKERS)
    ]


def test_an_invalid_argument_causes_no_error_about_a_valid_fixture(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_it=ANDROID.replace(
            'type="appium"', 'type="appium", max_duration_minutes=300'
        )
    )

    (problem,) = problems_of(pytester.runpytest(*SERVICE))

    assert "max_duration_minutes=300" in problem


def test_a_test_defined_elsewhere_is_reported_by_name(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        maker="def made():\n    def test_made(): pass\n    return test_made\n"
    )
    pytester.makepyfile(
        test_it="import pytest\nfrom maker import made\ntest_here = pytest.mark.device(platform='x')(made())\n"
    )

    (problem,) = problems_of(pytester.runpytest(*SERVICE))

    assert problem == "test_it.py::test_here: platform='x' must be android or ios"


def test_all_mistakes_of_a_run_are_reported_at_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a="import pytest\n@pytest.mark.device(platform='x', type='y')\ndef test_one(): pass\n",
        test_b="import pytest\n@pytest.mark.device(platform='z')\ndef test_two(): pass\n",
    )

    assert (
        len(
            problems_of(
                pytester.runpytest(*SERVICE, "--device-url=http://devices.example")
            )
        )
        == 1
    )
    assert len(problems_of(pytester.runpytest(*SERVICE))) == 3


def test_mistakes_are_reported_once_by_the_coordinator(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_it="import pytest\n@pytest.mark.device(platform='x')\ndef test_driven(): pass\n"
    )

    result = pytester.runpytest(*SERVICE, "-n2")

    assert problems_of(result) == [
        "test_it.py:2: test_driven: platform='x' must be android or ios"
    ]


def test_the_closest_marker_wins_argument_by_argument(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform="ios", type="nonsense", max_duration_minutes=500)

        @pytest.mark.device(type="appium")
        class TestIt:
            @pytest.mark.device(max_duration_minutes=5)
            def test_right(self): pass

            def test_wrong(self): pass
        """
    )

    (problem,) = problems_of(pytester.runpytest(*SERVICE))

    assert "test_wrong: max_duration_minutes=500" in problem


def test_a_device_fixture_without_a_marker_requires_one(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it="def test_driven(device_session): pass")

    (problem,) = problems_of(pytester.runpytest(*SERVICE))

    assert "@pytest.mark.device(platform=...)" in problem


def test_the_appium_driver_needs_an_appium_session(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ANDROID.replace(', type="appium"', ""))

    (problem,) = problems_of(pytester.runpytest(*SERVICE))

    assert (
        "device_driver needs type='appium', not 'agent-device': add type='appium' to the marker"
        in problem
    )


def test_deselected_tests_are_not_checked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        ANDROID.replace("android", "nonsense") + "\ndef test_plain(): pass\n"
    )

    pytester.runpytest("-k", "plain").assert_outcomes(passed=1, deselected=1)


def test_without_a_service_one_usage_error_names_both_options(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(ANDROID)

    (problem,) = problems_of(pytester.runpytest())

    assert "--device-url" in problem
    assert "--device-local" in problem


def test_nothing_falls_back_to_the_local_service_in_ci(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile(ANDROID)

    assert len(problems_of(pytester.runpytest())) == 1


def test_a_service_without_token_and_app_id_is_refused(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEVICE_TOKEN")
    pytester.makepyfile(ANDROID)

    app_id, token = problems_of(
        pytester.runpytest("--device-url=https://devices.example")
    )

    assert "--device-app-id" in app_id
    assert "DEVICE_TOKEN" in token


def test_invalid_settings_are_reported_only_if_a_test_needs_a_device(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\ndevice_url = ftp://devices.example\n")
    pytester.makepyfile(test_plain="def test_plain(): pass")

    pytester.runpytest().assert_outcomes(passed=1)
    assert pytester.runpytest("--help").ret == 0

    pytester.makepyfile(test_driven=ANDROID)
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*device_url in the ini file: service URL 'ftp://devices.example' must*"]
    )


@pytest.mark.parametrize(
    "option",
    [
        "--collect-only",
        "--fixtures",
        *(
            pytest.param(option, marks=pytest.mark.nightly)
            for option in ("--setup-plan", "--fixtures-per-test", "--markers")
        ),
    ],
)
def test_listing_tests_needs_no_service_and_sends_nothing(
    pytester: pytest.Pytester, option: str
) -> None:
    pytester.makepyfile(ANDROID)

    assert pytester.runpytest(option).ret == 0
    assert pytester.runpytest(option, *SERVICE).ret == 0
    assert pytester.runpytest(option, "--device-local").ret == 0


def test_the_marker_is_registered_and_the_fixtures_are_described(
    pytester: pytest.Pytester,
) -> None:
    pytester.runpytest("--markers").stdout.fnmatch_lines(
        ["@pytest.mark.device([[]name], platform, type, ...): *"]
    )
    shown = pytester.runpytest("--fixtures").stdout
    for name in (name for name in vars(fixtures) if name.startswith("device_")):
        shown.fnmatch_lines([f"{name}* -- *", "    [A-Z]*"])


def test_the_header_shows_the_service_and_its_source(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("def test_plain(): pass")

    pytester.runpytest().stdout.no_fnmatch_line("device:*")
    pytester.runpytest("--device-local").stdout.fnmatch_lines(
        [
            "device: local service (--device-local), sessions up to 30 min (idle 10), browser *isolated from other users*"
        ]
    )
    monkeypatch.setenv("DEVICE_URL", "https://devices.example")
    pytester.runpytest().stdout.fnmatch_lines(
        ["device: https://devices.example (DEVICE_URL), app ID not set, *"]
    )


def test_a_run_without_device_tests_has_no_device_summary(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("def test_plain(): pass")

    pytester.runpytest("--device-local").stdout.no_fnmatch_line("*devices: * created*")


def test_an_unreachable_service_is_an_infrastructure_error(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(ANDROID.replace("device_driver", "device_session"))

    result = pytester.runpytest(*SERVICE)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of test_driven*",
            "infrastructure: create: no connection to http://127.0.0.1:9 (*): check the address and the network",
            "1 infrastructure error (not a test failure)",
        ]
    )


def test_a_plugin_with_the_same_marker_is_named(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        class Rival: pass
        def pytest_configure(config): config.pluginmanager.register(Rival(), "appium_scheduler")
        """
    )
    pytester.makepyfile(ANDROID)

    result = pytester.runpytest(*SERVICE)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*-p no:appium_scheduler*"])


PYTEST_FORKED = """
def pytest_addoption(parser): parser.addoption("--forked", action="store_true")
def pytest_configure(config): config.addinivalue_line("markers", "forked: runs in a fork")
"""
"""What the plugin sees of pytest-forked."""


@pytest.mark.parametrize(
    ("option", "marker"), [("--forked", ""), ("-q", "@pytest.mark.forked\n")]
)
def test_a_device_test_of_pytest_forked_is_refused_before_a_session_is_created(
    pytester: pytest.Pytester, option: str, marker: str
) -> None:
    pytester.makeconftest(PYTEST_FORKED)
    pytester.makepyfile(
        ANDROID.replace("@pytest.mark.device", f"{marker}@pytest.mark.device")
    )

    result = pytester.runpytest(*SERVICE, "-p", "no:forked", option)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: pytest-forked runs *::test_driven in a forked process*without --forked and @pytest.mark.forked"
        ]
    )


def test_tests_without_devices_may_run_with_pytest_forked(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(PYTEST_FORKED)
    pytester.makepyfile(f"{ANDROID}\n@pytest.mark.forked\ndef test_plain(): pass\n")

    result = pytester.runpytest(*SERVICE, "-p", "no:forked", "-k", "plain")

    result.assert_outcomes(passed=1, deselected=1)


def test_markers_of_unittest_and_other_classes_are_read(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_it="""
        import unittest
        import pytest

        @pytest.mark.device(platform="x")
        class Old(unittest.TestCase):
            def test_old(self): pass

        @pytest.mark.device(platform="y")
        class TestNew:
            def test_new(self): pass
        """
    )

    assert [
        problem.partition(": ")[2]
        for problem in problems_of(pytester.runpytest(*SERVICE))
    ] == [
        "test_old: platform='x' must be android or ios",
        "test_new: platform='y' must be android or ios",
    ]


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("options", [[], ["-n1"]])
def test_a_misspelled_ini_key_is_reported_with_the_closest_match(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makeini(
        "[pytest]\ndevice_paltform = ios\ndevice_type = appium\ndevice_own = 1\nother = 2\n"
        "device_token = made-up-secret\n"
    )
    pytester.makepyfile("def test_driven(device_session): pass")

    result = pytester.runpytest(*options)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    lines = [
        line
        for line in (*result.outlines, *result.errlines)
        if line.startswith("ERROR: ")
    ]
    assert (
        lines[0]
        == "ERROR: device_paltform in the ini file is not an option: did you mean device_platform?"
    )
    assert lines[1].startswith(
        "ERROR: device_token in the ini file is not an option: set DEVICE_TOKEN in the environment instead"
    )
    assert [line for line in lines if "device_own" in line or "made-up" in line] == []


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    "table",
    [
        "tool.pytest.ini_options",
        pytest.param(
            "tool.pytest",
            marks=pytest.mark.skipif(
                pytest.version_tuple < (9,), reason="reads no such table"
            ),
        ),
    ],
)
def test_toml_values_can_be_lists_numbers_and_booleans(
    pytester: pytest.Pytester, table: str
) -> None:
    pytester.makepyprojecttoml(
        f"[{table}]\ndevice_platform = ['android', 'ios']\ndevice_max_duration_minutes = 20\ndevice_reorder = false\n"
    )
    pytester.makepyfile(
        "def test_driven(device_session): assert device_session.max_duration_minutes == 20"
    )

    pytester.runpytest("-W", "error::pytest.PytestDeprecationWarning").assert_outcomes(
        passed=2
    )


def test_a_method_of_unittest_with_an_argument_is_reported_with_its_line(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_it="""
        import unittest
        from unittest import mock
        import pytest

        @pytest.mark.device(platform="android")
        class TestIt(unittest.TestCase):
            def test_wrong(self, device_session): pass
            def test_right(self): pass
            def test_default(self, times=2): pass

            @mock.patch("os.getcwd")
            def test_mocked(self, getcwd): pass

        class TestPlain(unittest.TestCase):
            def test_unrelated(self, anything): pass
        """
    )

    (problem,) = problems_of(pytester.runpytest(*SERVICE))

    assert problem == (
        "test_it.py:7: test_wrong: a method of a unittest.TestCase can't request device_session as an argument, "
        "because unittest calls it without arguments: set an attribute in an autouse fixture, or use a class without "
        "TestCase"
    )
