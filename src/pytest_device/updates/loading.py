"""Check whether a build will load an update."""

from collections.abc import Iterator, Mapping
from typing import Final

from pytest_device.errors import hides_frames
from pytest_device.updates.settings import DisabledReason, problem_of
from pytest_device.updates.values import (
    Asset,
    Build,
    Code,
    Reason,
    SignatureState,
    Update,
    Verdict,
    in_utc,
)

__tracebackhide__ = hides_frames


_CAUSES: Final[Mapping[DisabledReason, str]] = {
    DisabledReason.CONFIGURATION: "updates.enabled is false",
    DisabledReason.NO_RUNTIME_VERSION: "there is neither a runtime version nor an SDK version",
}


def will_load(update: Update, build: Build) -> Verdict:
    """Return whether a build will load an update, with every reason against it.

    ``ok`` is False if one of the checks fails, and None if none fails but facts for one are missing.

    >>> embedded = Update("e", created_at="2026-01-01")
    >>> build = Build("ios", "1.0", UpdateSettings(url="https://u.example"), embedded, "app")
    >>> update = Update("u", "2.0", "ios", "2026-02-01", "app", assets=[])
    >>> will_load(update, build).reasons[0].detail
    "the runtime version of the update is '2.0', that of the build '1.0'"
    """
    # All at once, since each attempt to fix one costs an update or a build.
    reasons = [
        *_settings(build),
        *_sameness(update, build),
        *_signature(update, build),
        *asset_reasons(update),
        *_age(update, build),
    ]
    if any(reason.code is not Code.UNKNOWN for reason in reasons):
        return Verdict(False, reasons)
    if reasons:
        return Verdict(None, reasons)

    return Verdict(True, reasons)


def _unknown(fact: str) -> Reason:
    return Reason(Code.UNKNOWN, f"missing information: {fact}")


def _settings(build: Build) -> Iterator[Reason]:
    """Yield the reasons from ``enabled`` and the URL."""
    settings = build.settings
    if settings is None:
        yield _unknown("the settings of the build")
        return

    problem = problem_of(settings.url)
    if problem is DisabledReason.URL_MISSING:
        yield Reason(Code.URL_MISSING, "updates.url is missing")
    elif problem is DisabledReason.URL_INVALID:
        yield Reason(Code.URL_INVALID, "updates.url must be a URL with http or https")

    if settings.disabled_reason is None:
        if not settings.enabled:
            yield _disabled(_CAUSES[DisabledReason.CONFIGURATION])
    # The problem of the URL has a code of its own, above.
    elif settings.disabled_reason != problem:
        yield _disabled(_CAUSES.get(settings.disabled_reason, settings.disabled_reason))


def _disabled(cause: str) -> Reason:
    return Reason(Code.DISABLED, f"updates are off in the build: {cause}")


def _sameness(update: Update, build: Build) -> Iterator[Reason]:
    """Yield the reasons from what an update and a build must have in common."""
    yield from _compared("platform", update.platform, build.platform, Code.PLATFORM)
    yield from _compared(
        "runtime version",
        update.runtime_version,
        build.runtime_version,
        Code.RUNTIME_VERSION,
    )
    yield from _compared("scope", update.scope, build.scope, Code.SCOPE)


def _compared(
    label: str, of_update: str | None, of_build: str | None, code: Code
) -> Iterator[Reason]:
    if not of_update:
        yield _unknown(f"the {label} of the update")
    if not of_build:
        yield _unknown(f"the {label} of the build")

    if of_update and of_build and of_update != of_build:
        yield Reason(
            code,
            f"the {label} of the update is {of_update!r}, that of the build {of_build!r}",
        )


def _signature(update: Update, build: Build) -> Iterator[Reason]:
    """Yield what is wrong with the signature, if the build requires one.

    A signature counts only if it was verified with the certificate that is in the build: the build has no other. What
    another certificate proves is unknown for this build.
    """
    if not build.requires_signature:
        return

    signature = update.signature
    if signature is None:
        yield _unknown("the signature of the update")
    elif signature.state is SignatureState.MISSING:
        yield Reason(
            Code.SIGNATURE_MISSING,
            "the build has a certificate, but the update is not signed",
        )
    elif build.certificate is None:
        yield _unknown(
            "the certificate in the build, to verify the signature of the update with"
        )
    # Another certificate may have the same key, or not: only a signature with this one proves it.
    elif (signature.certificate or "").split() != build.certificate.split():
        yield _unknown(
            "whether the signature is valid: it was verified with another certificate than the build's"
        )
    elif signature.state is SignatureState.INVALID:
        yield Reason(
            Code.SIGNATURE_INVALID,
            "the signature was not made with the key of the build's certificate",
        )


def asset_reasons(update: Update) -> Iterator[Reason]:
    """Yield what is wrong with the files of an update."""
    if update.assets is None:
        yield _unknown("the assets of the update")
        return

    for asset in update.assets:
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
    elif update.created_at is None:
        yield _unknown("the creation time of the update")
    elif running.created_at is None:
        yield _unknown("the creation time of the running update")
    elif in_utc(update.created_at) <= in_utc(running.created_at):
        shown = in_utc(running.created_at).isoformat()
        yield Reason(
            Code.NOT_NEWER,
            f"the update is not newer than the running one, created {shown}",
        )
