"""The type of an archive or directory, and whether the device accepts it."""

import asyncio
import json
from pathlib import Path

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.archive import Limits
from pytest_device.service.apps.builds import App
from pytest_device.service.apps.contents import NEEDS, app_of
from tests.service.apps.archives import (
    APK,
    PAGE,
    SIMULATOR_BUILD,
    WEB_BUILD,
    everything_in,
    tarred,
    zipped,
)

WRAPPED = {f"dist/{name}": content for name, content in WEB_BUILD.items()}
MAC_DROPPINGS = {"__MACOSX/dist/._index.html": b"", ".DS_Store": b""}

REFUSED = [
    # kind of device, files of a zip, what is said
    (
        "chromium",
        APK,
        "the app is an Android package (.apk), but the local device is a browser: give a web build",
    ),
    (
        "chromium",
        SIMULATOR_BUILD,
        "the app is an iOS Simulator build (.app), but the local device is a browser",
    ),
    (
        "emulator",
        WEB_BUILD,
        "the app is a web build, but the local device is an Android emulator: give an .apk",
    ),
    (
        "simulator",
        APK,
        "but the local device is an iOS Simulator: give a zip or tar.gz with the one .app directory",
    ),
    (
        "emulator",
        {"BundleConfig.pb": b""},
        "the app is an Android App Bundle (.aab): build an .apk",
    ),
    (
        "simulator",
        {"Payload/Notes.app/Info.plist": b""},
        "a build for iPhones (.ipa): build for the iOS Simulator",
    ),
    (
        "chromium",
        {"a/index.html": PAGE, "b/index.html": PAGE},
        "the app has no app: neither an .app directory nor",
    ),
    ("chromium", {"a/b/index.html": PAGE}, "has no app"),
    ("chromium", {}, "has no app"),
]


def taken(path: Path, kind: str, directory: Path) -> App:
    return asyncio.run(
        app_of(
            path,
            title="the app",
            need=NEEDS[kind],
            directory=directory,
            limits=Limits(),
        )
    )


@pytest.mark.parametrize("files", [WEB_BUILD, WRAPPED, WRAPPED | MAC_DROPPINGS])
def test_a_web_build_is_at_the_top_level_or_in_the_only_directory(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    app = taken(zipped(tmp_path / "notes.zip", files), "chromium", tmp_path)

    assert app.path
    assert everything_in(app.path) == WEB_BUILD


def test_a_simulator_build_is_its_app_directory(tmp_path: Path) -> None:
    app = taken(
        tarred(tmp_path / "build.tar.gz", SIMULATOR_BUILD), "simulator", tmp_path
    )

    assert app.path
    assert app.path.name == "Notes.app"
    assert set(everything_in(app.path)) == {"Info.plist", "Notes"}


def test_an_android_package_is_used_unchanged(tmp_path: Path) -> None:
    apk = zipped(tmp_path / "notes.apk", APK)

    assert taken(apk, "emulator", tmp_path) == App(path=apk)


def test_an_android_package_with_another_extension_is_renamed_for_adb(
    tmp_path: Path,
) -> None:
    apk = zipped(tmp_path / "download", APK)
    app = taken(apk, "emulator", tmp_path)

    assert app.path
    assert app.path.name == "app.apk"
    assert app.path.read_bytes() == apk.read_bytes()


def test_a_directory_is_used_in_place(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/index.html").write_bytes(PAGE)

    assert taken(tmp_path / "dist", "chromium", tmp_path).path == tmp_path / "dist"


@pytest.mark.parametrize(("kind", "files", "said"), REFUSED)
def test_an_unsuitable_app_is_reported_with_the_required_form(
    tmp_path: Path, kind: str, files: dict[str, bytes], said: str
) -> None:
    with pytest.raises(ControllerError) as refused:
        taken(zipped(tmp_path / "app.zip", files), kind, tmp_path)

    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"<html>Not found</html>",
            "neither a zip nor a tar (gzipped or not): it starts with '<html>Not found</html>'",
        ),
        (b"", "neither a zip nor a tar (gzipped or not): it is empty"),
        (b"PK\x03\x04" + bytes(100), "the app is corrupt or incomplete"),
        (b"\x1f\x8b" + bytes(100), "the app is corrupt or incomplete"),
    ],
)
def test_a_file_that_is_not_an_archive_is_reported_with_its_type(
    tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "app.zip").write_bytes(content)

    with pytest.raises(ControllerError) as refused:
        taken(tmp_path / "app.zip", "chromium", tmp_path)

    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("files", "application_id"),
    [
        (
            {
                "manifest.json": json.dumps(
                    {"id": "com.example.notes", "name": "Notes"}
                ).encode()
            },
            "com.example.notes",
        ),
        (
            {"manifest.webmanifest": json.dumps({"id": "/", "name": "Notes"}).encode()},
            "Notes",
        ),
        ({"site.webmanifest": json.dumps({"name": 17}).encode()}, "my-notes"),
        ({"manifest.json": b"{"}, "my-notes"),
        ({"manifest.json": b"[]"}, "my-notes"),
        ({}, "my-notes"),
    ],
)
def test_a_web_app_is_named_after_its_manifest_or_its_archive(
    tmp_path: Path, files: dict[str, bytes], application_id: str
) -> None:
    archive = zipped(tmp_path / "my-notes.zip", WEB_BUILD | files)

    assert taken(archive, "chromium", tmp_path).application_id == application_id


def test_cancelling_waits_for_the_end_of_unpacking(tmp_path: Path) -> None:
    archive = zipped(
        tmp_path / "app.zip",
        {"index.html": PAGE, **{f"{n}.js": b"let a" * 50_000 for n in range(50)}},
    )

    async def cancelled() -> None:
        need = NEEDS["chromium"]
        work = asyncio.create_task(
            app_of(
                archive, title="the app", need=need, directory=tmp_path, limits=Limits()
            )
        )
        while not list(tmp_path.glob("app-*/*")):  # noqa: ASYNC110, ASYNC240  nothing reports when it has started
            await asyncio.sleep(0.001)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        written = everything_in(tmp_path)
        # Waits for the threads that still work.
        await asyncio.get_running_loop().shutdown_default_executor()
        assert everything_in(tmp_path) == written
        assert len(written) < 52

    asyncio.run(cancelled())
