"""Starts pytest runs within tests, and their workers, as forks of a process that has already imported their modules.

Imports are four fifths of the processor time of a small run. A fork is a process of its own in all else: parent, group,
arguments, environment, working directory, files and signals. Its /proc entry still shows the command of the first one,
and it ends right after its exit functions.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PathDistribution, distributions, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_CUSTOM: Final = "sitecustomize.py"
_MOST_BYTES: Final = 200_000
_RUNS: Final = (["-m", "pytest"], ["-mpytest"])
_WORKER: Final = ["-u", "-c", "import sys;exec(eval(sys.stdin.readline()))"]
_OF_WORKERS: Final = ("-n", "--numprocesses", "--tx")
_LOADED: Final = (
    *("pytest_device.plugin.collection", "pytest_device.plugin.fixtures", "pytest_device.plugin.hookspecs"),
    *("pytest_device.plugin.provider.drivers", "pytest_device.plugin.run", "pytest_device.plugin.services"),
    *("pytest_device.plugin.xdist.coordinator", "pytest_device.plugin.xdist.scheduler"),
    *("pytest_device.report.receipt", "xdist.dsession", "xdist.newhooks"),
    *("encodings.idna", "faulthandler", "filelock", "httpcore", "httpx", "pdb", "pydantic", "unittest"),
)


class Popen(subprocess.Popen[Any]):
    """Starts a program; a pytest run or its worker as a fork, unless its Python must start in another way.

    The workers of such a run are fresh interpreters, as those of other users.
    """

    forks_workers = False

    def _execute_child(self, *given: Any) -> None:
        # In the order of the method that is extended, the same since Python 3.11.
        args, executable, preexec_fn, _, pass_fds, cwd, env, *_ = given
        pipes, (session, group) = given[10:16], given[-2:]
        environ = dict(os.environ if env is None else env)
        if executable or preexec_fn or pass_fds or not _is_of_pytest(args) or not ready().serves(environ):
            super()._execute_child(*given)  # type: ignore[misc]  # not in typeshed
            return
        order = {
            "command": list(map(str, args[1:])),
            "directory": str(Path.cwd() / (cwd or "")),
            "environ": environ,
            "forks_workers": self.forks_workers,
            "session": session,
            "group": group,
        }
        ends = [pipe if pipe != -1 else number for number, pipe in enumerate((pipes[0], pipes[3], pipes[5]))]
        try:
            self.pid = ready().fork(order, ends)
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]  # as above


class LeanPopen(Popen):
    """Starts a run of pytest as a fork whose workers are forks, too."""

    forks_workers = True


def _is_of_pytest(args: object) -> bool:
    if not isinstance(args, list | tuple) or sys.platform != "linux" or args[0] != sys.executable:
        return False
    return list(args[1:]) == _WORKER or any(list(args[1 : len(run) + 1]) == run for run in _RUNS)


class Server:
    """The process that forks; it ends with the process that started it."""

    def __init__(
        self, connection: socket.socket, environ: dict[str, str], process: subprocess.Popen[bytes] | None = None
    ) -> None:
        """Wait until the process at the other end, which was started with ``environ``, is ready."""
        self._lock = threading.Lock()
        self._connection, self._process = connection, process
        self._started = _of_start(environ)
        self._received()

    @classmethod
    def started(cls) -> Self:
        ours, theirs = _connections()
        # Of no test: some look for processes by the directories that these have.
        environ = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "TMPDIR"}}
        command, nothing = [sys.executable, str(Path(__file__).resolve()), str(theirs.fileno())], subprocess.DEVNULL
        with theirs:
            process = subprocess.Popen(
                command, cwd="/", env=environ, pass_fds=[theirs.fileno()], stdin=nothing, stdout=nothing
            )
        return cls(ours, environ, process)

    def serves(self, environ: dict[str, str]) -> bool:
        """Return whether Python would start in the same way with these environment variables."""
        places = environ.get("PYTHONPATH", "").split(os.pathsep)
        return self._started == _of_start(environ) and not any(Path(place, _CUSTOM).exists() for place in places)

    def fork(self, order: object, files: list[int]) -> int:
        """Return the ID of a new child of this process; ``files`` become its standard streams."""
        adopts = ctypes.c_int()
        with self._lock:
            socket.send_fds(self._connection, [json.dumps(order).encode()], files)
            pid = int(self._received())
            _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(adopts))
            _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # only while its parent between ends: it leaves an orphan
            try:
                self._connection.send(b"end")
                self._received()
            finally:
                _prctl(_PR_SET_CHILD_SUBREAPER, adopts.value)
        return pid

    def _received(self) -> bytes:
        text = self._connection.recv(32)
        assert text, "the process that forks has ended"
        return text


def ready() -> Server:
    """Return the server of this process, which the first call starts."""
    owner = os.getpid()  # a fork of this process must not read the answers
    if owner not in _SERVERS:
        _SERVERS[owner] = Server.started()
    return _SERVERS[owner]


_SERVERS: Final[dict[int, Server]] = {}


def remember_packages() -> None:
    """Parse the metadata of the installed packages once: pytest does it in each run, several times."""
    for name in ("entry_points", "files", "metadata"):
        setattr(PathDistribution, name, _remembered(getattr(PathDistribution, name).fget))
    for package in distributions():
        _ = package.entry_points, package.files, package.metadata


def _remembered(read: Callable[[PathDistribution], object]) -> property:
    known: dict[str, object] = {}

    def remembered(package: PathDistribution) -> object:
        path = str(vars(package)["_path"])
        if path not in known:
            known[path] = read(package)
        return known[path]

    return property(remembered)


def _connections() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _of_start(environ: dict[str, str]) -> dict[str, str]:
    """Return the variables that Python reads at startup."""
    begins = ("PYTHON", "LC_", "LANG", "TZ")
    return {name: value for name, value in environ.items() if name.startswith(begins) and name != "PYTHONPATH"}


def _prctl(option: int, argument: object) -> None:
    ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)


def _serve(connection: socket.socket) -> list[str]:
    """Fork at each order, until no client is left; return the command in the process that runs it."""
    connection.send(b"ready")
    while True:
        text, files, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
        if not text:
            sys.exit()
        if between := os.fork():
            os.waitpid(between, 0)
            connection.send(b"ended")
            for file in files:
                os.close(file)
        else:
            _split(connection)
            return _begin(files, **json.loads(text))


def _split(connection: socket.socket) -> None:
    """Return in a child, which is orphaned once the client is ready for it."""
    between = os.getpid()
    if child := os.fork():
        connection.send(str(child).encode())
        connection.recv(32)
        os._exit(0)
    connection.close()
    while os.getppid() == between:
        time.sleep(0.001)


def _begin(files: list[int], *, forks_workers: bool, **order: Any) -> list[str]:
    """Return the command of this process, of which a child may remain as the server of its workers."""
    if forks_workers and any(argument.startswith(_OF_WORKERS) for argument in order["command"]):
        ours, theirs = _connections()
        if not os.fork():
            for file in (ours.detach(), *files):
                os.close(file)
            return _serve(theirs)
        theirs.close()
        _SERVERS[os.getpid()] = Server(ours, order["environ"])
        subprocess.Popen = Popen  # type: ignore[misc]  # by which pytest-xdist starts workers
    return _become(files, **order)


def _become(
    files: list[int], *, command: list[str], directory: str, environ: dict[str, str], session: bool, group: int
) -> list[str]:
    """Put this process into the state of a new one; return its command."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdout.reconfigure(line_buffering=os.isatty(1), write_through=command == _WORKER)  # type: ignore[union-attr]
    if session:
        os.setsid()
    if group != -1:
        os.setpgid(0, group)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environ)
    added = filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:1] = [str(Path.cwd() / name) for name in ("", *added)]
    vars(importlib.import_module("xdist.plugin"))["_sys_path"][:] = sys.path  # for workers, kept since the import
    return command


