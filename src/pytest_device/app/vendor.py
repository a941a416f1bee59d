"""The names that contain the vendor's word, in a project's files and in requests of its apps."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from pytest_device.errors import ConfigError
from pytest_device.spec import VENDOR, VENDOR_FIELDS

_WORD: Final = re.compile(r"[a-z][a-z0-9]*")


@dataclass(frozen=True, slots=True)
class VendorProfile:
    """The vendor's names: the word, and each name that does not simply follow from it.

    A field that is left empty gets its value from ``word``, as the documentation spells it: ``VendorProfile("acme")``
    has the environment prefix ``ACME_``. Header names are compared without regard to case.

    >>> profile = VendorProfile("acme", header_prefix="forge-")
    >>> profile.header("protocol-version"), profile.variable("PUBLIC_URL")
    ('forge-protocol-version', 'ACME_PUBLIC_URL')

    Raises ConfigError for a value that breaks the rule of its field.
    """

    word: str = VENDOR
    """The word in package names, runtime versions and generated files: ``acme-updates``, ``acmesdk:``."""
    key: str = ""
    """Top-level key of the app config, and of the section in ``package.json``."""
    environment_prefix: str = ""
    header_prefix: str = ""
    """Prefix of the headers of update requests and replies."""
    client_id_header: str = ""
    """Header in which the updates library sends the ID of its installation."""
    client_scheme: str = ""
    """URL scheme of the development client."""
    project_id_path: str = ""
    """Where the app config has the project's ID."""
    push_path: str = ""
    """Path of the request for a push token, below the base URL of the push service."""
    push_reply_key: str = ""
    """Key of the token in the reply to that request."""
    token_type: str = ""
    """Type of the push service's tokens."""

    def __post_init__(self) -> None:
        if not _WORD.fullmatch(str(cast("object", self.word))):
            raise ConfigError(
                f"vendor {self.word!r} must be one lowercase word, for example {VENDOR!r}"
            )

        problems: list[str] = []
        for name, derived in self._derived():
            value: object = getattr(self, name) or derived
            rule = VENDOR_FIELDS[name]
            if not (isinstance(value, str) and re.fullmatch(rule.pattern, value)):
                problems.append(f"{name} {value!r} must be {rule.rule}")
            elif name.endswith(("header", "header_prefix")):
                value = value.lower()
            object.__setattr__(self, name, value)

        if problems:
            raise ConfigError(*problems)

    def _derived(self) -> Iterator[tuple[str, str]]:
        """Yield the value of each field that follows from the word."""
        word = self.word
        # The document drops the maker's name in paths, where the vendor's own have it.
        in_path = "" if word == VENDOR else word.capitalize()
        yield "key", word
        yield "environment_prefix", f"{word.upper()}_"
        yield "header_prefix", f"{word}-"
        yield "client_id_header", f"{word}-client-id"
        yield "client_scheme", f"{word}go"
        yield "project_id_path", f"extra.{word}.projectId"
        yield "push_path", f"push/get{in_path}PushToken"
        yield "push_reply_key", f"{word}PushToken"
        yield "token_type", word

    @property
    def public_prefix(self) -> str:
        """Prefix of the variables that ship with the app."""
        return f"{self.environment_prefix}PUBLIC_"

    @property
    def sdk_runtime_prefix(self) -> str:
        """Prefix of runtime versions set by the policy ``sdkVersion``."""
        return f"{self.word}sdk:"

    def variable(self, name: str) -> str:
        return f"{self.environment_prefix}{name}"

    def header(self, name: str) -> str:
        return f"{self.header_prefix}{name}"

    def package(self, name: str) -> str:
        """Return the full name of one of the vendor's libraries."""
        return f"{self.word}-{name}"

    def own(self) -> dict[str, str]:
        """Return the fields that differ from what follows from the word."""
        return {
            name: getattr(self, name)
            for name, derived in self._derived()
            if getattr(self, name) != derived
        }


def profile_of(vendor: VendorProfile | str) -> VendorProfile:
    """Return a profile, or that of a word. Raises ConfigError."""
    if isinstance(vendor, VendorProfile):
        return vendor

    return VendorProfile(vendor)
