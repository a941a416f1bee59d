"""The app's ``package.json`` and installed libraries, and the values that an app config takes from them."""

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_device.app.document import Document, Json, Object, at, object_at, text_at
from pytest_device.app.vendor import VendorProfile
from pytest_device.errors import ProjectError

FILE: Final = "package.json"
EXPECTED_VERSIONS: Final = "bundledNativeModules.json"
"""A file of the SDK's package."""
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
        dependencies = object_at(self.content, "dependencies")

        return {
            name: version
            for name, version in dependencies.items()
            if isinstance(version, str)
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
        check = object_at(self.section, "doctor", "reactNativeDirectoryCheck")

        return DirectoryCheck(
            enabled=check.get("enabled") is not False,
            exclude=_texts(check, "exclude"),
            list_unknown_packages=check.get("listUnknownPackages") is not False,
        )

    @property
    def sync_check_enabled(self) -> bool:
        check = object_at(self.section, "doctor", "appConfigFieldsNotSyncedCheck")

        return check.get("enabled") is not False

    def kind_of(self, name: str) -> str | None:
        """Return the ``package.json`` key that lists a library, such as ``devDependencies``."""
        for key in _DEPENDENCIES:
            if name in object_at(self.content, key):
                return key

        return None

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
        for directory in _upwards(self.root):
            path = directory / "node_modules/.bin" / name
            if path.is_file():
                return path

        return None

    def expected_versions(self) -> dict[str, str] | None:
        """Return the versions that the installed SDK expects of libraries, or None if it has no table of them."""
        sdk = self.installed(self.vendor.word)
        path = sdk.path.with_name(EXPECTED_VERSIONS) if sdk else None
        if path is None or not path.is_file():
            return None

        return {
            name: version
            for name, version in Document.read(path).object.items()
            if isinstance(version, str)
        }

    def uses(self, library: str) -> bool:
        """Return whether the project lists one of the vendor's libraries: others that are installed aren't built in."""
        return self.mentions(self.vendor.package(library))

    def installed_version(self, name: str) -> str | None:
        document = self.installed(name)

        return text_at(document.value, "version") if document else None


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

    package = PackageConfig(document, vendor)
    # Raises now, rather than where it is first used, if it is not an object.
    _ = package.content

    return package


def _upwards(root: Path) -> tuple[Path, ...]:
    """Return a directory and those above it."""
    resolved = root.resolve()

    return (resolved, *resolved.parents)


def _texts(section: Object, *trail: str) -> tuple[str, ...]:
    values = at(section, *trail)
    if not isinstance(values, list):
        return ()

    return tuple(text for text in values if isinstance(text, str))


_WORDS: Final = {
    "$": "dollar", "%": "percent", "&": "and", "<": "less", ">": "greater", "|": "or", "¢": "cent", "£": "pound",
    "¤": "currency", "¥": "yen", "©": "(c)", "®": "(r)", "€": "euro", "ß": "ss", "ẞ": "SS", "æ": "ae", "ø": "o",
    "đ": "dj", "ð": "d", "þ": "th", "ł": "l", "œ": "oe", "\u0131": "i", "™": "tm", "…": "...", "•": "*",
    **dict(zip("\u2013\u2014\u2018\u2019\u201c\u201d", "--''\"\"", strict=True)),
}  # fmt: skip
_DROPPED: Final = re.compile(r"[^A-Za-z0-9_\s$*+~.()'\"!\-:@]+")


def with_defaults(config: Object, package: PackageConfig) -> Object:
    """Fill in missing keys from ``package.json`` and the installed libraries."""
    name = config.get("name")
    platforms: list[Json] = ["ios", "android"]
    if package.installed("react-dom"):
        platforms.append("web")
    sdk_version = config.get("sdkVersion")
    defaults: Object = {
        "name": package.name,
        # A name in another script has none.
        "slug": _slug(name if isinstance(name, str) else package.name) or None,
        "version": package.version,
        "description": text_at(package.content, "description"),
        "sdkVersion": _sdk_version(package) if sdk_version is None else sdk_version,
        "platforms": platforms,
    }

    # For a key with a default, null stands for it.
    own = {
        key: value
        for key, value in config.items()
        if key != "mods" and (value is not None or key not in defaults)
    }

    return {key: value for key, value in defaults.items() if value is not None} | own


def _slug(name: str) -> str:
    """Return the slug of a name: lowercase, without accents or special characters, words joined by hyphens."""
    composed = unicodedata.normalize("NFC", name.lower())
    latin = "".join(_in_latin(character) for character in composed)
    words = _DROPPED.sub("", latin).replace("-", " ").split()

    return "-".join(words)


def _in_latin(character: str) -> str:
    """Return the Latin spelling of a character, without its accent."""
    base = unicodedata.normalize("NFD", character)[0]
    if character in _WORDS:
        return _WORDS[character]

    return _WORDS.get(base, base)


def _sdk_version(package: PackageConfig) -> str | None:
    installed = package.installed_version(package.vendor.word)
    if not installed:
        return None

    major, _, _ = installed.partition(".")

    return f"{major}.0.0"
