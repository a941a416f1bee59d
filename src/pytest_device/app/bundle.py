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
from pytest_device.app.project import Project
from pytest_device.app.secret_patterns import MIN_LENGTH, encodings
from pytest_device.errors import ProjectError
from pytest_device.regular_files import open_regular

_lzma_errors: tuple[type[Exception], ...]
try:
    from lzma import LZMAError
except ImportError:
    # A Python without lzma refuses such archives with other errors.
    _lzma_errors = ()
else:
    _lzma_errors = (LZMAError,)

BROKEN_ARCHIVE: Final[tuple[type[Exception], ...]] = (
    OSError,
    EOFError,
    LookupError,
    RuntimeError,  # encrypted, or compressed in an unknown way
    ValueError,
    *_lzma_errors,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Errors of the standard library for an archive that cannot be read."""
MAX_NESTING: Final = 3
"""Maximum depth of archives within archives that are searched, such as a bundle in an .apk in a .zip."""

Entry: TypeAlias = tuple[str, IO[bytes]]
"""Name and content of a file."""

Variable: TypeAlias = tuple[str, str]
"""Name of a variable and one of its values."""

_CHUNK: Final = 4 * 1024 * 1024
_OVERLAP: Final = 64 * 1024
"""Bytes of a chunk that are searched again with the next one, since a value may begin in one and end in the other."""
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
    variable has the same value.

    Raises:
        ProjectError: The path can't be read.
    """
    if not path.exists():
        raise ProjectError("does not exist", path=path)

    public, others = _variables(project)
    public_values = {value for _, value in public}
    allowed_names = set(allowed)
    secrets = {
        (name, value)
        for name, value in others
        if value not in public_values and name not in allowed_names
    }

    too_short = {
        (name, value) for name, value in public | secrets if len(value) < MIN_LENGTH
    }
    search = _Search(
        {
            (name, value): encodings(value)
            for name, value in (public | secrets) - too_short
        }
    )
    for name, content in _contents(path):
        search.file(name, content)

    leaks = {
        (variable[0], file_name)
        for variable, file_name in search.matches
        if variable in secrets
    }
    shipped = sorted({variable for variable, _ in search.matches if variable in public})
    findings = [_leak(path, name, file_name) for name, file_name in sorted(leaks)]
    findings += _disagreements(path, search)

    return Bundle(
        path,
        public=tuple(dict.fromkeys(name for name, _ in shipped)),
        addresses=tuple(dict.fromkeys(value for _, value in shipped if "://" in value)),
        debug_ids=search.debug_ids,
        unchecked=tuple(sorted({name for name, _ in too_short})),
        files=search.files,
        findings=tuple(findings),
    )


def _variables(project: Project) -> tuple[set[Variable], set[Variable]]:
    """Return the public and the other variables of all environment files, with every value they have."""
    from_files = set(project.env.from_files().items())
    for mode in MODES:
        env = load_env(project.root, mode, {}, vendor=project.vendor)
        from_files.update(env.from_files().items())

    # The environment of this process overrides files, in builds, too.
    variables = set(from_files)
    for name, _ in from_files:
        if name in project.env.values:
            variables.add((name, project.env.values[name]))

    prefix = project.vendor.public_prefix
    variables = {(name, value) for name, value in variables if value}
    public = {(name, value) for name, value in variables if name.startswith(prefix)}

    return public, variables - public


def _leak(path: Path, name: str, file_name: str) -> Finding:
    return failed(
        "bundle-secret",
        path / file_name if file_name else path,
        f"contains the value of {name}",
        "read it on a server, revoke it and build again",
    )


@dataclass
class _Search:
    """A search of the files of a build, and what it has found so far."""

    patterns: dict[Variable, set[bytes]]
    """The encodings of each variable's value."""
    matches: set[tuple[Variable, str]] = field(
        default_factory=set[tuple[Variable, str]]
    )
    """Variables with the names of the files that contain their values."""
    debug_ids: dict[str, str] = field(default_factory=dict[str, str])
    maps: set[str] = field(default_factory=set[str])
    files: int = 0

    def file(self, name: str, content: IO[bytes]) -> None:
        """Search one file."""
        self.files += 1
        if name.endswith(".map"):
            self.maps.add(name)

        tail = b""
        for chunk in _chunks(name, content):
            self._text(name, tail + chunk)
            tail = chunk[-_OVERLAP:]

    def _text(self, name: str, text: bytes) -> None:
        for variable, patterns in self.patterns.items():
            if (variable, name) in self.matches:
                continue
            if any(pattern in text for pattern in patterns):
                self.matches.add((variable, name))

        for match in _DEBUG_ID.finditer(text):
            self.debug_ids[name] = match[1].decode().lower()


def _chunks(name: str, content: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file; a broken archive often shows only while it is read."""
    try:
        while chunk := content.read(_CHUNK):
            yield chunk
    except BROKEN_ARCHIVE as error:
        raise ProjectError(f"cannot be searched: {error}", path=Path(name)) from None


def _disagreements(path: Path, search: _Search) -> Iterator[Finding]:
    """Yield the bundles with another debug ID than their map; bytecode has none, even if its map has one."""
    for name, debug_id in search.debug_ids.items():
        map_name = f"{name}.map"
        if map_name not in search.maps:
            continue

        map_debug_id = search.debug_ids.get(map_name)
        if map_debug_id == debug_id:
            continue

        difference = "a different" if map_debug_id else "no"
        yield failed(
            "bundle-debug-id",
            path / name,
            f"the map has {difference} debug ID",
            "export both together",
        )


def _contents(path: Path) -> Iterator[Entry]:
    """Yield the files under a path, including those in archives, with their relative names."""
    if not path.is_dir():
        # An archive is recognized by its name.
        for name, content in _file(path, path.name):
            yield name.removeprefix(path.name).lstrip("/"), content
        return

    for directory, names, files in os.walk(path, onerror=_unsearched):
        # The same order on each machine.
        names.sort()
        for name in sorted(files):
            file = Path(directory, name)
            if file.is_file() and not file.is_symlink():
                yield from _file(file, file.relative_to(path).as_posix())


def _unsearched(error: OSError) -> None:
    raise ProjectError(
        f"cannot be searched: {error.strerror}", path=Path(error.filename)
    )


def _file(path: Path, name: str) -> Iterator[Entry]:
    try:
        with open_regular(path) as content:
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
