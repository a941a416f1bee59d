"""Handmade archives, including hostile ones."""

import io
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

PAGE = b"<!doctype html><title>Notes</title>"
WEB_BUILD = {"index.html": PAGE, "static/app.js": b"let notes = []"}
APK = {"AndroidManifest.xml": b"\x03\x00", "classes.dex": b"dex"}
SIMULATOR_BUILD = {"Notes.app/Info.plist": b"<plist/>", "Notes.app/Notes": b"binary"}


def zipped(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, files: Mapping[str, bytes]) -> Path:
    return tar_of(
        path,
        *((named(name, size=len(content)), content) for name, content in files.items()),
    )


def tar_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """Write a tar, gzipped where its name says so."""
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return path


def named(
    name: str,
    kind: bytes = tarfile.REGTYPE,
    *,
    target: str = "",
    size: int = 0,
    mode: int = 0o644,
) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size, member.mode = kind, target, size, mode
    return member


def zip_entry(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def zip_with_link(path: Path, target: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("index.html", PAGE)
        archive.writestr(zip_entry("link", stat.S_IFLNK | 0o777), target)
    return path


def zip_with_device(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zip_entry("null", stat.S_IFCHR | 0o666), b"")
    return path


def zip_that_lies(path: Path, content: bytes) -> Path:
    """Write a zip with one stored file whose declared size is one byte."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("small.txt", content)
    size = len(content).to_bytes(4, "little")
    path.write_bytes(
        path.read_bytes().replace(2 * size, size + (1).to_bytes(4, "little"))
    )
    return path


def encrypted(path: Path) -> Path:
    """Set the encryption flag on the only file of a zip: in its header, and in the central directory."""
    zipped(path, {"index.html": PAGE})
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    return path


def shortened(path: Path, by: int) -> Path:
    path.write_bytes(path.read_bytes()[:-by])
    return path


def everything_in(directory: Path) -> dict[str, bytes]:
    """Return all files, by their names from the directory on."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }
