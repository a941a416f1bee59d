"""Roles and their permissions."""

import pytest

from pytest_device.service.accounts import AccessToken, Accounts, Caller, Role
from tests.service.world import (
    ACCOUNTS,
    APP_ID,
    DEVELOPER,
    SMALL_APP_ID,
    SMALL_TOKEN,
    TOKEN,
    UNKNOWN_ID,
    VIEWER,
)

PERMITTED = [
    # token, app id, least role
    (TOKEN, APP_ID, Role.ADMIN),
    (DEVELOPER, APP_ID, Role.DEVELOPER),
    (DEVELOPER, APP_ID, Role.VIEWER),
    (VIEWER, APP_ID, Role.VIEWER),
]

FORBIDDEN = [
    (DEVELOPER, APP_ID, Role.ADMIN),
    (VIEWER, APP_ID, Role.DEVELOPER),
    (SMALL_TOKEN, APP_ID, Role.VIEWER),
    (TOKEN, SMALL_APP_ID, Role.VIEWER),
]


@pytest.fixture
def accounts() -> Accounts:
    return Accounts(ACCOUNTS)


def may(accounts: Accounts, token: str, app_id: str, least: Role) -> bool:
    caller, owner = accounts.caller(token), accounts.owner(app_id)
    assert caller
    assert owner
    return caller.may(least, owner)


@pytest.mark.parametrize(("token", "app_id", "least"), PERMITTED)
def test_a_role_on_the_owning_account_includes_lesser_roles(
    accounts: Accounts, token: str, app_id: str, least: Role
) -> None:
    assert may(accounts, token, app_id, least)


@pytest.mark.parametrize(("token", "app_id", "least"), FORBIDDEN)
def test_a_lesser_role_or_one_on_another_account_is_not_sufficient(
    accounts: Accounts, token: str, app_id: str, least: Role
) -> None:
    assert not may(accounts, token, app_id, least)


@pytest.mark.parametrize(
    "token", ["", "unknown", TOKEN[:-1], f"{TOKEN} ", TOKEN.upper()]
)
def test_only_a_complete_token_is_accepted(accounts: Accounts, token: str) -> None:
    assert accounts.caller(token) is None


def test_a_project_is_found_by_its_id_in_any_case(accounts: Accounts) -> None:
    assert accounts.owner(APP_ID.upper()) is ACCOUNTS[0]


def test_an_unknown_project_has_no_owner(accounts: Accounts) -> None:
    assert accounts.owner(UNKNOWN_ID) is None


def test_only_a_digest_of_a_token_is_stored() -> None:
    assert TOKEN not in repr(AccessToken.of(TOKEN, Role.ADMIN))
    assert TOKEN not in repr(Caller(ACCOUNTS[0], Role.ADMIN))
