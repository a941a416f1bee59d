"""Check whether a build will load an update."""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from pytest_device.errors import ConfigError
from pytest_device.updates.settings import problem_of
from pytest_device.updates.values import (
    INVALID,
    MISSING,
    VALID,
    Asset,
    Build,
    Code,
    Reason,
    Update,
    Verdict,
    in_utc,
)


def will_load(update: Update, build: Build) -> Verdict:
    """Return whether a build will load an update; ``ok`` is None if only unknown facts stand against it.

    Raises ConfigError for values of other types.
    """
    for value, kind in ((cast("object", update), Update), (build, Build)):
        if not isinstance(value, kind):
            raise ConfigError(
                f"will_load takes an Update and a Build, not a value of type {type(value).__name__}"
            )
    reasons = [*_settings(build), *_sameness(update, build), *_signature(update, build), *asset_reasons(update),
               *_age(update, build)]  # fmt: skip
    if any(one.code is not Code.UNKNOWN for one in reasons):
        return Verdict(False, reasons)
    return Verdict(None if reasons else True, reasons)


def _unknown(what: str) -> Reason:
    return Reason(Code.UNKNOWN, f"missing information: {what}")


def _settings(build: Build) -> Iterator[Reason]:
    """Yield the reasons from ``enabled`` and the URL."""
    settings = build.settings
    if settings is None:
        yield _unknown("the settings of the build")
        return
    problem = problem_of(settings.url)
    if problem:
        shown = (
            "updates.url is missing"
            if settings.url is None
            else "updates.url must be a URL with http or https"
        )
        yield Reason(Code(problem.value), shown)
    reason = settings.disabled_reason
    if (reason or not settings.enabled) and (reason is None or reason != problem):
        yield Reason(
            Code.DISABLED,
            f"updates are off in the build: {reason or 'updates.enabled is false'}",
        )


_SAME: Final = (
    ("platform", "platform", Code.PLATFORM),
    ("runtime_version", "runtime version", Code.RUNTIME_VERSION),
    ("scope", "scope", Code.SCOPE),
)


def _sameness(update: Update, build: Build) -> Iterator[Reason]:
    for name, what, code in _SAME:
        ours: str | None = getattr(update, name)
        theirs: str | None = getattr(build, name)
        for value, owner in ((ours, "update"), (theirs, "build")):
            if not value:
                yield _unknown(f"the {what} of the {owner}")
        if ours and theirs and ours != theirs:
            yield Reason(
                code,
                f"the {what} of the update is {ours!r}, that of the build {theirs!r}",
            )


_SIGNATURES: Final[Mapping[str | None, Reason | None]] = {
    VALID: None,
    MISSING: Reason(
        Code.SIGNATURE_MISSING,
        "the build has a certificate, but the update is not signed",
    ),
    INVALID: Reason(
        Code.SIGNATURE_INVALID,
        "the signature was not made with the key of the build's certificate",
    ),
    None: _unknown("the signature of the update"),
}


def _signature(update: Update, build: Build) -> Iterator[Reason]:
    if build.settings is None or build.settings.code_signing_certificate is None:
        return
    if reason := _SIGNATURES.get(
        update.signature, _unknown("whether the signature of the update is valid")
    ):
        yield reason


def asset_reasons(update: Update) -> Iterator[Reason]:
    """Yield what is wrong with the files of an update."""
    if update.assets is None:
        yield _unknown("the assets of the update")
    for asset in update.assets or ():
        yield from _asset(asset)


def _asset(asset: Asset) -> Iterator[Reason]:
    if asset.present is False:
        yield Reason(Code.ASSET_MISSING, f"asset {asset.key!r} is missing")
    elif asset.present is None:
        yield _unknown(f"whether asset {asset.key!r} is there")
    elif asset.hash is None or asset.actual_hash is None:
        yield _unknown(f"the hash of asset {asset.key!r}")
    elif asset.hash != asset.actual_hash:
        yield Reason(
            Code.ASSET_HASH,
            f"asset {asset.key!r} has the hash {asset.actual_hash}, expected {asset.hash}",
        )


def _age(update: Update, build: Build) -> Iterator[Reason]:
    running = build.running
    if running is None:
        yield _unknown("the update that the build runs")
    elif running.id and running.id == update.id:
        yield Reason(Code.NOT_NEWER, "the build runs this update already")
    elif update.created_at is None or running.created_at is None:
        yield _unknown(
            "the creation time of "
            + ("the update" if update.created_at is None else "the running update")
        )
    elif in_utc(update.created_at) <= in_utc(running.created_at):
        shown = in_utc(running.created_at).isoformat()
        yield Reason(
            Code.NOT_NEWER,
            f"the update is not newer than the running one, created {shown}",
        )
