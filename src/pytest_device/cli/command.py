"""The declaration of a command: its options, help and function."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError
from pytest_device.options import Options
from pytest_device.settings import as_given, default_state_dir

USAGE_ERROR: Final = 2
"""Equal to argparse's exit status."""
_EXAMPLE_WIDTH: Final = 27
"""Leaves room for the purposes in a terminal of 80 columns."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: The word that selects it.
        summary: Its line in the list of commands.
        description: The first paragraph of its help.
        examples: Arguments after the program's name, with their purpose.
        statuses: Exit statuses, with their meaning.
        add_options: Adds its options to a parser.
        run: Executes it, and returns the exit status.
    """

    name: str
    summary: str
    description: str
    examples: Mapping[str, str]
    statuses: Mapping[int, str]
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]

    def add_to(self, add_parser: Callable[..., argparse.ArgumentParser]) -> None:
        statuses = [
            f"  {status}  {meaning}" for status, meaning in self.statuses.items()
        ]
        parser = add_parser(
            self.name,
            help=self.summary,
            description=self.description,
            epilog="\n".join([examples_of(self), "", "exit status:", *statuses]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            # An abbreviation in someone's script would end with a new option.
            allow_abbrev=False,
        )
        self.add_options(parser)
        parser.set_defaults(run=self.run)


def group(
    name: str,
    commands: Sequence[Command],
    *,
    summary: str,
    description: str,
    examples: Mapping[str, str],
    statuses: Mapping[int, str],
) -> Command:
    """Return a command that consists of other commands; without one of them, it prints its help and fails."""

    def add_options(parser: argparse.ArgumentParser) -> None:
        subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
        for command in commands:
            command.add_to(subparsers.add_parser)
        parser.set_defaults(help_of_group=parser.format_help)

    def run(parsed: argparse.Namespace) -> int:
        print(parsed.help_of_group(), file=sys.stderr)
        return USAGE_ERROR

    return Command(name, summary, description, examples, statuses, add_options, run)


def examples_of(*commands: Command) -> str:
    """Return the examples as a block of help, with their purposes in one column; a long example has its own line."""
    examples: dict[str, str] = {}
    for command in commands:
        for arguments, purpose in command.examples.items():
            examples[f"pytest-device {arguments}".rstrip()] = purpose

    width = min(max(len(example) for example in examples), _EXAMPLE_WIDTH)
    lines = ["examples:"]
    for example, purpose in examples.items():
        if len(example) > width:
            lines.append(f"  {example}")
            lines.append(f"  {'':{width}}  {purpose}")
        else:
            lines.append(f"  {example:{width}}  {purpose}")

    return "\n".join(lines)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_state_dir(parser: argparse.ArgumentParser, purpose: str) -> None:
    # argparse formats help texts with %.
    default = str(default_state_dir(os.environ)).replace("%", "%%")
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        help=f"{purpose}; an absolute path (default: {Options.state_dir.variable}, else {default})",
    )


def state_dir_of(parsed: argparse.Namespace, *, must_exist: bool = False) -> Path:
    """Return the state directory of the option, of the environment, or else the default one.

    Arguments:
        parsed: The arguments of the command.
        must_exist: Whether the option's directory must exist: with a mistyped one, no session would seem to be left. The
            variable's may be missing, because runs create it with their first session.

    Raises:
        ConfigError: There is none, runs would reject it, or it must exist and does not.
        OSError: There is no access to it.
    """
    variable = Options.state_dir.variable
    text = parsed.state_dir or os.environ.get(variable)
    state_dir = Path(text) if text else default_state_dir(os.environ)
    if state_dir is None:
        raise ConfigError("this user has no home directory: use --state-dir")

    assignment = as_given("--state-dir" if parsed.state_dir else variable, text)
    if text and not state_dir.is_absolute():
        raise ConfigError(f"{assignment} must be an absolute path")
    if must_exist and parsed.state_dir and not state_dir.exists():
        raise ConfigError(
            f"{assignment} does not exist: no run has recorded a session there"
        )

    return state_dir


def nothing_in(state_dir: Path) -> str:
    """Return the end of a line that reports no sessions; the directory does not exist before the first run."""
    return f" in {state_dir}" if state_dir.exists() else f": {state_dir} does not exist"