def _load() -> None:
    from _pytest.assertion import install_importhook
    from _pytest.config import get_config

    plugins = [point.module for point in entry_points(group="pytest11")]
    config = get_config()
    vars(config).setdefault("inicfg", {})  # before pytest 8.1, reading the ini file brings it
    hook = install_importhook(config)
    hook.mark_rewrite(*(name.split(".")[0] for name in plugins))  # else pytest warns of each
    for name in (*plugins, *_LOADED):
        importlib.import_module(name)
    sys.meta_path.remove(hook)  # each run has its own
    remember_packages()
    gc.freeze()


def _run(command: list[str]) -> None:
    if command == _WORKER:
        sys.argv[:] = ["-c"]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(_WORKER[-1], vars(main))
    else:
        sys.argv[1:] = command[next(len(run) for run in _RUNS if command[: len(run)] == run) :]
        runpy.run_module("pytest", run_name="__main__", alter_sys=True)


def _leave(statuses: list[int]) -> None:
    """End without Python's last step: it visits each object to free it, which copies each page of a fork."""
    with suppress(OSError):  # Python has a status of its own for that
        sys.stdout.flush()
        sys.stderr.flush()
        for status in statuses:
            os._exit(status)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    statuses: list[int] = []
    atexit.register(_leave, statuses)  # the first to be registered is the last to be called
    _load()
    try:
        _run(_serve(socket.socket(fileno=int(sys.argv[1]))))
    except SystemExit as end:
        if not isinstance(end.code, str):
            statuses.append(end.code or 0)
        raise
    statuses.append(0)
