"""A fake command-line tool that prints recorded output and records its calls."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Recorded:
    """The tool. Each answer is a shell pattern of a command and what is printed to it: the first that fits counts.

    An answer that begins with ``!`` is printed as the tool's complaint with which it fails.
    """

    program: Path
    log: Path

    @classmethod
    def made(cls, program: Path) -> "Recorded":
        """Create a tool without any recorded output."""
        program.parent.mkdir(parents=True, exist_ok=True)
        recorded = cls(program, program.with_suffix(".log"))
        recorded.answers({})
        return recorded

    def answers(self, answers: Mapping[str, str]) -> None:
        """Print this output from now on, nothing for all other commands, and forget earlier calls."""
        cases = "\n".join(
            f"{_pattern(command)}) {_printing(printed)};;"
            for command, printed in answers.items()
        )
        self.program.write_text(
            f'#!/bin/sh\necho "$*" >>\'{self.log}\'\ncase "$*" in\n{cases}\n*) ;;\nesac\n'
        )
        self.program.chmod(0o755)
        self.log.write_text("")

    @property
    def asked(self) -> list[str]:
        """The commands since the output was set."""
        return self.log.read_text().splitlines()


def _pattern(command: str) -> str:
    return "".join(
        piece if piece in ("*", "?") else f"'{piece}'"
        for piece in re.split(r"([*?])", command)
        if piece
    )


def _printing(printed: str) -> str:
    text, fails = printed.removeprefix("!"), printed.startswith("!")
    return f"cat <<'END'{' >&2; exit 1' if fails else ''}\n{text}\nEND\n"
