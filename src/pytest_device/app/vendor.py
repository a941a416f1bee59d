"""The vendor word and all names derived from it."""

import re
from dataclasses import dataclass
from typing import Final

from pytest_device.errors import ConfigError
from pytest_device.spec import VENDOR

_WORD: Final = re.compile(r"[a-z][a-z0-9]*")


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor word: ``vendor`` in the documentation, the vendor's own in a real project."""

    word: str = VENDOR
    """Also the name of the top-level app config key, the ``package.json`` section and the package."""

    def __post_init__(self) -> None:
        if not _WORD.fullmatch(self.word):
            raise ConfigError(
                f"vendor {self.word!r} must be one lowercase word, for example {VENDOR!r}"
            )

    @property
    def prefix(self) -> str:
        """Prefix of the vendor's environment variables."""
        return f"{self.word.upper()}_"

    @property
    def public_prefix(self) -> str:
        return f"{self.prefix}PUBLIC_"

    @property
    def sdk_runtime_prefix(self) -> str:
        """Prefix of runtime versions set by the policy ``sdkVersion``."""
        return f"{self.word}sdk:"

    @property
    def go_scheme(self) -> str:
        """URL scheme of the development client."""
        return f"{self.word}go"

    def variable(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def package(self, name: str) -> str:
        """Return the full name of one of the vendor's libraries."""
        return f"{self.word}-{name}"
