"""Unpacks untrusted archives so that they cannot write outside their own directory."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final

from pytest_device.service.apps.entries import (
    CHUNK_BYTES,
    ArchiveError,
    Entry,
    Kind,
    check_needed,
    entries,
    reading,
    shown,
    too_large,
)

_TAR_NOTES: Final = 4096
"""Maximum bytes of metadata per file in a tar."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for an archive's content and for the time to unpack it.

    Attributes:
        total_bytes: The maximum size of the unpacked content.
        files: The maximum number of files and directories.
        depth: The maximum number of directories on a path.
        ratio: The maximum ratio of unpacked to packed size.
        free_bytes: The size up to which any ratio is accepted.
        seconds: The maximum time.
    """

    total_bytes: int = 2 * 1024**3
    files: int = 50_000
    depth: int = 64
    ratio: int = 100
    free_bytes: int = 32 * 1024**2
    seconds: float = 300.0


def unpack(
    archive: Path, directory: Path, *, limits: Limits, ended: Callable[[], bool]
) -> None:
    """Unpack a zip or tar into an empty directory. Blocks; aborts with ArchiveError soon after ``ended`` returns True.

    Nothing is written outside the directory, only the user can read the files, and links only lead to files of the
    archive. Raises ArchiveError with the reason, and leaves the files written so far to the caller.
    """
    by_ratio = max(limits.free_bytes, limits.ratio * archive.stat().st_size)
    max_bytes = min(by_ratio, limits.total_bytes)
    writing = _Writing(directory, limits, max_bytes, ended)

    with reading():
        max_tar_bytes = max_bytes + _TAR_NOTES * limits.files
        for entry in entries(archive, max_bytes=max_tar_bytes, ended=ended):
            writing.add(entry)
        writing.link()


class _Writing:
    """An unpacking in progress, and its limits."""

    def __init__(
        self,
        directory: Path,
        limits: Limits,
        max_bytes: int,
        ended: Callable[[], bool],
    ) -> None:
        self._max_bytes = max_bytes
        self._directory = directory
        self._limits = limits
        self._ended = ended
        self._bytes = 0
        self._names = 0
        self._directories = {directory}
        self._links: list[tuple[Path, str]] = []

    def add(self, entry: Entry) -> None:
        """Write an entry, or store a link for the end: until then no path can lead elsewhere."""
        check_needed(self._ended)
        self._count_name()
        path = self._path(entry.name)

        match entry.kind:
            case Kind.DIRECTORY:
                self._make(path)
            case Kind.FILE if entry.stream:
                self._write(path, entry, entry.stream)
            case Kind.COPY:
                with _opened(self._path(entry.target), entry) as stream:
                    self._write(path, entry, stream)
            case Kind.LINK:
                self._links.append((path, entry.target))
            case kind:
                raise ArchiveError(f"has {kind.value}, {shown(entry.name)}")

    def link(self) -> None:
        """Create the links; each must lead to a file in the directory."""
        for path, _ in self._links:
            self._make(path.parent)

        for path, target in self._links:
            path.symlink_to(target)

        # Once all exist: a link may lead to another one.
        root = os.path.realpath(self._directory)
        for path, target in self._links:
            real_path = Path(os.path.realpath(path))
            if not real_path.is_relative_to(root) or not path.exists():
                raise ArchiveError(
                    f"has a link {shown(path.name)} to a target outside of it: {shown(target)}"
                )

    def _path(self, name: str) -> Path:
        parts = PurePosixPath(name.replace("\\", "/")).parts
        path = self._directory.joinpath(*parts)
        if ".." in parts or not path.is_relative_to(self._directory) or "\0" in name:
            raise ArchiveError(f"has a path that leads out of it, {shown(name)}")
        if len(parts) > self._limits.depth:
            raise ArchiveError(
                f"has directories nested deeper than {self._limits.depth}"
            )

        return path

    def _make(self, directory: Path) -> None:
        """Create a directory with its missing parents; each counts as a name."""
        missing: list[Path] = []
        while directory not in self._directories:
            missing.append(directory)
            directory = directory.parent

        for path in reversed(missing):
            self._count_name()
            path.mkdir(mode=0o700)
            self._directories.add(path)

    def _write(self, path: Path, entry: Entry, stream: IO[bytes]) -> None:
        self._make(path.parent)
        mode = 0o700 if entry.executable else 0o600
        # O_BINARY exists on Windows only, where line ends would be translated without it.
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(path, flags, mode)
        except FileExistsError:
            raise ArchiveError(f"has {shown(entry.name)} twice") from None

        with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor is not a path
            while chunk := stream.read(CHUNK_BYTES):
                self._count(len(chunk))
                file.write(chunk)

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._max_bytes:
            raise too_large(self._max_bytes)

        check_needed(self._ended)

    def _count_name(self) -> None:
        self._names += 1
        if self._names > self._limits.files:
            raise ArchiveError(
                f"has more than {self._limits.files} files and directories"
            )


def _opened(path: Path, entry: Entry) -> IO[bytes]:
    if not path.is_file():
        raise ArchiveError(
            f"has a hard link, {shown(entry.name)}, to a missing file: {shown(entry.target)}"
        )
    return path.open("rb")
