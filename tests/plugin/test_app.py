"""The app's project in a run: settings, links and marker arguments."""

import pytest

from pytest_device import ConfigError
from pytest_device.app import load_project
from pytest_device.cli import main
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.project import installed_app, links_of
from pytest_device.settings import LOCAL_APP_ID
from tests.app.rows import project_files, put

UUID = "3b2b1f6e-6a02-4d4e-9d6f-1a0c3d1b2a11"
CONFIG = {
    "scheme": "myapp",
    "extra": {"vendor": {"projectId": UUID}},
    "ios": {"bundleIdentifier": "com.acme.app", "scheme": "apple"},
}


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    put(
        pytester.path / "app",
        project_files(CONFIG, **{"app/index.tsx": "", "app/notes/[id].tsx": ""}),
    )
    pytester.makeini("[pytest]\ndevice_app_root = app\ndevice_platform = ios\n")
    return pytester


def test_the_fixtures_for_links_and_the_project_need_no_device(
    project: pytest.Pytester,
) -> None:
    project.makepyfile("""
        import pytest
        from pytest_device import ConfigError

        def test_link(device_link, device_app):
            assert device_link("/notes/[id]", id="7") == "myapp://notes/7"
            assert device_app.identifier("ios") == "com.acme.app"
            with pytest.raises(ConfigError, match="did you mean '/notes/"):
                device_link("/note/[id]", id="7")
    """)
    project.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_links_to_the_development_client_use_the_address_in_the_marker(
    project: pytest.Pytester,
) -> None:
    app = load_project(project.path / "app")
    marker = {"vendor_go": True, "open_url": "vendorgo://192.168.1.5:8081"}
    assert (
        links_of(app, {"": marker})("/notes/[id]", id="7")
        == "vendorgo://192.168.1.5:8081/--/notes/7"
    )
    with pytest.raises(ConfigError, match="has no effect in the development client"):
        links_of(app, {"": {"vendor_go": True}})("/")


def test_a_wrong_link_is_an_error_at_its_line_in_the_test(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        "def test_link(device_link): device_link('/notes/[id]', ids='7')"
    )
    result = project.runpytest_inprocess("-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(
        [
            "*ConfigError: route '/notes/[[]id]' lacks the parameter 'id'",
            "*.py:1: ConfigError",
        ]
    )


def test_without_a_project_the_fixtures_name_the_setting(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("def test_link(device_link): pass")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*device_app needs the app's project: set --device-app-root, DEVICE_APP_ROOT*"]
    )


MISTAKES = [
    ("open_route='/nope'", "route '/nope' is unknown"),
    ("open_route='/notes/[id]'", "lacks the parameter 'id'"),
    (
        "open_route='/', open_url='myapp://x'",
        "open_route and open_url are mutually exclusive",
    ),
    ("route_params={'id': 1}", "route_params needs open_route"),
    ("open_route=1", "open_route must be the name of a route"),
    (
        "open_url='other://x'",
        "scheme 'other' is not declared by the project (it has myapp, apple)",
    ),
    (
        "open_url='myapp://x', vendor_go=True",
        "has no effect in the development client",
    ),
    ("open_rout='/'", "did you mean open_route"),
]
BUILD = ", build_id='4b2b1f6e-6a02-4d4e-9d6f-1a0c3d1b2a11'"


def test_links_without_a_route_are_collection_errors(project: pytest.Pytester) -> None:
    tests = (
        f"@pytest.mark.device({arguments}{'' if 'vendor_go' in arguments else BUILD})\n"
        f"def test_{number}(device_session): pass\n"
        for number, (arguments, _) in enumerate(MISTAKES)
    )
    project.makepyfile("\n".join(["import pytest", *tests]))

    result = project.runpytest_inprocess("--device-local", "--device-plan")

    for number, (_, mistake) in enumerate(MISTAKES):
        (line,) = [line for line in result.errlines if f": test_{number}: " in line]
        assert mistake in line


