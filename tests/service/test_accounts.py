"""Who may do what."""

import pytest

from pytest_device.service.accounts import AccessToken, Accounts, Caller, Role
from tests.service.world import ACCOUNTS, APP_ID, DEVELOPER, SMALL_APP_ID, SMALL_TOKEN, TOKEN, UNKNOWN_ID, VIEWER

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
def test_a_role_on_the_owning_account_permits_its_own_and_lesser_things(
    accounts: Accounts, token: str, app_id: str, least: Role
) -> None:
    assert may(accounts, token, app_id, least)


@pytest.mark.parametrize(("token", "app_id", "least"), FORBIDDEN)
def test_a_lesser_role_or_one_on_another_account_permits_nothing(
    accounts: Accounts, token: str, app_id: str, least: Role
) -> None:
    assert not may(accounts, token, app_id, least)


@pytest.mark.parametrize("token", ["", "unknown", TOKEN[:-1], f"{TOKEN} ", TOKEN.upper()])
def test_nothing_but_a_whole_token_is_known(accounts: Accounts, token: str) -> None:
    assert accounts.caller(token) is None


def test_a_project_is_found_however_its_id_is_capitalised(accounts: Accounts) -> None:
    assert accounts.owner(APP_ID.upper()) is ACCOUNTS[0]


def test_an_unknown_project_has_no_owner(accounts: Accounts) -> None:
    assert accounts.owner(UNKNOWN_ID) is None


def test_a_token_is_kept_as_its_digest_only() -> None:
    assert TOKEN not in repr(AccessToken.personal(TOKEN))
    assert TOKEN not in repr(Caller(ACCOUNTS[0], Role.ADMIN))
