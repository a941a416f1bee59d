"""``pytest-device app show | env | runtime-version | check | bundle``: print or check a project, or check a build."""

import argparse
import json
from pathlib import Path
from typing import Final, cast

from pytest_device.cli.app.formats import add_format, report
from pytest_device.cli.app.options import add_include, add_project, project_of, statuses
from pytest_device.cli.command import Command, add_json
from pytest_device.errors import ConfigError
from pytest_device.redact import MASK


def _add_check(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    add_format(parser)
    parser.add_argument(
        "--sdk",
        type=int,
        metavar="MAJOR",
        help="reference to check against (default: the project's)",
    )
    parser.add_argument(
        "--versions",
        type=Path,
        metavar="FILE",
        help="JSON: expected versions of libraries, by name (default: the installed SDK's)",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        metavar="FILE",
        help="JSON: problems of known libraries, by name",
    )
    parser.add_argument(
        "--declaration",
        metavar="NAME",
        help="generated declaration (default: vendor-env.d.ts)",
    )
    add_include(parser)


def _check(parsed: argparse.Namespace) -> int:
    from pytest_device.app import check
    from pytest_device.app.checks.vendor import profile_entries

    project = project_of(parsed, needs_config=False)
    findings = check(
        project,
        sdk=parsed.sdk,
        versions=_table(parsed.versions),
        directory=_table(parsed.directory),
        declaration=parsed.declaration,
        include=parsed.include,
    )

    return report(
        findings,
        parsed.format,
        profile=[entry.to_dict() for entry in profile_entries(project)],
    )


def _table(path: Path | None) -> dict[str, str] | None:
    if path is None:
        return None

    from pytest_device.app.files import read_text

    try:
        table: object = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None

    values = (
        cast("dict[str, object]", table).values() if isinstance(table, dict) else [None]
    )
    if not all(isinstance(value, str) for value in values):
        raise ConfigError(f"{path} must be an object with string values")

    return cast("dict[str, str]", table)


def _add_bundle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "bundle",
        type=Path,
        metavar="PATH",
        help="bundle, archive or directory of a build",
    )
    add_project(parser, option="--root")
    add_format(parser)
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="NAME",
        help="variable that may be in the build; repeat for more",
    )


def _bundle(parsed: argparse.Namespace) -> int:
    from pytest_device.app.bundle import inspect_bundle

    project = project_of(parsed, needs_config=False)
    inspection = inspect_bundle(parsed.bundle, project, allowed=parsed.allow)
    return report(
        inspection.findings,
        parsed.format,
        public=inspection.public,
        addresses=inspection.addresses,
        debug_ids=inspection.debug_ids,
        not_checked=inspection.unchecked,
        files=inspection.files,
    )


CHECK: Final = Command(
    name="check",
    summary="check the app config, packages, sources and routes",
    description="Check a project. Each finding has an ID, a place and a fix.",
    examples={
        "app check": "check the project in the current directory",
        "app check ../app --format json": "check another one, for a program",
    },
    statuses=statuses("findings that are errors"),
    add_options=_add_check,
    run=_check,
)
BUNDLE: Final = Command(
    name="bundle",
    summary="search a build for secrets, public values and debug IDs",
    description="""\
Search a build for the values of the project's environment files: which public ones it carries, and any secret that
leaked into it. Values shorter than 8 characters are not searched for, but listed.""",
    examples={
        "app bundle dist --root ../app": "search the exported files of a project"
    },
    statuses=statuses("a secret in the build, or debug IDs that differ"),
    add_options=_add_bundle,
    run=_bundle,
)


def _add_show(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument(
        "--public", action="store_true", help="print only what ships with the app"
    )
    parser.add_argument(
        "--platform",
        choices=("ios", "android"),
        help="apply the overrides of a platform",
    )


def _show(parsed: argparse.Namespace) -> int:
    from pytest_device.app.document import at
    from pytest_device.app.secret_patterns import secret_trails

    project = project_of(parsed)

    config = (
        project.effective(parsed.platform)
        if parsed.platform
        else project.to_dict(public=parsed.public)
    )
    # All paths are found before any value is replaced.
    for *parents, name in list(secret_trails(config, ())):
        holder = at(config, *parents)
        if isinstance(holder, dict):
            holder[str(name)] = MASK

    print(json.dumps(config, indent=2, ensure_ascii=False))
    return 0


def _env(parsed: argparse.Namespace) -> int:
    project = project_of(parsed, needs_config=False)
    env = project.env

    if parsed.json:
        facts = {
            "files": env.files,
            "loaded_files": env.loaded_files,
            "loaded": env.loaded,
        }
        print(json.dumps(facts))
        return 0

    for name in env.files:
        print(name if name in env.loaded_files else f"{name}: absent")
    # Names only: values may be secrets.
    for name in env.loaded:
        is_public = name.startswith(project.vendor.public_prefix)
        print(f"  {name} (public: ships with the app)" if is_public else f"  {name}")

    return 0


def _add_env(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    add_json(parser)


def _add_runtime_version(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument(
        "--platform",
        choices=("ios", "android"),
        required=True,
        help="platform of the build",
    )


def _runtime_version(parsed: argparse.Namespace) -> int:
    from pytest_device.app import resolve_runtime_version

    version = resolve_runtime_version(project_of(parsed), parsed.platform)
    print(version or "the project sets no runtime version")
    return 0 if version else 1


SHOW: Final = Command(
    name="show",
    summary="print the merged app config",
    description="Print the merged app config as JSON. Values whose keys name secrets are masked.",
    examples={
        "app show": "the merged app config",
        "app show --public": "the view that ships with the app",
    },
    statuses=statuses(),
    add_options=_add_show,
    run=_show,
)
ENV: Final = Command(
    name="env",
    summary="list the environment files and the variables they set",
    description="List the environment files, the highest precedence first, and the variables they set: names only.",
    examples={"app env --mode production": "the files and variables of a mode"},
    statuses=statuses(),
    add_options=_add_env,
    run=_env,
)
RUNTIME_VERSION: Final = Command(
    name="runtime-version",
    summary="print the runtime version that a build gets",
    description="Print the runtime version that a build for a platform gets.",
    examples={
        "app runtime-version --platform ios": "the runtime version of a build for iOS"
    },
    statuses=statuses("the project sets none"),
    add_options=_add_runtime_version,
    run=_runtime_version,
)
