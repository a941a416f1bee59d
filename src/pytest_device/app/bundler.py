"""Bundler behavior that can be predicted without running the bundler: names of CSS modules and debug IDs."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

_MODULE: Final = re.compile(
    r"(?:^|/)([^/]*)\.module(?:\.(native|ios|android|web))?\.(?:css|scss|sass)$"
)
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


def debug_id(content: str | bytes) -> str:
    """Return the debug ID of a bundle: an MD5 hash of its content, formatted as a version 4 UUID."""
    if isinstance(content, str):
        content = content.encode()
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    variant = _VARIANTS[ord(digest[16]) % 4]

    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:]}"
