"""Evaluation of dynamic app configs in Node.js.

The project's code runs with the user's rights, as under its own tool.
"""

import json
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from pytest_device import nodejs
from pytest_device.app.document import Object, at, object_at, text_at
from pytest_device.errors import ConfigError, ProjectError
from pytest_device.platforms import SYSTEM
from pytest_device.redact import Redactor

OLDEST: Final = (22, 18)
"""Oldest supported version of Node.js, the first that strips types without a flag."""

LIMIT_SECONDS: Final = 60.0

_SCRIPT: Final = Path(__file__).with_name("evaluate.mjs")


class Node(NamedTuple):
    """A Node.js that supports TypeScript."""

    executable: Path
    version: str


class Evaluated(NamedTuple):
    """An evaluated config; ``kind`` is the type of its export, ``unused`` is True if it ignores the static config."""

    config: Object
    kind: str
    unused: bool
    note: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A config file to evaluate."""

    file: Path
    key: str
    context: Object
    environ: Mapping[str, str]
    secrets: Sequence[str] = ()

    def run(self, limit_seconds: float = LIMIT_SECONDS) -> Evaluated:
        """Run the file. Raises ProjectError if it fails, and ConfigError without a suitable Node.js."""
        node = find_node(self.environ)
        # The project's code may print, too: the answer follows a mark that it cannot guess.
        mark = secrets.token_hex(16)
        task = {
            "file": str(self.file),
            "key": self.key,
            "context": self.context,
            "mark": mark,
        }

        output = self._run(self._command(node), json.dumps(task), limit_seconds)
        _, has_mark, answer = output.rpartition(mark)
        if not has_mark:
            raise self._error(
                "must not exit the process: Node.js exited before evaluating it"
            )

        return self._evaluated(json.loads(answer), node)

    def _evaluated(self, answer: Object, node: Node) -> Evaluated:
        problem = text_at(answer, "problem")
        if problem:
            line = at(answer, "line")
            column = at(answer, "column")
            raise self._error(
                problem,
                line if isinstance(line, int) else 0,
                column if isinstance(column, int) else 0,
                text_at(answer, "file"),
            )

        return Evaluated(
            object_at(answer, "config"),
            text_at(answer, "kind") or "",
            at(answer, "unused") is True,
            f"ran {self.file.name} with Node.js {node.version}",
        )

    def _error(
        self, problem: str, line: int = 0, column: int = 0, file: str | None = None
    ) -> ProjectError:
        return ProjectError(
            Redactor(self.secrets).text(problem),
            path=Path(file) if file else self.file,
            line=line,
            column=column,
        )

    def _command(self, node: Node) -> list[str | Path]:
        """Return the command; until version 26, a flag enables TypeScript syntax beyond types, such as enums."""
        flags = ["--no-warnings"]
        if nodejs.major_and_minor(node.version) < (26, 0):
            flags.append("--experimental-transform-types")

        return [node.executable, *flags, _SCRIPT]

    def _run(self, command: list[str | Path], task: str, limit_seconds: float) -> str:
        """Run a command with a task as its input, and return its output."""
        with subprocess.Popen(  # noqa: S603  # the project's code, on the user's request
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.file.parent,
            env=dict(self.environ),
            start_new_session=True,
            creationflags=SYSTEM.creation_flags,
        ) as process:
            try:
                output, _ = process.communicate(task.encode(), limit_seconds)
            except subprocess.TimeoutExpired:
                raise self._error(
                    f"was not evaluated within {limit_seconds:g} s"
                ) from None
            finally:
                # Programs that the project's code started may still run.
                SYSTEM.kill_group(process.pid)

        return output.decode(errors="replace")


def find_node(environ: Mapping[str, str]) -> Node:
    """Return the first suitable Node.js. Raises ConfigError listing the unsuitable ones and the fix."""
    unsuitable: list[str] = []
    for executable in chain(nodejs.candidates(environ), nodejs.installed(environ)):
        try:
            version = nodejs.ask(executable, environ).version
        except ConfigError:
            unsuitable.append(f"{executable} (failed to run)")
            continue

        if nodejs.major_and_minor(version) >= OLDEST:
            return Node(executable, version)
        unsuitable.append(f"{executable} ({version})")

    raise ConfigError(
        f"the app config needs Node.js {'.'.join(map(str, OLDEST))} or newer to be evaluated, found "
        f"{', '.join(unsuitable) or 'none'}. Put one on PATH, run `pytest-device app check`, which installs one, or load the project "
        "with dynamic='never' (--device-app-dynamic=never)"
    )
