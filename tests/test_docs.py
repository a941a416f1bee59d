"""The reference lists what the code has, and the README's commands are the ones that CI runs."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest_device
from pytest_device import DeviceArguments, errors, plugin
from pytest_device.options import OPTIONS, Option
from pytest_device.plugin import fixtures, hookspecs
from pytest_device.sessions.request import SHARING, SessionRequest

ROOT = Path(__file__).parent.parent
REFERENCE = (ROOT / "docs" / "reference.md").read_text()


def section(title: str) -> str:
    return REFERENCE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_column(title: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", section(title), flags=re.MULTILINE)


def row_of(option: Option[Any]) -> str:
    default = "" if option.default in (None, ()) else f"`{str(option.default).removesuffix('.0').lower()}`"
    return f"| `{option.flag}` | `{option.variable}` | `{option.ini}` | {default} | {option.help} |"


def test_every_marker_argument_is_listed() -> None:
    assert set(first_column("Marker")) == {*SessionRequest.model_fields, *SHARING}
    assert set(DeviceArguments.__annotations__) == {*SessionRequest.model_fields, *SHARING}


def test_every_fixture_is_listed() -> None:
    defined = {name for name in vars(fixtures) if name.startswith("device_")}

    assert set(first_column("Fixtures")) == defined == set(plugin.__all__)


def test_every_hook_is_listed_with_its_arguments() -> None:
    specs = {name: spec for name, spec in vars(hookspecs).items() if name.startswith("pytest_device_")}
    written = [f"{name}({', '.join(inspect.signature(spec).parameters)})" for name, spec in specs.items()]

    assert re.findall(r"^\| `(pytest_device_.*?)` \|", section("Hooks"), flags=re.MULTILINE) == written


def test_every_option_is_listed_as_the_table_has_it() -> None:
    rows = [line for line in section("Settings").splitlines() if line.startswith("| `--")]

    assert rows == [row_of(option) for option in OPTIONS]


def test_every_error_that_is_raised_is_listed_and_public() -> None:
    tree = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.DeviceError)}
    groups = {"DeviceError", "ServiceError", "SessionError"}

    assert set(first_column("Errors")) == tree - groups
    assert tree <= set(dir(pytest_device))


def test_ci_runs_the_line_of_the_readme() -> None:
    readme, ci = (ROOT / "README.md").read_text(), (ROOT / ".ci" / "run").read_text()
    setting_up = [line.removeprefix("$ ") for line in readme.splitlines() if line.startswith("$ python3 -m venv")]

    assert len(setting_up) == 2
    assert ci.splitlines()[-1] == setting_up[1]
