"""Evaluation of dynamic app configs in Node.js, with as few permissions as possible."""

import json
import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_device.app.document import Object, at, object_at, text_at
from pytest_device.app.dynamic.node import Node, find_node
from pytest_device.errors import ProjectError
from pytest_device.redact import Redactor

LIMIT_SECONDS: Final = 20.0
UNLIMITED_SECONDS: Final = 300.0
MAX_OUTPUT_BYTES: Final = 8 * 1024 * 1024

_RESTRICTED: Final = "Access to this API has been restricted"
"""Error message of Node.js for a missing permission."""
_LIFTED: Final = "dynamic='node' (--device-app-dynamic=node, pytest-device app --dynamic node) lifts the limits"
_SCRIPT: Final = Path(__file__).with_name("evaluate.mjs")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluated config; ``kind`` is the type of its export, ``unused`` is True if it ignores the static config."""

    config: Object
    kind: str
    unused: bool
    note: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A config file to evaluate; ``readable`` lists the directories that it may read, None lifts all limits."""

    file: Path
    key: str
    context: Object
    environ: Mapping[str, str]
    readable: Sequence[Path] | None
    secrets: Sequence[str] = ()

    def run(self, limit_seconds: float = LIMIT_SECONDS) -> Evaluated:
        """Run the file. Raises ProjectError if it fails, and ConfigError without a suitable Node.js."""
        node = find_node(self.environ)
        mark = secrets.token_hex(16)
        task = {"file": str(self.file), "key": self.key, "context": self.context, "mark": mark}
        printed = self._printed(node, json.dumps(task), limit_seconds)
        _, found, answer = printed.rpartition(mark)
        if not found:
            raise self._error("must not exit the process: Node.js exited before evaluating it")
        return self._evaluated(json.loads(answer), node)

    def _evaluated(self, answer: Object, node: Node) -> Evaluated:
        if problem := text_at(answer, "problem"):
            line, column = at(answer, "line"), at(answer, "column")
            fix = f": {_LIFTED}" if _RESTRICTED in problem else ""
            raise self._error(
                f"{problem}{fix}", line if isinstance(line, int) else 0, column if isinstance(column, int) else 0
            )
        rights = "without limits" if self.readable is None else "allowed to read the project"
        note = f"ran {self.file.name} with Node.js {node.version}, {rights}"
        return Evaluated(object_at(answer, "config"), text_at(answer, "kind") or "", at(answer, "unused") is True, note)

    def _error(self, problem: str, line: int = 0, column: int = 0) -> ProjectError:
        return ProjectError(Redactor(self.secrets).text(problem), path=self.file, line=line, column=column)

    def _printed(self, node: Node, task: str, limit_seconds: float) -> str:
        with subprocess.Popen(  # noqa: S603  # the project's code, on the user's request
            [node.executable, *node.flags, *self._rights(), _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.file.parent,
            env=dict(self.environ),
            start_new_session=True,
        ) as process:
            late = threading.Event()
            timer = threading.Timer(limit_seconds, _end_late, (process, late))
            timer.start()
            try:
                printed = _exchanged(process, task.encode())
            finally:
                timer.cancel()
                _kill(process)
        if late.is_set():
            raise self._error(f"was not evaluated within {limit_seconds:g} s")
        if len(printed) > MAX_OUTPUT_BYTES:
            raise self._error(f"prints more than {MAX_OUTPUT_BYTES // 1024 // 1024} MB")
        return printed.decode(errors="replace")

    def _paths(self) -> list[str]:
        return [str(_SCRIPT), *(f"{path}/*" for path in self.readable or ())]

    def _rights(self) -> list[str]:
        if self.readable is None:
            return []
        return ["--permission", *(f"--allow-fs-read={path}" for path in self._paths())]


def _exchanged(process: "subprocess.Popen[bytes]", task: bytes) -> bytes:
    if process.stdin is None or process.stdout is None:  # both are pipes
        return b""
    try:
        process.stdin.write(task)
        process.stdin.close()
    except BrokenPipeError:  # exited early, as the missing output will show
        pass
    return process.stdout.read(MAX_OUTPUT_BYTES + 1)


def _end_late(process: "subprocess.Popen[bytes]", late: threading.Event) -> None:
    late.set()
    _kill(process)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process and its children; they share its process group, except on Windows."""
    if os.name == "nt":
        process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:  # macOS, if the group has just exited
        pass
