"""From a create request to the app."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App, Builds
from pytest_device.service.apps.source import Sources
from tests.service.apps.archives import APK, PAGE, WEB_BUILD, everything_in, zipped
from tests.service.apps.web import Answer, web

BUILD_ID = "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c"


@pytest.fixture
def builds_dir(tmp_path: Path) -> Path:
    """Provide a directory of builds with one web build, also the current development client for Android."""
    directory = tmp_path / "builds"
    (directory / BUILD_ID).mkdir(parents=True)
    zipped(directory / BUILD_ID / "notes.zip", WEB_BUILD)
    metadata = {
        "archive": "notes.zip",
        "applicationId": "com.example.notes",
        "scheme": "notes",
    }
    (directory / BUILD_ID / "build.json").write_text(json.dumps(metadata))
    (directory / "development-clients.json").write_text(
        json.dumps({"android": {"current": "55", "55": BUILD_ID}})
    )
    return directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "session").mkdir()
    return tmp_path / "session"


def found(
    directory: Path,
    builds_dir: Path | None = None,
    kind: str = "chromium",
    **request: Any,
) -> App | None:
    request = {"platform": "android", "type": "agent-device", **request}
    return asyncio.run(Sources(directory, kind, Builds(builds_dir)).requested(request))


def at(
    directory: Path, place: str, answers: Mapping[str, Answer], kind: str = "chromium"
) -> App:
    with web(answers) as url:
        return asyncio.run(
            Sources(directory, kind, Builds(None)).at(place.format(url=url))
        )


def test_a_request_without_a_source_has_no_app(directory: Path) -> None:
    assert found(directory) is None
    assert found(directory, vendorGo=False) is None


def test_in_an_appium_session_the_client_installs_the_app(directory: Path) -> None:
    assert found(directory, type="appium", buildId=BUILD_ID) is None


@pytest.mark.parametrize(
    "source",
    [{"buildId": BUILD_ID}, {"vendorGo": True}, {"vendorGo": True, "sdkVersion": "55"}],
)
def test_a_build_is_unpacked_in_the_sessions_directory(
    directory: Path, builds_dir: Path, source: dict[str, Any]
) -> None:
    app = found(directory, builds_dir, **source)

    assert app
    assert app.path
    assert app.path.is_relative_to(directory)
    assert everything_in(app.path) == WEB_BUILD
    assert (app.application_id, app.scheme) == ("com.example.notes", "notes")


def test_a_build_with_a_web_url_is_not_downloaded(
    directory: Path, builds_dir: Path
) -> None:
    (builds_dir / BUILD_ID / "build.json").write_text(
        '{"webUrl": "http://ada@localhost:3000/app"}'
    )

    assert found(directory, builds_dir, buildId=BUILD_ID) == App(
        url="http://ada@localhost:3000/app", application_id="localhost:3000"
    )
    with pytest.raises(
        ControllerError,
        match="is a web app, but the local device is an Android emulator",
    ):
        found(directory, builds_dir, "emulator", buildId=BUILD_ID)


def test_an_archive_is_downloaded_and_reported(tmp_path: Path, directory: Path) -> None:
    archive = zipped(tmp_path / "any", WEB_BUILD).read_bytes()
    notes: list[str] = []

    with web({"/notes.tar.gz?sig=abcdefgh": Answer(archive)}) as url:
        request = {
            "platform": "ios",
            "applicationArchiveUrl": f"{url}/notes.tar.gz?sig=abcdefgh",
        }
        fetching = Sources(directory, "chromium", Builds(None), notes.append).requested(
            request
        )
        app = asyncio.run(fetching)

    assert app
    assert app.path
    assert everything_in(app.path) == WEB_BUILD
    assert app.application_id == "notes"
    assert "sha256" in notes[0]


def test_an_unsuitable_archive_is_reported_without_its_signature(
    tmp_path: Path, directory: Path
) -> None:
    archive = zipped(tmp_path / "any", APK).read_bytes()

    with pytest.raises(ControllerError) as refused:
        at(
            directory,
            "{url}/notes.apk?sig=abcdefgh",
            {"/notes.apk?sig=abcdefgh": Answer(archive)},
        )

    assert (
        "/notes.apk?… is an Android package (.apk), but the local device is a browser"
        in str(refused.value)
    )
    assert "abcdefgh" not in str(refused.value)


def test_the_url_of_a_page_is_a_web_app_if_the_device_supports_it(
    directory: Path,
) -> None:
    page = Answer(PAGE, headers={"Content-Type": "text/html"})

    app = at(directory, "{url}/notes", {"/notes": page})

    assert app.url
    assert app.url.endswith("/notes")
    with pytest.raises(
        ControllerError, match="is a web app, but the local device is an iOS Simulator"
    ):
        at(directory, "{url}/notes", {"/notes": page}, "simulator")


def test_a_local_path_is_an_app_too(tmp_path: Path, directory: Path) -> None:
    apk = zipped(tmp_path / "notes.apk", APK)

    assert at(directory, str(apk), {}, "emulator") == App(path=apk)
    with pytest.raises(ControllerError, match="/no/such cannot be read: No such file"):
        at(directory, "/no/such", {})


def test_a_device_without_apps_refuses_them(directory: Path, builds_dir: Path) -> None:
    with pytest.raises(
        ControllerError,
        match="no app can be installed on the local device: its kind is fake",
    ):
        found(directory, builds_dir, "fake", buildId=BUILD_ID)
