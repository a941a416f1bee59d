"""Evaluation of dynamic app configs in Node.js.

The project's code runs with the user's rights, as under its own tool.
"""

import json
import secrets
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
MAX_OUTPUT_BYTES: Final = 8 * 1024 * 1024

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
            late = threading.Event()

            def end() -> None:
                late.set()
                SYSTEM.kill_group(process.pid)

            timer = threading.Timer(limit_seconds, end)
            timer.start()
            try:
                output = _exchanged(process, task.encode())
            finally:
                timer.cancel()
                # Programs that the project's code started may still run.
                SYSTEM.kill_group(process.pid)

        if late.is_set():
            raise self._error(f"was not evaluated within {limit_seconds:g} s")
        if len(output) > MAX_OUTPUT_BYTES:
            raise self._error(f"prints more than {MAX_OUTPUT_BYTES // 1024 // 1024} MB")

        return output.decode(errors="replace")


def _exchanged(process: "subprocess.Popen[bytes]", task: bytes) -> bytes:
    """Write a task to a process, and return what it writes, up to a byte above the maximum."""
    # Both are pipes.
    if process.stdin is None or process.stdout is None:
        return b""

    # A process that exited early has no output, which the caller reports.
    with suppress(BrokenPipeError):
        process.stdin.write(task)
        process.stdin.close()

    return process.stdout.read(MAX_OUTPUT_BYTES + 1)


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
