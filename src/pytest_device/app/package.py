"""The app's ``package.json`` and installed libraries, and the values that an app config takes from them."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_device.app.document import Document, Object, at, first, object_at, text_at
from pytest_device.app.vendor import VendorProfile
from pytest_device.errors import ProjectError

FILE: Final = "package.json"
_DEPENDENCIES: Final = (
    "dependencies",
    "devDependencies",
    "peerDependencies",
    "optionalDependencies",
)


@dataclass(frozen=True, slots=True)
class DirectoryCheck:
    """``doctor.reactNativeDirectoryCheck``; ``exclude`` lists names, or regular expressions between slashes."""

    enabled: bool = True
    exclude: tuple[str, ...] = ()
    list_unknown_packages: bool = True


@dataclass(frozen=True, slots=True)
class PackageConfig:
    """``package.json`` with the settings in its vendor section."""

    document: Document
    vendor: VendorProfile

    @property
    def root(self) -> Path:
        return self.document.path.parent

    @property
    def content(self) -> Object:
        return self.document.object

    @property
    def name(self) -> str:
        return text_at(self.content, "name") or self.root.resolve().name

    @property
    def version(self) -> str:
        return text_at(self.content, "version") or "1.0.0"

    @property
    def dependencies(self) -> dict[str, str]:
        """Requested versions of the libraries that ship with the app, by name."""
        return {
            name: wanted
            for name, wanted in object_at(self.content, "dependencies").items()
            if isinstance(wanted, str)
        }

    @property
    def section(self) -> Object:
        return object_at(self.content, self.vendor.key)

    @property
    def install_exclude(self) -> tuple[str, ...]:
        return _texts(self.section, "install", "exclude")

    @property
    def native_modules_dir(self) -> str | None:
        return text_at(self.section, "autolinking", "nativeModulesDir")

    @property
    def directory_check(self) -> DirectoryCheck:
        check = ("doctor", "reactNativeDirectoryCheck")
        return DirectoryCheck(
            enabled=at(self.section, *check, "enabled") is not False,
            exclude=_texts(self.section, *check, "exclude"),
            list_unknown_packages=at(self.section, *check, "listUnknownPackages")
            is not False,
        )

    @property
    def sync_check_enabled(self) -> bool:
        return (
            at(self.section, "doctor", "appConfigFieldsNotSyncedCheck", "enabled")
            is not False
        )

    def kind_of(self, name: str) -> str | None:
        """Return the ``package.json`` key that lists a library, such as ``devDependencies``."""
        return first(
            kind for kind in _DEPENDENCIES if name in object_at(self.content, kind)
        )

    def mentions(self, name: str) -> bool:
        """Return whether the project lists a library as a dependency."""
        return self.kind_of(name) is not None

    def installed(self, name: str) -> Document | None:
        """Return the ``package.json`` of an installed library, searching parent directories as Node.js does."""
        for directory in _upwards(self.root):
            path = directory / "node_modules" / name / FILE
            if path.is_file():
                return Document.read(path)
        return None

    def executable(self, name: str) -> Path | None:
        """Return the path of an installed library's command."""
        commands = (
            directory / "node_modules/.bin" / name for directory in _upwards(self.root)
        )
        return first(path for path in commands if path.is_file())

    def installed_version(self, name: str) -> str | None:
        found = self.installed(name)
        return text_at(found.value, "version") if found else None


def read_package(root: Path, vendor: VendorProfile) -> PackageConfig:
    """Read a project's ``package.json``. Raises ProjectError."""
    try:
        document = Document.read(root / FILE)
    except FileNotFoundError:
        raise ProjectError(
            f"is not the directory of a {vendor.word} app: it has no {FILE}",
            code="MODULE_NOT_FOUND",
            path=root,
        ) from None
    _ = document.object
    return PackageConfig(document, vendor)


def workspace_root(root: Path) -> Path:
    """Return the topmost directory with workspaces, to which libraries are hoisted, or else the project."""
    found = root
    for directory in _upwards(root):
        path = directory / FILE
        if path.is_file() and (
            directory == root or at(Document.read(path).value, "workspaces")
        ):
            found = directory
    return found


def _upwards(root: Path) -> Iterator[Path]:
    resolved = root.resolve()
    return iter((resolved, *resolved.parents))


def _texts(section: Object, *trail: str) -> tuple[str, ...]:
    found = at(section, *trail)
    return (
        tuple(one for one in found if isinstance(one, str))
        if isinstance(found, list)
        else ()
    )


_WORDS: Final = {
    "$": "dollar", "%": "percent", "&": "and", "<": "less", ">": "greater", "|": "or", "¢": "cent", "£": "pound",
    "¤": "currency", "¥": "yen", "©": "(c)", "®": "(r)", "€": "euro", "ß": "ss", "ẞ": "SS", "æ": "ae", "ø": "o",
    "đ": "dj", "ð": "d", "þ": "th", "ł": "l", "œ": "oe", "\u0131": "i", "™": "tm", "…": "...", "•": "*",
    **dict(zip("\u2013\u2014\u2018\u2019\u201c\u201d", "--''\"\"", strict=True)),
    **dict(zip("абвгдезийклмнопрстуфхцыэ", "abvgdezijklmnoprstufhcye", strict=True)),
    **dict(zip("αβγδεζηθικλμνξοπρςστυφχωіґ", "abgdezh8iklmn3oprsstyfxwig", strict=True)),
    "ψ": "ps", "є": "ye", "ї": "yi", "ё": "yo", "ж": "zh", "ч": "ch", "ш": "sh", "щ": "sh", "ъ": "u",
    "ь": "", "ю": "yu", "я": "ya",
}  # fmt: skip
_DROPPED: Final = re.compile(r"[^A-Za-z0-9_\s$*+~.()'\"!\-:@]+")


def with_defaults(config: Object, package: PackageConfig) -> Object:
    """Fill in missing keys from ``package.json`` and the installed libraries."""
    name = config.get("name")
    elsewhere: Object = {
        "name": package.name,
        "slug": _slug(name if isinstance(name, str) else package.name),
        "version": package.version,
        "description": text_at(package.content, "description"),
        "sdkVersion": _sdk_version(package)
        if config.get("sdkVersion") is None
        else None,
        "platforms": [
            "ios",
            "android",
            *(["web"] if package.installed("react-dom") else []),
        ],
    }
    given = {
        key: value
        for key, value in config.items()
        if key != "mods" and (value is not None or key not in elsewhere)
    }
    return {key: value for key, value in elsewhere.items() if value is not None} | given


def _slug(name: str) -> str:
    """Return the slug of a name: lowercase, without accents or special characters, words joined by hyphens."""
    plain = "".join(map(_spelt, unicodedata.normalize("NFC", name.lower())))
    return "-".join(_DROPPED.sub("", plain).replace("-", " ").split())


def _spelt(sign: str) -> str:
    """Return the Latin spelling of a character, without its accent."""
    base = unicodedata.normalize("NFD", sign)[0]
    return _WORDS.get(sign, _WORDS.get(base, base))


def _sdk_version(package: PackageConfig) -> str | None:
    installed = package.installed_version(package.vendor.word)
    return f"{installed.partition('.')[0]}.0.0" if installed else None
