"""Reads the entries of an archive one by one, without trusting its metadata."""

import gzip
import io
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import IO, Final, Literal

from pytest_device.errors import ControllerError

Form = Literal["zip", "tar"]

CHUNK_BYTES: Final = 64 * 1024
"""Maximum bytes of a stream to read at once."""

_HEAD_BYTES: Final = 512
_ZIP_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP_MAGIC: Final = b"\x1f\x8b"
_TAR_MAGIC: Final = b"ustar"
_TAR_MAGIC_AT: Final = slice(257, 262)
_LINK_BYTES: Final = 4096
_SHOWN_LENGTH: Final = 80
_ENCRYPTED: Final = 0x1
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Decompressors for other methods return a whole block at once, however large it is."""
_ZIP_AT_ONCE: Final = 8 * 1024 * 1024
"""Maximum bytes to read at once: zipfile reads metadata such as the directory at once."""
_TAR_AT_ONCE: Final = max(CHUNK_BYTES, io.DEFAULT_BUFFER_SIZE)
"""Limit for metadata such as long names; tarfile takes quadratic time for long numbers."""
_UNREADABLE: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    gzip.BadGzipFile,
    EOFError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""Exceptions of the libraries for corrupt or malicious archives."""


class ArchiveError(ControllerError):
    """An archive that cannot or must not be unpacked. The message follows the archive's name."""


class Kind(Enum):
    """The kind of an entry, as named in messages."""

    DIRECTORY = "a directory"
    FILE = "a file"
    LINK = "a symbolic link"
    COPY = "a hard link"
    OTHER = "a device, a socket or a pipe"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an archive; ``target`` is a link's target, ``stream`` a file's content."""

    name: str
    kind: Kind
    executable: bool = False
    target: str = ""
    stream: IO[bytes] | None = None


def form_of(archive: Path) -> Form | None:
    """Return the format of an archive based on its content, not its name; None if it is unsupported."""
    with archive.open("rb") as file:
        head = file.read(_HEAD_BYTES)

    if head.startswith(_ZIP_MAGIC):
        return "zip"
    if head.startswith(_GZIP_MAGIC) or head[_TAR_MAGIC_AT] == _TAR_MAGIC:
        return "tar"
    return None


def names_at_top(archive: Path) -> frozenset[str]:
    """Return the names at the top level of a zip. Raises ArchiveError for an invalid one."""
    with (
        reading(),
        archive.open("rb") as file,
        zipfile.ZipFile(_Bounded(file, _ZIP_AT_ONCE)) as contents,
    ):
        paths = [PurePosixPath(name) for name in contents.namelist()]
        return frozenset(path.parts[0] for path in paths if path.parts)


def entries(
    archive: Path, *, max_bytes: int, ended: Callable[[], bool]
) -> Iterator[Entry]:
    """Yield the entries of a zip or tar; each stream is valid until the next entry.

    Raises ArchiveError, also for a tar of more than ``max_bytes`` and soon after ``ended`` returns True.
    """
    if form_of(archive) == "zip":
        return _zip_entries(archive)
    return _tar_entries(archive, max_bytes, ended)


@contextmanager
def reading() -> Generator[None]:
    """Turn errors in the block into an ArchiveError."""
    try:
        yield
    except _UNREADABLE as error:
        reason = str(error) or type(error).__name__
        raise ArchiveError(f"is corrupt or incomplete: {reason}") from error
    except OSError as error:
        raise ArchiveError(f"cannot be unpacked: {error.strerror or error}") from error


def check_needed(ended: Callable[[], bool]) -> None:
    """Raise ArchiveError if the archive is no longer needed."""
    if ended():
        raise ArchiveError("is no longer needed")


def too_large(max_bytes: int) -> ArchiveError:
    """Return the error for an archive whose content is too large."""
    return ArchiveError(
        f"unpacks to more than {max_bytes} bytes, the limit for its size"
    )


def shown(name: str) -> str:
    """Return a name for a message, with special characters escaped."""
    text = ascii(name)
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"


class _Bounded(io.RawIOBase):
    """A file with a limit for each read: the libraries read as much as the archive's metadata says."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile, at_once: int) -> None:
        self._file = file
        self._at_once = at_once

    def read(self, size: int = -1) -> bytes:
        # One byte more than the limit shows that there is more.
        limit = self._at_once + 1
        data = self._file.read(limit if size < 0 else min(size, limit))
        if len(data) > self._at_once:
            raise ArchiveError(f"has more than {self._at_once} bytes of metadata")

        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


