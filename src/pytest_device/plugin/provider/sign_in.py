"""Sign-in at a provider that the run does not control, before the first device of a test that uses both."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.errors import ConfigError
from pytest_device.options import PASSWORD_VARIABLE, Options
from pytest_device.plugin.state import SERVICES
from pytest_device.settings import Settings

if TYPE_CHECKING:
    from pytest_device.auth.provider.external import ExternalProvider
    from pytest_device.auth.provider.model import Client, User

FIXTURE: Final = "device_sign_in"

_PROVIDER: Final = pytest.StashKey["ExternalProvider"]()
_PREPARED: Final = pytest.StashKey[bool]()


@contextmanager
def external_provider(
    config: pytest.Config, settings: Settings, arguments: Mapping[str, Any]
) -> "Generator[ExternalProvider]":
    """Provide the provider of the settings, with users and client of the settings and of ``device_identity_settings``.

    With pytest-xdist, it is in the coordinator's process, which signs each user in once. Raises ConfigError.
    """
    from pytest_device.auth.provider.external import ExternalProvider
    from pytest_device.local_browser import complete_sign_in

    make = partial(
        ExternalProvider,
        settings.identity_issuer or "",
        client=_client(settings, arguments.get("clients", ())),
        users=_users(settings, arguments.get("users", ())),
        open_page=complete_sign_in,
    )

    worker: Mapping[str, Any] | None = getattr(config, "workerinput", None)
    opened = make() if worker is None else _of_run(settings, worker, make)
    with opened as provider:
        config.stash[_PROVIDER] = provider
        yield provider
        del config.stash[_PROVIDER]


def prepare_sign_in(item: pytest.Item, settings: Settings) -> None:
    """Sign the first user in if the test uses the sign-in at such a provider: a refusal then costs no device.

    Raises the errors of `ExternalProvider.sign_in`.
    """
    if _uses(item, settings) and _PROVIDER in item.config.stash:
        item.config.stash[_PROVIDER].prepare()
        item.config.stash[_PREPARED] = True


def waits_for_sign_in(item: pytest.Item, settings: Settings) -> bool:
    """Return whether a test's sign-in was not tried yet: its device must not boot in advance."""
    return _uses(item, settings) and _PREPARED not in item.config.stash


def local_provider_problem(settings: Settings) -> str:
    """Return why there is no provider of the run, empty if there is one."""
    if settings.identity_issuer is None:
        return ""

    return (
        f"device_identity_provider is a provider of the run, and {settings.source('identity_issuer')} selects another: "
        f"use {FIXTURE}, or deselect the test"
    )


def _uses(item: pytest.Item, settings: Settings) -> bool:
    return bool(settings.identity_issuer) and FIXTURE in getattr(
        item, "fixturenames", ()
    )


def _of_run(settings: Settings, worker: Mapping[str, Any], make: Any) -> Any:
    from pytest_device.sharing import shared

    if SERVICES not in worker:
        raise ConfigError(
            f"{settings.source('identity_issuer')} requires all workers on one machine, but this one is on another: "
            "they share the tokens in memory"
        )

    return shared(worker[SERVICES], FIXTURE, make)


def _client(settings: Settings, clients: Any) -> "Client":
    """Return the client that the option names, with the redirect URI of the suite's first one if it has no own."""
    from pytest_device.auth.provider.model import Client

    listed: list[Client] = list(clients)
    chosen = settings.identity_client_id
    if chosen is None and not listed:
        raise ConfigError(
            f"{settings.source('identity_issuer')} needs a client: set {Options.identity_client_id.spellings}"
        )

    fallback = Client(chosen or "", listed[0].redirect_uris if listed else ())
    client = next(
        (client for client in listed if chosen in (None, client.client_id)), fallback
    )
    if not client.redirect_uris:
        raise ConfigError(
            f"the client {client.client_id!r} needs a redirect URI: set {Options.app_root.spellings} to a project with "
            "a scheme, or return clients from device_identity_settings"
        )

    return client


def _users(settings: Settings, users: Any) -> "tuple[User, ...]":
    """Return the users, that of the option first; one without a password has that of the environment."""
    from dataclasses import replace

    from pytest_device.auth.provider.model import User

    listed: list[User] = list(users)
    if name := settings.identity_user:
        others = [user for user in listed if user.name != name]
        selected = [user for user in listed if user.name == name]
        listed = [*(selected or [User(name)]), *others]

    if not listed:
        raise ConfigError(
            f"{settings.source('identity_issuer')} needs a user: set {Options.identity_user.spellings}"
        )

    complete = tuple(
        replace(user, password=user.password or settings.identity_password or None)
        for user in listed
    )

    if without := [user.name for user in complete if not user.password]:
        raise ConfigError(
            f"no password for {', '.join(map(repr, without))}: set {PASSWORD_VARIABLE} in the environment"
        )

    return complete
