"""Accounts, their projects and their access tokens, with permissions."""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

from pytest_device.spec import DURATION_MAX_MINUTES


class Role(IntEnum):
    """The role of a token's holder on the account; a higher role includes the lower ones."""

    VIEWER = 1
    DEVELOPER = 2
    ADMIN = 3


MAY_CREATE_AND_STOP: Final = Role.DEVELOPER
MAY_GET: Final = Role.VIEWER
"""Not in the document; chosen here. Every member of the account may read its sessions."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token, stored as its digest only, and the role of its holder."""

    digest: bytes
    role: Role

    @classmethod
    def of(cls, token: str, role: Role) -> Self:
        """Return a token. A personal one is an administrator's on the user's own account (not in the document; chosen here)."""
        return cls(_digest(token), role)


@dataclass(frozen=True, slots=True)
class Account:
    """An account: it owns projects, and its duration limit bounds every session of theirs.

    A request without a duration gets the whole limit (not in the document; chosen here).
    """

    app_ids: frozenset[str]
    tokens: tuple[AccessToken, ...]
    simulator_access: bool = True
    max_duration_minutes: int = DURATION_MAX_MINUTES


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request."""

    account: Account
    role: Role

    def may(self, required: Role, owner: Account) -> bool:
        """Return whether this caller has at least the required role on the account that owns a project."""
        return self.account is owner and self.role >= required


class Accounts:
    """All accounts of the service."""

    def __init__(self, accounts: Iterable[Account]) -> None:
        self._accounts = tuple(accounts)
        self._added: list[tuple[AccessToken, Account]] = []
        """Tokens that the test interface added."""
        self._owners = {
            app_id.lower(): account
            for account in self._accounts
            for app_id in account.app_ids
        }

    def owner(self, app_id: str) -> Account | None:
        """Return the account that owns a project, None for an unknown project."""
        return self._owners.get(app_id.lower())

    def caller(self, token: str) -> Caller | None:
        """Return the owner of a token, None for an invalid one.

        Compares every known token, each in constant time, so that timing reveals nothing about a wrong one.
        """
        digest = _digest(token)
        configured = [
            (valid, account) for account in self._accounts for valid in account.tokens
        ]

        caller = None
        for valid, account in [*configured, *self._added]:
            if hmac.compare_digest(valid.digest, digest):
                caller = Caller(account, valid.role)

        return caller

    def add(self, token: AccessToken, account: Account) -> None:
        """Add a token of an account, until ``forget_added``."""
        self._added.append((token, account))

    def forget_added(self) -> None:
        """Remove the tokens that were added."""
        self._added.clear()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
