"""The help of ``pytest-device``; its page in the docs lists the same commands and options."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from pytest_device.cli import COMMANDS
from pytest_device.cli.command import Command
from tests.cli.running import call

pytestmark = pytest.mark.every_python

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "\n".join(
    (DOCS / name).read_text() for name in ("command-line.md", "command-line-results.md")
)
NAMES = [command.name for command in COMMANDS]


def options_of(*command: str) -> list[str]:
    return re.findall(
        r"^  (?:-\w, )?(--[a-z-]+)", call(*command, "--help").stdout, flags=re.MULTILINE
    )


def test_the_reference_lists_every_command() -> None:
    assert re.findall(r"^## (.+)$", PAGE, flags=re.MULTILINE) == NAMES


@pytest.mark.parametrize("command", NAMES)
def test_the_reference_lists_every_option_of_a_command(command: str) -> None:
    of_command = PAGE.split(f"\n## {command}\n")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(--[a-z-]+)` \|", of_command, flags=re.MULTILINE)

    assert ["--help", *listed] == options_of(command)


def test_the_reference_lists_the_global_options() -> None:
    assert [
        option for option in options_of() if f"`pytest-device {option}`" not in PAGE
    ] == ["--help"]


def shows_example(shown: str, command: Command) -> bool:
    """Return whether the first example of a command is there, followed by its purpose."""
    typed, purpose = next(iter(command.examples.items()))
    example = rf"^  pytest-device {re.escape(typed)}\s{{2,}}{re.escape(purpose)}$"
    return re.search(example, shown, flags=re.MULTILINE) is not None


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_it_lists_each_command_on_a_line_with_examples(
    arguments: tuple[str, ...],
) -> None:
    result = call(*arguments)

    shown = result.stdout if arguments else result.stderr
    assert result.returncode == (0 if arguments else 2)
    for command in COMMANDS:
        assert re.search(
            rf"^    {command.name} +{re.escape(command.summary)}$",
            shown,
            flags=re.MULTILINE,
        )
        assert shows_example(shown, command)
    examples = shown.partition("examples:")[2].splitlines()
    assert [line for line in examples if len(line) > 80] == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_the_help_of_a_command_has_examples_and_exit_statuses(command: Command) -> None:
    result = call(command.name, "--help")

    assert result.returncode == 0
    assert shows_example(result.stdout, command)
    assert all(
        f"\n  {status}  {meaning}" in result.stdout
        for status, meaning in command.statuses.items()
    )


def test_no_line_of_help_is_wider_than_a_page() -> None:
    texts = [command.description for command in COMMANDS]

    assert [
        line for text in texts for line in text.splitlines() if len(line) > 84
    ] == []


def test_it_prints_its_version() -> None:
    assert call("--version").stdout == f"pytest-device {version('pytest-device')}\n"


def test_an_unknown_command_is_reported_with_the_known_ones() -> None:
    result = call("dance")

    assert result.returncode == 2
    assert "'dance'" in result.stderr
    assert all(command.name in result.stderr for command in COMMANDS)
