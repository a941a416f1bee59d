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
    for name, found in _OF_OTHERS.items():
        if name in names:
            raise ControllerError(f"{title} is {found}")

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

    return (
        f"it starts with {head.decode(errors='replace')!a}" if head else "it is empty"
    )


def _in_directory(directory: Path, title: str, need: Need, stem: str) -> App:
    if found := _simulator_build(directory):
        return _fitting(App(path=found), Form.SIMULATOR_BUILD, title, need)
    if found := _web_build(directory):
        return _fitting(
            App(path=found, application_id=_named_by_manifest(found) or stem),
            Form.WEB_BUILD,
            title,
            need,
        )

    wanted = need.what.partition(": ")[2]
    raise ControllerError(
        f"{title} has no app: neither an .app directory nor an {INDEX} at its top level; {wanted}"
    )


def _fitting(app: App, form: Form, title: str, need: Need) -> App:
    if form is not need.form:
        raise ControllerError(
            f"{title} is {form.value}, but the local device is {need.what}"
        )
    return app


def _simulator_build(directory: Path) -> Path | None:
    tops = _tops(directory)
    inner = _tops(tops[0]) if len(tops) == 1 and tops[0].is_dir() else []
    found = [
        path
        for path in (directory, *tops, *inner)
        if path.suffix == ".app" and (path / "Info.plist").is_file()
    ]

    return found[0] if len(found) == 1 else None


def _web_build(directory: Path) -> Path | None:
    tops = _tops(directory)
    candidates = [directory, *(tops if len(tops) == 1 else ())]
    return next(
        (candidate for candidate in candidates if (candidate / INDEX).is_file()), None
    )


def _tops(directory: Path) -> list[Path]:
    return [
        path
        for path in directory.iterdir()
        if path.name not in _SYSTEM_NAMES and not path.name.startswith(".")
    ]


def _named_by_manifest(directory: Path) -> str | None:
    """Return the ID, or else the name, from a web app's manifest, None without a readable one."""
    for path in (directory / name for name in _MANIFESTS):
        if path.is_file() and path.stat().st_size <= _MANIFEST_BYTES:
            return _name_in(path.read_bytes())

    return None


def _name_in(manifest: bytes) -> str | None:
    try:
        fields: object = json.loads(manifest)
    except (ValueError, RecursionError):  # browsers ignore an invalid manifest, too
        return None

    named = cast("dict[str, object]", fields) if isinstance(fields, dict) else {}
    names = (named.get(key) for key in ("id", "name"))
    return next(
        (
            name.strip("/ ")
            for name in names
            if isinstance(name, str) and name.strip("/ ")
        ),
        None,
    )


def _stem(name: str) -> str:
    suffix = next((suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(suffix)] or "app"
