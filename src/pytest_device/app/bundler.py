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
    """Parse the file name of a CSS module; return None for other files. The platform must follow ``.module``.

    >>> css_module_name("button.module.ios.css")
    CssModule(base='button', platform='ios')
    """
    match = _MODULE.search(file_name)
    if match is None:
        return None

    return CssModule(match[1], match[2])


def style_candidates(name: str) -> list[str]:
    """Return the files that a style import can resolve to, in order of precedence."""
    suffixes = tuple(f".{extension}" for extension in STYLES)
    if name.endswith(suffixes):
        return [name]

    return [name + suffix for suffix in suffixes]


def debug_id(content: str | bytes) -> str:
    """Return the debug ID of a bundle: an MD5 hash of its content, formatted as a version 4 UUID."""
    if isinstance(content, str):
        content = content.encode()
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
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

    Return None if the subpath isn't exported, and always before SDK 53, where the bundler ignores ``exports``
    ("Bundler behavior", resolution).
    """
    if platform not in _CONDITIONS:
        raise ConfigError(
            f"platform {platform!r} must be one of {', '.join(_CONDITIONS)}"
        )
    if sdk < 53:  # noqa: PLR2004  # the first release that reads exports
        return None

    active = {*conditions, *_CONDITIONS[platform]}
    if isinstance(exports, dict) and any(key.startswith(".") for key in exports):
        return _target(at(exports, subpath), active)
    # Without subpaths, exports are those of the package itself.
    if subpath == ".":
        return _target(exports, active)

    return None


def _target(value: Json, active: set[str]) -> str | None:
    """Return the file that a value of ``exports`` selects by the active conditions."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return first(_target(alternative, active) for alternative in value)
    if isinstance(value, dict):
        return first(
            _target(inner, active)
            for condition, inner in value.items()
            if condition in active
        )

    return None


def check_resolution(result: Json) -> None:
    """Raise ConfigError unless the value is a valid return value of ``resolveRequest``."""
    kind = at(result, "type")
    if kind == "empty":
        return
    if kind == "sourceFile" and isinstance(at(result, "filePath"), str):
        return

    raise ConfigError(
        f"resolveRequest returned {result!r}: it must return {{type: 'sourceFile', filePath}}, {{type: 'empty'}} "
        "or what context.resolveRequest returns; virtual modules are not supported"
    )


def needs_clear(changed: Path) -> bool:
    """Return whether a change of the file takes effect only after the bundler's cache is cleared."""
    return changed.name in CACHED_FILES
