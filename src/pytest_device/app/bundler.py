"""What the bundler makes of names and files, as far as it can be known without running it."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pytest_device.app.document import Json, at, first
from pytest_device.errors import ConfigError

STYLES: Final = ("scss", "sass", "css")
"""The order in which a style without an extension is looked for."""

CACHED_FILES: Final = ("postcss.config.json", "postcss.config.js", ".browserslistrc")
"""Files whose changes the bundler sees only after ``--clear``; the same holds for ``browserslist`` in package.json."""

Condition: TypeAlias = Literal["react-native", "browser", "node", "react-server", "workerd"]

_MODULE: Final = re.compile(r"(?:^|/)([^/]*)\.module(?:\.(native|ios|android|web))?\.(?:css|scss|sass)$")
_CONDITIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "ios": ("react-native",),
    "android": ("react-native",),
    "web": ("browser",),
    "server": ("node", "react-server", "workerd"),
}
_VARIANTS: Final = "89ab"


@dataclass(frozen=True, slots=True)
class CssModule:
    """A CSS module: ``base`` is its name without ``.module``, platform and extension."""

    base: str
    platform: str | None


def css_module_name(file_name: str) -> CssModule | None:
    """Return what a file name says of a CSS module, None if it is none; a platform before ``.module`` is none."""
    found = _MODULE.search(file_name)
    return CssModule(found[1], found[2]) if found else None


def style_candidates(name: str) -> list[str]:
    """Return the files that an import of a style may mean, the first that exists wins."""
    return [name] if name.endswith(tuple(f".{one}" for one in STYLES)) else [f"{name}.{one}" for one in STYLES]


def debug_id(content: str | bytes) -> str:
    """Return the identifier of a bundle: a hash of its content, in the form of a UUID of version 4."""
    digest = hashlib.md5(content.encode() if isinstance(content, str) else content, usedforsecurity=False).hexdigest()
    variant = _VARIANTS[ord(digest[16]) % 4]
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:]}"


def export_target(
    exports: Json,
    subpath: str = ".",
    *,
    platform: str,
    conditions: Sequence[str] = ("import", "default"),
    sdk: int = 58,
) -> str | None:
    """Return the file of a package's ``exports``: the first condition in the order of the map that holds wins.

    Before SDK 53 the map is not read: the result is None, as for a subpath that it does not have.
    """
    if platform not in _CONDITIONS:
        raise ConfigError(f"platform {platform!r} must be one of {', '.join(_CONDITIONS)}")
    if sdk < 53:  # noqa: PLR2004  # the release that began to read it
        return None
    holding = {*conditions, *_CONDITIONS[platform]}
    by_path = isinstance(exports, dict) and any(key.startswith(".") for key in exports)
    return _target(at(exports, subpath) if by_path else exports if subpath == "." else None, holding)


def _target(value: Json, holding: set[str]) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return first(_target(one, holding) for one in value)
    if isinstance(value, dict):
        return first(_target(one, holding) for condition, one in value.items() if condition in holding)
    return None


def check_resolution(result: Json) -> None:
    """Raise ConfigError unless a value is what ``resolveRequest`` may return."""
    kind = at(result, "type")
    if kind == "empty" or (kind == "sourceFile" and isinstance(at(result, "filePath"), str)):
        return
    raise ConfigError(
        f"resolveRequest returned {result!r}: it must return {{type: 'sourceFile', filePath}}, {{type: 'empty'}} "
        "or what context.resolveRequest returns; virtual modules are not supported"
    )


def needs_clear(changed: Path) -> bool:
    """Return whether the bundler sees a change of a file only after its cache is cleared."""
    return changed.name in CACHED_FILES
