"""The shells in which users run the commands that we print."""

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

    def variables(self, values: Mapping[str, str]) -> str:
        """Return a line that sets environment variables."""
        ...

    def variable_from_file(self, name: str, path: Path) -> str:
        """Return a line that sets an environment variable to the content of a file."""
        ...


class UnixShell:
    """The shells of Unix systems; on Windows, Git's."""

    def argument(self, text: str) -> str:
        import shlex  # here: its modules would take memory in every reaper

        return shlex.quote(text)

    def line(self, directory: Path, command: str) -> str:
        return f"cd {self.argument(directory.as_posix())} && {command}"

    def variables(self, values: Mapping[str, str]) -> str:
        pairs = [f"{name}={self.argument(value)}" for name, value in values.items()]
        return f"export {' '.join(pairs)}"

    def variable_from_file(self, name: str, path: Path) -> str:
        return f'export {name}="$(cat {self.argument(path.as_posix())})"'


class CommandPrompt:
    """The shell cmd.exe, which knows double quotes only."""

    def argument(self, text: str) -> str:
        return text if _PLAIN.fullmatch(text) else f'"{text}"'

    def line(self, directory: Path, command: str) -> str:
        return f"cd /d {self.argument(str(directory))} && {command}"

    def variables(self, values: Mapping[str, str]) -> str:
        return " & ".join(f'set "{name}={value}"' for name, value in values.items())

    def variable_from_file(self, name: str, path: Path) -> str:
        return f'set /p {name}=<"{path}"'


class PowerShell:
    """Windows PowerShell and its successor; the former has no ``&&``."""

    def argument(self, text: str) -> str:
        if _PLAIN.fullmatch(text):
            return text
        return _single_quoted(text)

    def line(self, directory: Path, command: str) -> str:
        return f"cd {self.argument(str(directory))}; {command}"

    def variables(self, values: Mapping[str, str]) -> str:
        return "; ".join(
            f"$env:{name} = {_single_quoted(value)}" for name, value in values.items()
        )

    def variable_from_file(self, name: str, path: Path) -> str:
        return f"$env:{name} = Get-Content {self.argument(str(path))}"


def shell_on_windows(environ: Mapping[str, str]) -> Shell:
    """Return the shell that started this process, by the variables that it sets."""
    if "MSYSTEM" in environ:  # Git's
        return UnixShell()

    if "PROMPT" in environ:
        return CommandPrompt()

    return PowerShell()


def _single_quoted(text: str) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'"
