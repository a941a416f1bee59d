"""The maker's word, and every name that is derived from it."""

import re
from dataclasses import dataclass
from typing import Final

from pytest_device.errors import ConfigError
from pytest_device.spec import VENDOR

_WORD: Final = re.compile(r"[a-z][a-z0-9]*")


@dataclass(frozen=True, slots=True)
class Vendor:
    """The word of one maker: ``vendor`` in the documents, another word at a real one."""

    word: str = VENDOR

    def __post_init__(self) -> None:
        if not _WORD.fullmatch(self.word):
            raise ConfigError(f"vendor {self.word!r} must be one lowercase word, for example {VENDOR!r}")

    @property
    def key(self) -> str:
        """The top-level key of the app config, the section of the package config and the package itself."""
        return self.word

    @property
    def prefix(self) -> str:
        """What its environment variables begin with."""
        return f"{self.word.upper()}_"

    @property
    def public_prefix(self) -> str:
        return f"{self.prefix}PUBLIC_"

    @property
    def sdk_runtime_prefix(self) -> str:
        """What a runtime version of the policy ``sdkVersion`` begins with."""
        return f"{self.word}sdk:"

    @property
    def go_scheme(self) -> str:
        """The scheme of links to the development client."""
        return f"{self.word}go"

    def variable(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def package(self, name: str) -> str:
        """Return the name of one of its libraries."""
        return f"{self.word}-{name}"