def test_a_wrong_link_is_reported_with_all_other_mistakes(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.device(platform="android", vendor_go=True)
        def test_right(device_session): pass

        @pytest.mark.device(platform="android", vendor_go=True, route_params={"id": 1})
        def test_equal(device_session): pass

        @pytest.mark.device(platform="android", open_route="/", app_id="x")
        def test_more(device_session): pass
    """)

    result = pytester.runpytest_inprocess("--device-local", "--device-plan")

    result.stderr.fnmatch_lines(
        [
            "*test_equal: route_params needs open_route*",
            "*test_more: open_route needs the app's project*",
            "*test_more: app_id='x' must be *",
        ]
    )
    result.stderr.no_fnmatch_line("*test_right*")


def test_an_open_url_without_a_page_is_a_warning_with_the_closest_route(
    project: pytest.Pytester,
) -> None:
    project.makepyfile("""
        import pytest

        build = "4b2b1f6e-6a02-4d4e-9d6f-1a0c3d1b2a11"

        @pytest.mark.parametrize("url", [
            pytest.param(url, marks=pytest.mark.device(open_url=url, build_id=build))
            for url in ("myapp://note/7?token=secret", "myapp://notes/7", "myapp://",
                "https://example.com/x", "com.acme.app://x/y/z")
        ])
        def test_it(url, device_session): pass
    """)
    plan = ("--device-local", "--device-plan", "-W", "default")
    result = project.runpytest_inprocess(*plan)
    warning = "open_url='myapp://note/7?…' opens no page of the app: did you mean the route '/notes/[id]'?"
    assert warning in result.stdout.str()
    result.assert_outcomes(warnings=1)
    error = project.runpytest_inprocess(*plan, "-W", "error")
    assert error.ret == pytest.ExitCode.USAGE_ERROR
    assert warning in error.stderr.str()

    (project.path / "app/app/+native-intent.ts").touch()
    result = project.runpytest_inprocess(*plan)
    result.assert_outcomes(warnings=0)


def test_the_header_shows_what_the_project_adds_to_a_request(
    project: pytest.Pytester,
) -> None:
    put(project.path, {"build/index.html": "<title>app</title>"})
    project.makepyfile("""
        import pytest

        @pytest.mark.device(open_route="/notes/[id]", route_params={"id": 7}, vendor_go=False,
                            build_id="4b2b1f6e-6a02-4d4e-9d6f-1a0c3d1b2a11")
        def test_route(device_session): pass

        @pytest.mark.device(vendor_go=True)
        def test_client(device_session): pass
    """)
    result = project.runpytest_inprocess(
        "--device-url=https://device.example", "--device-plan", "-v"
    )
    result.stdout.fnmatch_lines(
        ["device app id: 3b2b1f6e-* (device_app_root in the ini file)"]
    )
    assert "sdk" in result.stdout.str()
    assert "57" in result.stdout.str()


def test_the_run_shows_values_from_the_project_with_their_source(
    project: pytest.Pytester,
) -> None:
    project.makepyfile("def test_it(): pass")
    result = project.runpytest_inprocess("-v")
    result.stdout.fnmatch_lines_random([
        "device app: sdk_version with vendor_go=True: 57 (the installed package vendor)",
        "device app: appium:bundleId: com.acme.app (ios.bundleIdentifier in app.json)",
        "device app: schemes of links: myapp, apple (scheme in app.json)",
    ])  # fmt: skip
    assert "device app" not in project.runpytest_inprocess().stdout.str()


@pytest.mark.usefixtures("project")
def test_doctor_shows_values_from_the_project(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["doctor"])
    printed = capsys.readouterr().out
    assert (
        "appium:bundleId: com.acme.app, from ios.bundleIdentifier in app.json"
        in printed
    )
    assert f"device_app_id = {UUID}, from device_app_root in the ini file" in printed


def test_an_unreadable_project_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(device_session): pass")
    result = pytester.runpytest_inprocess(
        "--device-local", "--device-platform=ios", "--device-app-root=nowhere"
    )
    result.stderr.fnmatch_lines(["*--device-app-root: *nowhere: is not a directory*"])


def test_a_run_without_the_setting_does_not_import_the_package(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest("""
        import sys

        def pytest_unconfigure():
            print("imported", [name for name in sys.modules if name.startswith("pytest_device.app")])
    """)
    pytester.makepyfile("def test_it(): pass")
    pytester.runpytest_subprocess("-s").stdout.fnmatch_lines(["imported [[]]"])


def test_the_project_of_a_service_started_by_hand_has_precedence(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings_of(project.parseconfig("--device-local")).app_id == UUID

    monkeypatch.setenv("DEVICE_URL", "http://127.0.0.1:8765")
    monkeypatch.setenv("DEVICE_APP_ID", LOCAL_APP_ID)
    config = project.parseconfig()
    assert settings_of(config).app_id == LOCAL_APP_ID
    assert installed_app(config, {}, "ios") == {"appium:bundleId": "com.acme.app"}


def test_appium_gets_the_installed_app_unless_the_suite_names_one(
    project: pytest.Pytester,
) -> None:
    config = project.parseconfig()
    settings_of(config)  # loads the project
    assert installed_app(config, {}, "ios") == {"appium:bundleId": "com.acme.app"}
    assert installed_app(config, {}, "android") == {}
    others = project.parseconfig("--device-app-id=4b2b1f6e-6a02-4d4e-9d6f-1a0c3d1b2a11")
    settings_of(others)
    assert installed_app(others, {}, "ios") == {}
    for chosen in ("appium:app", "appium:bundleId", "browserName"):
        assert installed_app(config, {chosen: "x"}, "ios") == {}
    assert installed_app(config, {"appium:app": None}, "ios") == {}
    for empty in ({"browserName": ""}, {"appium:bundleId": None}, {"appPackage": ""}):
        assert installed_app(config, empty, "ios") == {
            "appium:bundleId": "com.acme.app"
        }
