"""``pytest-device app show | env | runtime-version``: print a project's configuration."""

import argparse
import json
from typing import Final

from pytest_device.cli.app.options import add_project, project_of, statuses
from pytest_device.cli.command import Command, add_json
from pytest_device.redact import MASK


def _add_show(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument("--public", action="store_true", help="print only what ships with the app")
    parser.add_argument("--platform", choices=("ios", "android"), help="apply the overrides of a platform")


def _show(parsed: argparse.Namespace) -> int:
    from pytest_device.app.document import at
    from pytest_device.app.needles import secret_trails

    project = project_of(parsed)
    config = project.effective(parsed.platform) if parsed.platform else project.to_dict(public=parsed.public)
    for *above, name in list(secret_trails(config, ())):
        holder = at(config, *above)
        if isinstance(holder, dict):
            holder[str(name)] = MASK
    print(json.dumps(config, indent=2, ensure_ascii=False))
    return 0


def _env(parsed: argparse.Namespace) -> int:
    project = project_of(parsed)
    env = project.env
    if parsed.json:
        print(json.dumps({"files": env.files, "loaded_files": env.loaded_files, "loaded": env.loaded}))
        return 0
    for name in env.files:
        print(f"{name}{'' if name in env.loaded_files else ': absent'}")
    for name in env.loaded:
        public = " (public: ships with the app)" if name.startswith(project.vendor.public_prefix) else ""
        print(f"  {name}{public}")
    return 0


def _add_env(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    add_json(parser)


def _add_runtime_version(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument("--platform", choices=("ios", "android"), required=True)


def _runtime_version(parsed: argparse.Namespace) -> int:
    from pytest_device.app import resolve_runtime_version

    version = resolve_runtime_version(project_of(parsed), parsed.platform)
    print(version or "the project sets no runtime version")
    return 0 if version else 1


SHOW: Final = Command(
    name="show",
    summary="print the merged app config",
    description="Print the merged app config as JSON. Values whose keys are those of secrets are masked.",
    examples={"app show": "the merged app config", "app show --public": "the view that ships with the app"},
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
    examples={"app runtime-version --platform ios": "the runtime version of a build for iOS"},
    statuses=statuses("the project sets none"),
    add_options=_add_runtime_version,
    run=_runtime_version,
)
