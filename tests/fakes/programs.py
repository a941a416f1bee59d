"""Command-line programs that print what a test says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FakeProgram:
    """Stands in for a program such as adb or xcrun: prints recorded output, and records its calls.

    Each answer is a shell pattern of a command and what is printed to it: the first that fits counts. An answer that
    begins with ``!`` is printed to standard error, and the program fails.
    """

    path: Path
    log: Path

    @classmethod
    def made(cls, path: Path) -> "FakeProgram":
        """Create a program without any recorded output."""
        path.parent.mkdir(parents=True, exist_ok=True)
        fake = cls(path, path.with_suffix(".log"))
        fake.answers({})
        return fake

    def answers(self, answers: Mapping[str, str]) -> None:
        """Print this output from now on, nothing for all other commands, and forget earlier calls."""
        cases = "\n".join(
            f"{_pattern(command)}) {_printing(printed)};;"
            for command, printed in answers.items()
        )
        self.path.write_text(
            # It needs `cat`, which need not be on the PATH of its caller.
            f"#!/bin/sh\nPATH=/usr/bin:/bin\necho \"$*\" >>'{self.log}'\n"
            f'case "$*" in\n{cases}\n*) ;;\nesac\n'
        )
        self.path.chmod(0o755)
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