class _Forward(_Bounded):
    """A file that is read forward up to a limit: negative sizes would send tarfile into a loop."""

    def __init__(
        self,
        file: IO[bytes] | gzip.GzipFile,
        max_bytes: int,
        ended: Callable[[], bool],
    ) -> None:
        super().__init__(file, _TAR_AT_ONCE)
        self._max_bytes = max_bytes
        self._ended = ended

    def read(self, size: int = -1) -> bytes:
        check_needed(self._ended)
        return super().read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        position = super().seek(0, os.SEEK_CUR)
        if (offset, whence) == (0, os.SEEK_CUR):
            return position
        if whence != os.SEEK_SET or offset < position:
            raise ArchiveError("is corrupt: it refers back to an earlier position")
        if offset > self._max_bytes:
            raise too_large(self._max_bytes)

        return super().seek(offset, whence)


class _Packed(io.RawIOBase):
    """The packed bytes of a tar: gzip reads a name, or members without content, to their end before it returns."""

    def __init__(self, file: IO[bytes], ended: Callable[[], bool]) -> None:
        self._file = file
        self._ended = ended

    def read(self, size: int = -1) -> bytes:
        check_needed(self._ended)
        return self._file.read(size)


def _zip_entries(archive: Path) -> Iterator[Entry]:
    with (
        archive.open("rb") as file,
        zipfile.ZipFile(_Bounded(file, _ZIP_AT_ONCE)) as contents,
    ):
        for info in contents.infolist():
            if info.flag_bits & _ENCRYPTED:
                raise ArchiveError("is encrypted")
            if info.compress_type not in _METHODS:
                raise ArchiveError(
                    f"uses an unsupported compression method, number {info.compress_type}"
                )

            with contents.open(info) as stream:
                yield _zip_entry(info, stream)


def _zip_entry(info: zipfile.ZipInfo, stream: IO[bytes]) -> Entry:
    mode = info.external_attr >> 16  # 0 in archives that were not created on Unix
    kinds = {
        0: Kind.DIRECTORY if info.is_dir() else Kind.FILE,
        stat.S_IFDIR: Kind.DIRECTORY,
        stat.S_IFREG: Kind.FILE,
        stat.S_IFLNK: Kind.LINK,
    }
    kind = kinds.get(stat.S_IFMT(mode), Kind.OTHER)
    target = os.fsdecode(stream.read(_LINK_BYTES)) if kind is Kind.LINK else ""

    return Entry(info.filename, kind, bool(mode & stat.S_IXUSR), target, stream)


def _tar_entries(
    archive: Path, max_bytes: int, ended: Callable[[], bool]
) -> Iterator[Entry]:
    with (
        archive.open("rb") as file,
        _unzipped(file, ended) as data,
        tarfile.open(fileobj=_Forward(data, max_bytes, ended), mode="r:") as contents,
    ):
        for member in contents:
            yield _tar_entry(contents, member)


def _unzipped(file: IO[bytes], ended: Callable[[], bool]) -> IO[bytes] | gzip.GzipFile:
    is_packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    file.seek(0)
    return gzip.GzipFile(fileobj=_Packed(file, ended)) if is_packed else file


def _tar_entry(contents: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    if member.issparse():
        raise ArchiveError(f"has a sparse file, {shown(member.name)}")

    kind = _TAR_KINDS.get(member.type, Kind.OTHER)
    stream = contents.extractfile(member) if kind is Kind.FILE else None
    return Entry(
        member.name, kind, bool(member.mode & stat.S_IXUSR), member.linkname, stream
    )


_TAR_KINDS: Final = {
    tarfile.REGTYPE: Kind.FILE,
    tarfile.AREGTYPE: Kind.FILE,
    tarfile.CONTTYPE: Kind.FILE,
    tarfile.DIRTYPE: Kind.DIRECTORY,
    tarfile.SYMTYPE: Kind.LINK,
    tarfile.LNKTYPE: Kind.COPY,
}
