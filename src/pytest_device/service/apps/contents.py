"""Recognizes the app in an archive or a directory: an Android package, an iOS Simulator build, a web build."""

import asyncio
import json
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, cast

from pytest_device.errors import ControllerError
from pytest_device.service.apps.archive import Limits, unpack
from pytest_device.service.apps.builds import App
from pytest_device.service.apps.entries import ArchiveError, form_of, names_at_top
from pytest_device.service.apps.site import INDEX


class Form(Enum):
    """The kind of an app, as named in messages."""

    APK = "an Android package (.apk)"
    SIMULATOR_BUILD = "an iOS Simulator build (.app)"
    WEB_BUILD = "a web build"


@dataclass(frozen=True, slots=True)
class Need:
    """The kind of app that a device needs; ``what`` describes it in messages."""

    form: Form
    what: str


NEEDS: Final[Mapping[str, Need]] = {
    "emulator": Need(Form.APK, "an Android emulator: give an .apk"),
    "simulator": Need(
        Form.SIMULATOR_BUILD,
        "an iOS Simulator: give a zip or tar.gz with the one .app directory",
    ),
    "chromium": Need(
        Form.WEB_BUILD,
        f"a browser: give a web build, a zip or tar.gz with an {INDEX} at its top level",
    ),
}
"""By kind of device."""

_MANIFESTS: Final = ("manifest.json", "manifest.webmanifest", "site.webmanifest")
_MANIFEST_BYTES: Final = 1024 * 1024
_APK_SIGN: Final = "AndroidManifest.xml"
_OF_OTHERS: Final = {
    "BundleConfig.pb": "an Android App Bundle (.aab): build an .apk",
    "Payload": "a build for iPhones (.ipa): build for the iOS Simulator",
}
"""Builds for other targets, by a name at their top level."""
_SYSTEM_NAMES: Final = ("__MACOSX",)
_SUFFIXES: Final = (".zip", ".tar.gz", ".tgz", ".tar", ".apk")


async def app_of(
    path: Path, *, title: str, need: Need, directory: Path, limits: Limits
) -> App:
    """Return the app in an archive, an .apk or a directory; archives are unpacked below ``directory``.

    Messages start with ``title``. Raises ControllerError if it is not an app, or not one for the device.
    """
    ended = threading.Event()
    reading = asyncio.ensure_future(
        asyncio.to_thread(_app_of, path, title, need, directory, limits, ended)
    )

    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        # A thread cannot be cancelled, and must not write to a directory that is being removed.
        ended.set()
        await asyncio.wait({reading})
        reading.exception()  # it was aborted on purpose
        raise


def _app_of(
    path: Path,
    title: str,
    need: Need,
    directory: Path,
    limits: Limits,
    ended: threading.Event,
) -> App:
    try:
        if path.is_dir():
            return _in_directory(path, title, need, _stem(path.name))
        if _is_apk(path, title):
            return _fitting(
                App(path=_named_apk(path, directory)), Form.APK, title, need
            )

        unpacked = Path(tempfile.mkdtemp(prefix="app-", dir=directory))
        unpack(path, unpacked, limits=limits, ended=ended.is_set)
        return _in_directory(unpacked, title, need, _stem(path.name))
    except ArchiveError as error:
        raise ControllerError(f"{title} {error}") from error
    except OSError as error:
        raise ControllerError(
            f"{title} cannot be read: {error.strerror or error}"
        ) from error


def _is_apk(path: Path, title: str) -> bool:
    form = form_of(path)
    if form is None:
        raise ControllerError(
            f"{title} is neither a zip nor a tar (gzipped or not): {_beginning(path)}"
        )

    names = names_at_top(path) if form == "zip" else frozenset[str]()
    for name, description in _OF_OTHERS.items():
        if name in names:
            raise ControllerError(f"{title} is {description}")

    return _APK_SIGN in names


def _named_apk(path: Path, directory: Path) -> Path:
    """Return a path that adb accepts: it checks the suffix."""
    if path.suffix == ".apk":
        return path

    named = Path(tempfile.mkdtemp(prefix="app-", dir=directory), "app.apk")
    named.symlink_to(path)
    return named


def _beginning(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(32)

    if not head:
        return "it is empty"
    return f"it starts with {head.decode(errors='replace')!a}"


def _in_directory(directory: Path, title: str, need: Need, stem: str) -> App:
    """Return the app in a directory; ``stem`` is the ID of a web app whose manifest has none."""
    simulator_build = _simulator_build(directory)
    if simulator_build is not None:
        return _fitting(App(path=simulator_build), Form.SIMULATOR_BUILD, title, need)

    web_build = _web_build(directory)
    if web_build is not None:
        application_id = _named_by_manifest(web_build) or stem
        app = App(path=web_build, application_id=application_id)
        return _fitting(app, Form.WEB_BUILD, title, need)

    fix = need.what.partition(": ")[2]
    raise ControllerError(
        f"{title} has no app: neither an .app directory nor an {INDEX} at its top level; {fix}"
    )


def _fitting(app: App, form: Form, title: str, need: Need) -> App:
    if form is not need.form:
        raise ControllerError(
            f"{title} is {form.value}, but the local device is {need.what}"
        )
    return app


def _simulator_build(directory: Path) -> Path | None:
    """Return the only .app directory at the top level, or below a single directory there."""
    top_level = _visible_in(directory)
    inner = (
        _visible_in(top_level[0])
        if len(top_level) == 1 and top_level[0].is_dir()
        else []
    )
    apps = [
        path
        for path in (directory, *top_level, *inner)
        if path.suffix == ".app" and (path / "Info.plist").is_file()
    ]
    return apps[0] if len(apps) == 1 else None


def _web_build(directory: Path) -> Path | None:
    """Return the directory with an index, which may be a single one at the top level."""
    top_level = _visible_in(directory)
    if (directory / INDEX).is_file():
        return directory
    if len(top_level) == 1 and (top_level[0] / INDEX).is_file():
        return top_level[0]
    return None


def _visible_in(directory: Path) -> list[Path]:
    return [
        path
        for path in directory.iterdir()
        if path.name not in _SYSTEM_NAMES and not path.name.startswith(".")
    ]


def _named_by_manifest(directory: Path) -> str | None:
    """Return the ID, or else the name, from a web app's manifest, None without a readable one."""
    for name in _MANIFESTS:
        path = directory / name
        if path.is_file() and path.stat().st_size <= _MANIFEST_BYTES:
            return _name_in(path.read_bytes())

    return None


def _name_in(manifest: bytes) -> str | None:
    try:
        fields: object = json.loads(manifest)
    except (ValueError, RecursionError):  # browsers ignore an invalid manifest, too
        return None

    if not isinstance(fields, dict):
        return None

    for key in ("id", "name"):
        value = cast("dict[str, object]", fields).get(key)
        name = value.strip("/ ") if isinstance(value, str) else ""
        if name:
            return name
    return None


def _stem(name: str) -> str:
    """Return a file name without the suffix of an archive."""
    for suffix in _SUFFIXES:
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
            break
    return name or "app"
