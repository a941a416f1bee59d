"""``pytest-device updates``: check whether an exported update will load on a build."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_device.cli.app.formats import add_format, report
from pytest_device.cli.app.options import add_project, project_of
from pytest_device.cli.command import Command, group
from pytest_device.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_device.app import Finding, Project
    from pytest_device.app.checks.finding import Severity
    from pytest_device.updates import Build, Reason, Signature, Update
    from pytest_device.updates.export import Export

UNKNOWN: Final = 2
_MAX_KEY_BYTES: Final = 1024 * 1024
_FIXES: Final["Mapping[str, tuple[Severity, str]]"] = {
    "disabled": ("error", "set updates.enabled to true and build again"),
    "url_missing": ("error", "set updates.url and build again"),
    "url_invalid": ("error", "correct updates.url and build again"),
    "platform": ("error", "export for the platform of the build"),
    "runtime_version": (
        "error",
        "ship a new build, or publish for its runtime version",
    ),
    "scope": ("error", "publish at the URL that the build checks"),
    "signature_missing": ("error", "sign the update: --private-key"),
    "signature_invalid": (
        "error",
        "sign with the key of the build's certificate, or ship a build with the new one",
    ),
    "asset_missing": ("error", "export again"),
    "asset_hash": ("error", "export again, and don't change the files afterwards"),
    "not_newer": ("error", "export again: only newer updates load"),
    "unknown": ("warning", "supply it, for example in a JSON file for --build"),
}
"""Severity and fix of each reason against an update, by code."""


def _add_check(parser: argparse.ArgumentParser) -> None:
    add_project(parser, option="--app")
    parser.add_argument(
        "--update",
        type=Path,
        required=True,
        metavar="DIR",
        help="directory of the exported update",
    )
    parser.add_argument(
        "--build",
        type=Path,
        required=True,
        action="append",
        metavar="FILE",
        help="build that should load it: .apk, .app, .ipa or JSON; repeat for more",
    )
    parser.add_argument(
        "--private-key",
        type=Path,
        metavar="FILE",
        help="PEM of the key that will sign the update, compared with the certificate in the build",
    )
    add_format(parser)


def _check(parsed: argparse.Namespace) -> int:
    from pytest_device.updates import will_load
    from pytest_device.updates.export import read_export

    project = project_of(parsed)
    exports = read_export(parsed.update)
    findings: list[Finding] = []
    verdicts: dict[str, bool | None] = {}

    for path in parsed.build:
        build, update = _pair(path, project, exports, parsed)
        verdict = will_load(update, build)
        verdicts[str(path)] = verdict.ok
        findings += [
            _finding(reason, parsed.update, path) for reason in verdict.reasons
        ]

    loads = {name: _WORDS[ok] for name, ok in verdicts.items()}
    failed = report(findings, parsed.format, loads=loads)
    if failed:
        return failed
    return UNKNOWN if None in verdicts.values() else 0


_WORDS: Final = {True: "yes", False: "no", None: "unknown"}


def _pair(
    path: Path,
    project: "Project",
    exports: "dict[str, Export]",
    parsed: argparse.Namespace,
) -> "tuple[Build, Update]":
    """Return a build and the update that it would be offered.

    The app config that ships in a build leaves the certificate out. The project's stands for the fact that signatures
    are required, but verifies nothing: it may have been replaced since the build.
    """
    from pytest_device.app import resolve_runtime_version
    from pytest_device.updates import UpdateSettings
    from pytest_device.updates.builds import read_build

    build = read_build(path, vendor=project.vendor)
    # An update for another platform is compared, too: that it is for another one is then among the reasons.
    platform = build.platform if build.platform in exports else next(iter(exports))
    project_settings = UpdateSettings.from_project(project, platform)

    if build.settings and not build.requires_signature:
        settings = replace(
            build.settings,
            code_signing_certificate=project_settings.code_signing_certificate,
        )
        build = replace(build, settings=settings)

    update = exports[platform].update(
        resolve_runtime_version(project, platform),
        scope=project_settings.url,
        signature=_signature(build, parsed.private_key),
    )
    return build, update


def _signature(build: "Build", key: Path | None) -> "Signature | None":
    """Return the state of a signature by the key; None (unknown) without the key or the build's certificate."""
    from pytest_device.regular_files import open_regular
    from pytest_device.updates import CertificateError, Signature, validate_certificate

    if key is None or build.certificate is None:
        return None

    try:
        with open_regular(key) as file:
            validate_certificate(build.certificate, file.read(_MAX_KEY_BYTES))
    except OSError as error:
        raise ConfigError(f"{key} cannot be read: {error.strerror or error}") from None
    except CertificateError as error:
        print(f"note: the build's certificate: {error}", file=sys.stderr)
        return Signature.invalid(build.certificate)

    return Signature.valid(build.certificate)


def _id(code: str) -> str:
    return f"update-{code.replace('_', '-')}"


def _finding(reason: "Reason", update: Path, build: Path) -> "Finding":
    from pytest_device.app import Finding

    severity, fix = _FIXES[reason.code]
    return Finding(
        _id(reason.code),
        severity,
        "failed",
        update,
        0,
        0,
        f"{build}: {reason.detail}",
        fix,
    )


CHECK: Final = Command(
    name="check",
    summary="check whether an exported update loads on a build",
    description="""\
Check an exported update against builds: settings, runtime version, platform, signature, files and age. Each reason
why a build would not load it is an error; a fact that neither build nor project supplies is a warning.""",
    examples={
        "updates check --app ../app --update ../app/dist --build app.apk": "before the update is published"
    },
    statuses={
        0: "each build loads the update",
        1: "a build does not load it",
        2: "unknown, usage error, or a file that cannot be read",
    },
    add_options=_add_check,
    run=_check,
)


UPDATES: Final = group(
    "updates",
    (CHECK,),
    summary="check over-the-air updates",
    description="Check over-the-air updates before they are published.",
    examples=CHECK.examples,
    statuses=CHECK.statuses,
)
