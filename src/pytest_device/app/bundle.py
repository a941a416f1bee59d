"""Contents of a build: public values, debug IDs and leaked secrets."""

import gzip
import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, TypeAlias, cast

from pytest_device.app.checks.finding import Finding, failed
from pytest_device.app.env import MODES, load_env
from pytest_device.app.files import open_file
from pytest_device.app.needles import MIN_LENGTH, spellings
from pytest_device.app.project import Project
from pytest_device.errors import ProjectError

_of_lzma: tuple[type[Exception], ...]
try:
    from lzma import LZMAError
except ImportError:  # a Python without lzma refuses such archives with other errors
    _of_lzma = ()
else:
    _of_lzma = (LZMAError,)

BROKEN_ARCHIVE: Final[tuple[type[Exception], ...]] = (
    OSError,
    EOFError,
    LookupError,
    RuntimeError,  # encrypted, or compressed in an unknown way
    ValueError,
    *_of_lzma,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Errors of the standard library for an archive that cannot be read."""
MAX_BYTES: Final = 4 * 1024**3
"""Maximum size of unpacked content, in bytes; guards against decompression bombs."""
MAX_NESTING: Final = 3

Entry: TypeAlias = tuple[str, IO[bytes]]
"""Name and content of a file."""

Variable: TypeAlias = tuple[str, str]
"""Name of a variable and one of its values."""

_CHUNK: Final = 4 * 1024 * 1024
_OVERLAP: Final = 64 * 1024
_DEBUG_ID: Final = re.compile(
    rb"(?://[#@] debugId=|\"debugId\"\s*:\s*\")([0-9a-fA-F]{8}-[0-9a-fA-F-]{27})"
)


@dataclass(frozen=True)
class Bundle:
    """Contents of a build: ``public`` lists the public variables whose values it contains.

    ``unchecked`` lists variables whose values are too short to search for; ``debug_ids`` maps file paths to debug IDs.
    """

    path: Path
    public: tuple[str, ...]
    addresses: tuple[str, ...]
    debug_ids: Mapping[str, str]
    unchecked: tuple[str, ...]
    files: int
    findings: tuple[Finding, ...] = field(repr=False)


def inspect_bundle(
    path: Path, project: Project, *, allowed: Iterable[str] = ()
) -> Bundle:
    """Search a file, archive or directory for values from the project's environment files, in all modes.

    A secret is the value, 8 characters or longer, of a variable that is neither public nor ``allowed``, unless a public
    variable has the same value. Raises ProjectError if the path can't be read or contains more than 4 GB.
    """
    if not path.exists():
        raise ProjectError("does not exist", path=path)
    prefix = project.vendor.public_prefix
    public, secrets = _values(project, prefix)
    known = {value for _, value in public}
    secrets = {
        (name, value)
        for name, value in secrets
        if value not in known and name not in set(allowed)
    }
    long = {
        (name, value) for name, value in public | secrets if len(value) >= MIN_LENGTH
    }
    search = _Search({one: spellings(one[1]) for one in long})
    count = sum(search.file(name, content) for name, content in _contents(path))
    leaks = sorted({(one[0], where) for one, where in search.found if one in secrets})
    shipped = sorted({one for one, _ in search.found if one in public})
    return Bundle(
        path,
        tuple(dict.fromkeys(name for name, _ in shipped)),
        tuple(dict.fromkeys(value for _, value in shipped if "://" in value)),
        search.debug_ids,
        tuple(sorted({name for name, _ in (public | secrets) - long})),
        count,
        (
            *(_leak(path, name, where) for name, where in leaks),
            *_disagreements(path, search),
        ),
    )


def _values(project: Project, prefix: str) -> tuple[set[Variable], set[Variable]]:
    """Return the public and the other variables of all environment files, with every value they have."""
    modes = [load_env(project.root, mode, {}, vendor=project.vendor) for mode in MODES]
    loaded = {pair for env in modes for pair in env.from_files().items()} | set(
        project.env.from_files().items()
    )
    loaded |= {
        (name, project.env.values[name])
        for name, _ in loaded
        if name in project.env.values
    }
    values = {(name, value) for name, value in loaded if value}
    public = {(name, value) for name, value in values if name.startswith(prefix)}
    return public, values - public


def _leak(path: Path, name: str, where: str) -> Finding:
    fix = "read it on a server, revoke it and build again"
    return failed(
        "bundle-secret",
        path / where if where else path,
        f"contains the value of {name}",
        fix,
    )


@dataclass
class _Search:
    needles: dict[Variable, set[bytes]]
    found: set[tuple[Variable, str]] = field(default_factory=set[tuple[Variable, str]])
    """Variables with the names of the files that contain their values."""
    debug_ids: dict[str, str] = field(default_factory=dict[str, str])
    maps: set[str] = field(default_factory=set[str])
    total: int = 0

    def file(self, name: str, content: IO[bytes]) -> int:
        """Search one file and return 1, so that callers can sum up the files."""
        self.maps |= {name} if name.endswith(".map") else set()
        tail = b""
        for chunk in _chunks(name, content):
            self.total += len(chunk)
            if self.total > MAX_BYTES:
                raise ProjectError(
                    f"has more than {MAX_BYTES // 1024**3} GB of content",
                    path=Path(name),
                )
            self._text(name, tail + chunk)
            tail = chunk[-_OVERLAP:]
        return 1

    def _text(self, name: str, text: bytes) -> None:
        for variable, needles in self.needles.items():
            if (variable, name) not in self.found and any(
                needle in text for needle in needles
            ):
                self.found.add((variable, name))
        for identifier in _DEBUG_ID.finditer(text):
            self.debug_ids[name] = identifier[1].decode().lower()


def _chunks(name: str, content: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file; a broken archive often shows only while it is read."""
    try:
        while chunk := content.read(_CHUNK):
            yield chunk
    except BROKEN_ARCHIVE as error:
        raise ProjectError(f"cannot be searched: {error}", path=Path(name)) from None


def _disagreements(path: Path, search: _Search) -> Iterator[Finding]:
    """Yield the bundles with another debug ID than their map; bytecode has none, even if its map has one."""
    for name, identifier in search.debug_ids.items():
        if (
            f"{name}.map" in search.maps
            and (other := search.debug_ids.get(f"{name}.map")) != identifier
        ):
            what = f"the map has {'a different' if other else 'no'} debug ID"
            yield failed("bundle-debug-id", path / name, what, "export both together")


def _contents(path: Path) -> Iterator[Entry]:
    """Yield the files under a path, including those in archives, with their relative names."""
    if not path.is_dir():
        # An archive is recognized by its name.
        for name, content in _file(path, path.name):
            yield name.removeprefix(path.name).lstrip("/"), content
        return
    for directory, names, files in os.walk(path, onerror=_unsearched):
        names.sort()
        for one in (Path(directory, name) for name in sorted(files)):
            if one.is_file() and not one.is_symlink():
                yield from _file(one, one.relative_to(path).as_posix())


def _unsearched(error: OSError) -> None:
    raise ProjectError(
        f"cannot be searched: {error.strerror}", path=Path(error.filename)
    )


def _file(path: Path, name: str) -> Iterator[Entry]:
    try:
        with open_file(path) as content:
            yield from _unpacked(name, content, 0)
    except BROKEN_ARCHIVE as error:
        raise ProjectError(f"cannot be searched: {error}", path=path) from None


def _unpacked(name: str, content: IO[bytes], depth: int) -> Iterator[Entry]:
    """Yield a file and, if it is an archive, its entries."""
    yield name, content
    content.seek(0)
    if depth == MAX_NESTING:
        return
    for inner_name, inner in _entries(name, content):
        yield from _unpacked(f"{name}/{inner_name}".lstrip("/"), inner, depth + 1)


def _entries(name: str, content: IO[bytes]) -> Iterator[Entry]:
    if name.endswith((".tar", ".tgz", ".tar.gz")):
        with tarfile.open(fileobj=content) as archive:
            for member in archive:
                # A link's target may be missing.
                inner = archive.extractfile(member) if member.isfile() else None
                if inner is not None:
                    yield member.name, inner
    elif name.endswith(".gz"):
        with gzip.open(content) as plain:
            yield name.rpartition("/")[2].removesuffix(".gz"), cast("IO[bytes]", plain)
    elif zipfile.is_zipfile(content):
        with zipfile.ZipFile(content) as packed:
            for entry in packed.infolist():
                with packed.open(entry) as inner:
                    yield entry.filename, inner
