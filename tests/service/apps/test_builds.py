"""The directory of builds: builds that are found, and errors for those that are not."""

import json
from pathlib import Path

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App, Builds
from pytest_device.spec import Platform

BUILD_ID = "7D7A1F0E-0f4c-4f2e-9b0a-0c9d6a1f2b3c"
OTHER_ID = "8d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c"
URL = "https://archives.example/client.zip"
CLIENTS = {"android": {"current": "55", "55": BUILD_ID, "54": URL}, "ios": {"53": URL}}

METADATA = [
    # build.json, what is said
    ("{", "build.json is not JSON: Expecting property name"),
    ("[" * 100_000, "build.json is not JSON: "),
    ("[]", "build.json must hold a JSON object"),
    ("{}", "build.json: set either archive, the name of a file next to it, or webUrl"),
    ('{"archive": "app.zip", "webUrl": "http://localhost:3000"}', "set either archive"),
    (
        '{"archive": "app.zip", "applicationID": "x"}',
        "unknown key 'applicationID': the keys are archive, webUrl, ",
    ),
    (
        '{"archive": "app.zip", "scheme": " "}',
        "build.json: scheme must be a non-blank string",
    ),
    ('{"archive": ["app.zip"]}', "build.json: archive must be a non-blank string"),
    (
        '{"archive": "app.zip", "platform": "ios"}',
        "this build is for 'ios', not android (platform is android or ios)",
    ),
    (
        '{"archive": "other.zip"}',
        "archive 'other.zip' does not exist: put it next to build.json",
    ),
    (
        '{"archive": "../app.zip"}',
        "archive '../app.zip' must be the name of a file or directory next to build.json",
    ),
    (
        '{"archive": "/etc/passwd"}',
        "archive '/etc/passwd' must be the name of a file or directory next to build.json",
    ),
    (
        '{"archive": "."}',
        "archive '.' must be the name of a file or directory next to build.json",
    ),
    (
        '{"webUrl": "file:///etc/passwd"}',
        "webUrl must be the http:// or https:// URL of a web app",
    ),
]


def placed(directory: Path, metadata: object, build_id: str = BUILD_ID) -> Path:
    """Put a build with an archive in the directory."""
    place = directory / build_id.lower()
    place.mkdir()
    (place / "app.zip").touch()
    (place / "build.json").write_text(
        metadata if isinstance(metadata, str) else json.dumps(metadata)
    )
    return place


def refused(builds: Builds, build_id: str = BUILD_ID) -> str:
    with pytest.raises(ControllerError) as caught:
        builds.build(build_id, Platform.ANDROID)
    return str(caught.value)


def refused_client(
    directory: Path,
    sdk_version: str | None = None,
    platform: Platform = Platform.ANDROID,
) -> str:
    with pytest.raises(ControllerError) as caught:
        Builds(directory).client(platform, sdk_version)
    return str(caught.value)


def test_a_build_matches_its_metadata(tmp_path: Path) -> None:
    reported = {
        "archive": "app.zip",
        "platform": "android",
        "applicationId": "com.example.notes",
        "scheme": "notes",
    }
    place = placed(tmp_path, reported)

    assert Builds(tmp_path).build(BUILD_ID, Platform.ANDROID) == App(
        path=place / "app.zip",
        url=None,
        application_id="com.example.notes",
        scheme="notes",
    )


def test_a_build_without_a_platform_is_for_both(tmp_path: Path) -> None:
    placed(tmp_path, {"webUrl": "http://localhost:3000"})

    for platform in Platform:
        assert Builds(tmp_path).build(BUILD_ID, platform).url == "http://localhost:3000"


@pytest.mark.parametrize(("metadata", "said"), METADATA)
def test_invalid_metadata_is_reported_with_its_file_and_rule(
    tmp_path: Path, metadata: str, said: str
) -> None:
    place = placed(tmp_path, metadata)

    problem = refused(Builds(tmp_path))

    assert said in problem
    assert problem.startswith(str(place))


def test_a_directory_without_metadata_is_reported(tmp_path: Path) -> None:
    (tmp_path / BUILD_ID.lower()).mkdir()

    assert "build.json cannot be read: No such file" in refused(Builds(tmp_path))


def test_an_unknown_build_is_reported_with_the_existing_ones(tmp_path: Path) -> None:
    assert "it has no build with a build.json" in refused(Builds(tmp_path))

    placed(tmp_path, {"archive": "app.zip"})

    assert f"no such build in {tmp_path}; its builds are {BUILD_ID.lower()}" in refused(
        Builds(tmp_path), OTHER_ID
    )


def test_without_a_directory_the_ways_to_set_one_are_named(tmp_path: Path) -> None:
    problem = refused(Builds(None))

    assert all(
        way in problem
        for way in ("--device-builds-dir", "--builds-dir", "DEVICE_BUILDS_DIR")
    )
    assert f"{tmp_path / 'no'}, does not exist" in refused(Builds(tmp_path / "no"))


@pytest.mark.parametrize(
    ("sdk_version", "client"), [(None, BUILD_ID), ("55", BUILD_ID), ("54", URL)]
)
def test_a_development_client_is_chosen_by_its_version(
    tmp_path: Path, sdk_version: str | None, client: str
) -> None:
    (tmp_path / "development-clients.json").write_text(json.dumps(CLIENTS))

    assert Builds(tmp_path).client(Platform.ANDROID, sdk_version) == client


def test_an_unknown_version_is_reported_with_the_existing_ones(tmp_path: Path) -> None:
    (tmp_path / "development-clients.json").write_text(json.dumps(CLIENTS))

    assert "sdkVersion 50: " in refused_client(tmp_path, "50")
    assert "has no such version for android; it has 54, 55" in refused_client(
        tmp_path, "50"
    )
    assert "has no 'current' version for ios; it has 53" in refused_client(
        tmp_path, platform=Platform.IOS
    )


def test_without_a_table_an_example_is_shown(tmp_path: Path) -> None:
    problem = refused_client(tmp_path)

    assert f"write {tmp_path / 'development-clients.json'}, for example " in problem
    assert '{"android": {"current": "55", "55": ' in problem


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"android": []}, "development-clients.json: android must be a JSON object"),
        ({"android": {"current": 55}}, "android: current must be a non-blank string"),
        (
            {"android": {"current": "55", "55": "client.apk"}},
            "android 55 must be the UUID of a build or an http(s)",
        ),
        (
            {"android": {"current": "current"}},
            "has no such version for android; it has none",
        ),
    ],
)
def test_an_invalid_table_is_reported(tmp_path: Path, table: object, said: str) -> None:
    (tmp_path / "development-clients.json").write_text(json.dumps(table))

    assert said in refused_client(tmp_path)


def test_the_archive_of_a_development_client_has_a_url(tmp_path: Path) -> None:
    (tmp_path / "development-clients.json").write_text(json.dumps(CLIENTS))
    place = placed(tmp_path, {"archive": "app.zip"})

    assert Builds(tmp_path).client_url(Platform.ANDROID, "54") == URL
    assert (
        Builds(tmp_path).client_url(Platform.ANDROID, None)
        == (place / "app.zip").as_uri()
    )
    assert Builds(tmp_path).client_url(Platform.ANDROID, "50") is None
    assert Builds(None).client_url(Platform.ANDROID, None) is None
