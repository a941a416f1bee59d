"""The shells in which users run a command that we print: how each quotes an argument."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

_PLAIN: Final = re.compile(r"[\w.:\\/-]+")
"""An argument that no shell of Windows changes."""


class Shell(Protocol):
    """A kind of shell."""

    def argument(self, text: str) -> str:
        """Return a text as one argument of a command."""
        ...

    def line(self, directory: Path, command: str) -> str:
        """Return a line that runs a command in a directory."""
        ...


class UnixShell:
    """The shells of Unix systems; on Windows, Git's."""

    def argument(self, text: str) -> str:
        import shlex  # here: its modules would take memory in every reaper

        return shlex.quote(text)

    def line(self, directory: Path, command: str) -> str:
        return f"cd {self.argument(directory.as_posix())} && {command}"


class CommandPrompt:
    """The shell cmd.exe, which knows double quotes only."""

    def argument(self, text: str) -> str:
        return text if _PLAIN.fullmatch(text) else f'"{text}"'

    def line(self, directory: Path, command: str) -> str:
        return f"cd /d {self.argument(str(directory))} && {command}"


class PowerShell:
    """Windows PowerShell and its successor; the former has no ``&&``."""

    def argument(self, text: str) -> str:
        if _PLAIN.fullmatch(text):
            return text
        quoted = text.replace("'", "''")
        return f"'{quoted}'"

    def line(self, directory: Path, command: str) -> str:
        return f"cd {self.argument(str(directory))}; {command}"


def shell_on_windows(environ: Mapping[str, str]) -> Shell:
    """Return the shell that started this process, by the variables that it sets."""
    if "MSYSTEM" in environ:
        return UnixShell()
    if "PROMPT" in environ:
        return CommandPrompt()
    return PowerShell()
