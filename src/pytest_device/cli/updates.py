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
    from pytest_device.app import Finding, Project
    from pytest_device.app.checks.finding import Severity
    from pytest_device.updates import Build, Reason, Update, UpdateSettings
    from pytest_device.updates.export import Export

UNKNOWN: Final = 2
_FIXES: Final = {
    "disabled": "set updates.enabled to true and build again",
    "url_missing": "set updates.url and build again",
    "url_invalid": "correct updates.url and build again",
    "platform": "export for the platform of the build",
    "runtime_version": "ship a new build, or publish for its runtime version",
    "scope": "publish at the URL that the build checks",
    "signature_missing": "sign the update: --private-key",
    "signature_invalid": "sign with the key of the build's certificate",
    "asset_missing": "export again",
    "asset_hash": "export again, and don't change the files afterwards",
    "not_newer": "export again: only newer updates load",
    "unknown": "supply it, for example in a JSON file for --build",
}


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
        help="PEM of the key that will sign the update",
    )
    add_format(parser)


def _check(parsed: argparse.Namespace) -> int:
    from pytest_device.updates import will_load
    from pytest_device.updates.export import read_export

    project, exports = project_of(parsed), read_export(parsed.update)
    findings: list[Finding] = []
    verdicts: dict[str, bool | None] = {}
    for path in parsed.build:
        build, update = _pair(path, project, exports, parsed)
        verdict = will_load(update, build)
        verdicts[str(path)] = verdict.ok
        findings += [_finding(one, parsed.update, path) for one in verdict.reasons]
    failed = report(
        findings,
        parsed.format,
        loads={name: _WORDS[ok] for name, ok in verdicts.items()},
    )
    return failed or (UNKNOWN if None in verdicts.values() else 0)


_WORDS: Final = {True: "yes", False: "no", None: "unknown"}


def _pair(
    path: Path,
    project: "Project",
    exports: "dict[str, Export]",
    parsed: argparse.Namespace,
) -> "tuple[Build, Update]":
    """Return a build, with the project's certificate if it states none, and the update that it would be offered."""
    from pytest_device.app import resolve_runtime_version
    from pytest_device.updates import UpdateSettings
    from pytest_device.updates.builds import read_build

    build = read_build(path, vendor=parsed.vendor)
    platform = build.platform if build.platform in exports else next(iter(exports))
    ours = UpdateSettings.from_project(project, platform)
    if (
        build.settings and build.settings.code_signing_certificate is None
    ):  # left out of the config that ships
        certificate = ours.code_signing_certificate
        build = replace(
            build,
            settings=replace(build.settings, code_signing_certificate=certificate),
        )
    version = resolve_runtime_version(project, platform)
    signature = _signature(ours, project, parsed.private_key)
    return build, exports[platform].update(version, scope=ours.url, signature=signature)


def _signature(
    settings: "UpdateSettings", project: "Project", key: Path | None
) -> str | None:
    """Return the state of the update's signature; None (unknown) without the key or the certificate."""
    from pytest_device.updates import CertificateError, validate_certificate

    if key is None or settings.code_signing_certificate is None:
        return None
    try:
        certificate = (project.root / settings.code_signing_certificate).read_bytes()
        validate_certificate(certificate, key.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"{error.filename} cannot be read: {error.strerror}"
        ) from None
    except CertificateError as error:
        print(f"note: {error}", file=sys.stderr)
        return "invalid"
    return "valid"


def _finding(reason: "Reason", update: Path, build: Path) -> "Finding":
    from pytest_device.app import Finding
    from pytest_device.updates import Code

    severity: Severity = "warning" if reason.code is Code.UNKNOWN else "error"
    rule = f"{build}: {reason.detail}"
    return Finding(
        f"update-{reason.code.replace('_', '-')}",
        severity,
        "failed",
        update,
        0,
        0,
        rule,
        _FIXES[reason.code],
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
