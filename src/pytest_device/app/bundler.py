"""Bundler behavior that can be predicted without running the bundler: names, debug IDs and package exports."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pytest_device.app.document import Json, at, first
from pytest_device.errors import ConfigError

STYLES: Final = ("scss", "sass", "css")
"""Style extensions in the order in which the bundler tries them."""

CACHED_FILES: Final = ("postcss.config.json", "postcss.config.js", ".browserslistrc")
"""Files whose changes take effect only after ``--clear``, as do changes of ``browserslist`` in package.json."""

Condition: TypeAlias = Literal[
    "react-native", "browser", "node", "react-server", "workerd"
]

_MODULE: Final = re.compile(
    r"(?:^|/)([^/]*)\.module(?:\.(native|ios|android|web))?\.(?:css|scss|sass)$"
)
_CONDITIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "ios": ("react-native",),
    "android": ("react-native",),
    "web": ("browser",),
    "server": ("node", "react-server", "workerd"),
}
_VARIANTS: Final = "89ab"


@dataclass(frozen=True, slots=True)
class CssModule:
    """A CSS module; ``base`` is the file name without ``.module``, platform and extension."""

    base: str
    platform: str | None


def css_module_name(file_name: str) -> CssModule | None:
    """Parse the file name of a CSS module; return None for other files. The platform must follow ``.module``."""
    found = _MODULE.search(file_name)
    return CssModule(found[1], found[2]) if found else None


def style_candidates(name: str) -> list[str]:
    """Return the files that a style import can resolve to, in order of precedence."""
    return (
        [name]
        if name.endswith(tuple(f".{one}" for one in STYLES))
        else [f"{name}.{one}" for one in STYLES]
    )


def debug_id(content: str | bytes) -> str:
    """Return the debug ID of a bundle: an MD5 hash of its content, formatted as a version 4 UUID."""
    digest = hashlib.md5(
        content.encode() if isinstance(content, str) else content, usedforsecurity=False
    ).hexdigest()
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
    """Resolve a subpath through a package's ``exports``; the first matching condition, in map order, wins.

    Return None if the subpath isn't exported, and always before SDK 53, where the bundler ignores ``exports``.
    """
    if platform not in _CONDITIONS:
        raise ConfigError(
            f"platform {platform!r} must be one of {', '.join(_CONDITIONS)}"
        )
    if sdk < 53:  # noqa: PLR2004  # the first release that reads exports
        return None
    holding = {*conditions, *_CONDITIONS[platform]}
    by_path = isinstance(exports, dict) and any(key.startswith(".") for key in exports)
    return _target(
        at(exports, subpath) if by_path else exports if subpath == "." else None,
        holding,
    )


def _target(value: Json, holding: set[str]) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return first(_target(one, holding) for one in value)
    if isinstance(value, dict):
        return first(
            _target(one, holding)
            for condition, one in value.items()
            if condition in holding
        )
    return None


def check_resolution(result: Json) -> None:
    """Raise ConfigError unless the value is a valid return value of ``resolveRequest``."""
    kind = at(result, "type")
    if kind == "empty" or (
        kind == "sourceFile" and isinstance(at(result, "filePath"), str)
    ):
        return
    raise ConfigError(
        f"resolveRequest returned {result!r}: it must return {{type: 'sourceFile', filePath}}, {{type: 'empty'}} "
        "or what context.resolveRequest returns; virtual modules are not supported"
    )


def needs_clear(changed: Path) -> bool:
    """Return whether a change of the file takes effect only after the bundler's cache is cleared."""
    return changed.name in CACHED_FILES
