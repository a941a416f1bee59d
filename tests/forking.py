"""Starts pytest runs within tests, their workers, and our own programs as forks: of a process with their modules.

Imports are four fifths of the processor time of a small run or program. A fork is a process of its own in all else:
parent, group, arguments, environment, working directory, files and signals. Its /proc entry still shows the command of
the first one, and it ends right after its exit functions.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from importlib.metadata import PathDistribution, distributions, entry_points
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Final, Self

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_CUSTOM: Final = "sitecustomize.py"
_MOST_BYTES: Final = 200_000
COMMAND: Final = (
    "-c",
    "import sys; from pytest_device.cli import main; sys.exit(main())",
)
SERVICE: Final = ("-P", "-m", "pytest_device.service")
OWNER: Final = ("-m", "tests.sessions.owns_sessions")
"""Owns sessions until it is killed, for tests of the reaper."""
_WORKER: Final = ("-u", "-c", "import sys;exec(eval(sys.stdin.readline()))")
_OF_WORKERS: Final = ("-n", "--numprocesses", "--tx")
_OF_RUNS: Final = (
    "pytest_device.plugin.collection",
    "pytest_device.plugin.fixtures",
    "pytest_device.plugin.hookspecs",
    "pytest_device.plugin.provider.drivers",
    "pytest_device.plugin.run",
    "pytest_device.plugin.services",
    "pytest_device.plugin.xdist.coordinator",
    "pytest_device.plugin.xdist.scheduler",
    "pytest_device.report.receipt",
    "xdist.dsession",
    "xdist.newhooks",
    "encodings.idna",
    "faulthandler",
    "filelock",
    "httpcore",
    "httpx",
    "pdb",
    "pydantic",
    "unittest",
)
_OF_PROGRAMS: Final = (
    "pytest_device.app.checks",
    "pytest_device.cli",
    "pytest_device.cli.doctor.configuration",
    "pytest_device.cli.doctor.devices",
    "pytest_device.cli.doctor.ledger",
    "pytest_device.cli.doctor.local",
    "pytest_device.cli.doctor.packages",
    "pytest_device.cli.doctor.service",
    "pytest_device.service.server",
    "pytest_device.sessions.sweep",
    "uvicorn.lifespan.off",
)
_LOADED: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("-m", "pytest"): _OF_RUNS,
    ("-mpytest",): _OF_RUNS,
    _WORKER: _OF_RUNS,
    OWNER: _OF_RUNS,
    COMMAND: _OF_RUNS + _OF_PROGRAMS,
    SERVICE: _OF_RUNS + _OF_PROGRAMS,
}
"""The modules to load beforehand, by the beginning of a command."""

_TEXT_OPTIONS: Final = frozenset({"text", "encoding", "errors"})
_OPTIONS: Final = _TEXT_OPTIONS | {
    "close_fds",
    "cwd",
    "env",
    "process_group",
    "start_new_session",
    "stderr",
    "stdin",
    "stdout",
}
"""What a fork can be asked for; ``Popen`` starts a fresh interpreter for all else, such as ``executable``.

A fork always has the three standard streams alone, so ``close_fds`` changes nothing: pytester of pytest 8.0 passes it.
"""
_NOTHING: Final = (
    shutil.which("true", path=os.defpath) or "true"
)  # a test may have no PATH


class Popen(subprocess.Popen[Any]):
    """Starts a program; one of ``_LOADED`` as a fork, unless its Python must start in another way.

    What such a run starts are fresh interpreters, as those of other users.

    Only documented parameters and attributes are used: ``Popen`` itself starts a program that does nothing, which
    leaves the object as for any process, and then gets the ID and the pipes of the fork. Other ways were tried: the
    method that starts the process is private, and its arguments change; ``preexec_fn`` forks this process, which has
    threads, and newer Pythons warn of that.
    """

    forks_workers = False
    kinds: Iterable[tuple[str, ...]] = _LOADED

    def __init__(self, args: Any, *positional: Any, **options: Any) -> None:
        server = None
        if not positional and options.keys() <= _OPTIONS:
            server = _server(args, options, self.kinds)
        if server is None:
            super().__init__(args, *positional, **options)
            return

        order = {
            "command": list(map(str, args[1:])),
            "directory": str(Path.cwd() / (options.get("cwd") or "")),
            "environ": _environ(options),
            "forks_workers": self.forks_workers,
            "session": options.get("start_new_session", False),
            "group": options.get("process_group"),
        }
        text = {name: options[name] for name in _TEXT_OPTIONS & options.keys()}

        with ExitStack() as ends_of_child:
            streams = _Streams(options, ends_of_child)
            pid = server.fork(order, streams.of_child)

        super().__init__([_NOTHING], **text)
        os.waitpid(self.pid, 0)

        self.args = args
        self.pid = pid
        self.stdin, self.stdout, self.stderr = streams.files(**text)


class _Streams:
    """The standard streams of a fork: its own ends, and those of this process if they are pipes."""

    def __init__(self, options: dict[str, Any], ends_of_child: ExitStack) -> None:
        self.of_child: list[int] = []
        self._pipes: list[int | None] = []
        for name in ("stdin", "stdout", "stderr"):
            self._open(options.get(name), ends_of_child)

    def files(self, **text: Any) -> list[IO[Any] | None]:
        """Return the files of the pipes, as the attributes of ``Popen``."""
        binary = "" if any(text.values()) else "b"
        text.pop("text", None)
        modes = (f"w{binary}", f"r{binary}", f"r{binary}")
        return [
            None if pipe is None else os.fdopen(pipe, mode, **text)
            for pipe, mode in zip(self._pipes, modes, strict=True)
        ]

    def _open(self, stream: Any, ends_of_child: ExitStack) -> None:
        number = len(self.of_child)
        pipe = None
        match stream:
            case None:
                end = number
            case subprocess.PIPE:
                reads, writes = os.pipe()
                end, pipe = (reads, writes) if number == 0 else (writes, reads)
                ends_of_child.callback(os.close, end)
            case subprocess.DEVNULL:
                end = os.open(os.devnull, os.O_RDWR)
                ends_of_child.callback(os.close, end)
            case subprocess.STDOUT:
                end = self.of_child[1]
            case int():
                end = stream
            case _:
                end = stream.fileno()
        self.of_child.append(end)
        self._pipes.append(pipe)


class LeanPopen(Popen):
    """Starts a run of pytest as a fork whose workers are forks, too."""

    forks_workers = True


class _WorkerPopen(Popen):
    """Starts a worker as a fork."""

    kinds = (_WORKER,)


def _server(
    args: object, options: dict[str, Any], kinds: Iterable[tuple[str, ...]]
) -> "Server | None":
    """Return the server that can fork this command; None if Python has to start anew."""
    kind = _kind(args, kinds)
    if not kind:
        return None

    server = ready(kind)
    return server if server.serves(_environ(options)) else None


def _environ(options: dict[str, Any]) -> dict[str, str]:
    env = options.get("env")
    return dict(os.environ if env is None else env)


def _kind(args: object, kinds: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the kind to which a command belongs, by its beginning; nothing for another one."""
    if (
        not isinstance(args, list | tuple)
        or sys.platform != "linux"
        or args[0] != sys.executable
    ):
        return ()
    return next(
        (kind for kind in kinds if list(args[1 : len(kind) + 1]) == list(kind)), ()
    )


class Server:
    """The process that forks; it ends with the process that started it."""

    def __init__(
        self,
        connection: socket.socket,
        environ: dict[str, str],
        process: subprocess.Popen[bytes] | None = None,
    ) -> None:
        """Wait until the process at the other end, which was started with ``environ``, is ready."""
        self._lock = threading.Lock()
        self._connection, self._process = connection, process
        self._started = _of_start(environ)
        self._received()

    @classmethod
    def started(cls, modules: Iterable[str]) -> Self:
        ours, theirs = _connections()
        # Of no test: some look for processes by the directories that these have.
        environ = {
            name: value
            for name, value in os.environ.items()
            if name not in {"PYTHONPATH", "TMPDIR"}
        }
        command, nothing = (
            [sys.executable, str(Path(__file__).resolve()), str(theirs.fileno())],
            subprocess.DEVNULL,
        )
        with theirs:
            process = subprocess.Popen(
                [*command, *modules],
                cwd="/",
                env=environ,
                pass_fds=[theirs.fileno()],
                stdin=nothing,
                stdout=nothing,
            )
        return cls(ours, environ, process)

    def serves(self, environ: dict[str, str]) -> bool:
        """Return whether Python would start in the same way with these environment variables."""
        places = environ.get("PYTHONPATH", "").split(os.pathsep)
        return self._started == _of_start(environ) and not any(
            Path(place, _CUSTOM).exists() for place in places
        )

    def fork(self, order: object, files: list[int]) -> int:
        """Return the ID of a new child of this process; ``files`` become its standard streams."""
        adopts = ctypes.c_int()
        with self._lock:
            socket.send_fds(self._connection, [json.dumps(order).encode()], files)
            pid = int(self._received())
            _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(adopts))
            # Only while its parent between ends: it leaves an orphan.
            _prctl(_PR_SET_CHILD_SUBREAPER, 1)
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


def ready(kind: tuple[str, ...] = _WORKER) -> Server:
    """Return this process's server of a kind of commands, which the first call starts."""
    key = os.getpid(), _LOADED[kind]  # a fork of this process must not read the answers
    if key not in _SERVERS:
        _SERVERS[key] = Server.started(_LOADED[kind])
    return _SERVERS[key]


_SERVERS: Final[dict[tuple[int, tuple[str, ...]], Server]] = {}


def remember_packages() -> None:
    """Parse the metadata of the installed packages once: pytest does it in each run, several times."""
    for name in ("entry_points", "files", "metadata"):
        setattr(
            PathDistribution, name, _remembered(getattr(PathDistribution, name).fget)
        )
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
    return {
        name: value
        for name, value in environ.items()
        if name.startswith(begins) and name != "PYTHONPATH"
    }


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
    if forks_workers and any(
        argument.startswith(_OF_WORKERS) for argument in order["command"]
    ):
        ours, theirs = _connections()
        if not os.fork():
            for file in (ours.detach(), *files):
                os.close(file)
            return _serve(theirs)
        theirs.close()
        _SERVERS[os.getpid(), _OF_RUNS] = Server(ours, order["environ"])
        subprocess.Popen = _WorkerPopen  # type: ignore[misc]  # by which pytest-xdist starts workers
    return _become(files, **order)


def _become(
    files: list[int],
    *,
    command: list[str],
    directory: str,
    environ: dict[str, str],
    session: bool,
    group: int | None,
) -> list[str]:
    """Put this process into the state of a new one; return its command."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdout.reconfigure(  # type: ignore[union-attr]
        line_buffering=os.isatty(1), write_through=command[:1] == ["-u"]
    )
    if session:
        os.setsid()
    if group is not None:
        os.setpgid(0, group)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environ)
    added = filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))
    own = ("",) if "-P" not in command[:1] else ()
    sys.path[:1] = [str(Path.cwd() / name) for name in (*own, *added)]
    # For workers, kept since the import.
    vars(sys.modules["xdist.plugin"])["_sys_path"][:] = sys.path
    return command


def _load(modules: Iterable[str]) -> None:
    from _pytest.assertion import install_importhook
    from _pytest.config import get_config

    plugins = [point.module for point in entry_points(group="pytest11")]
    config = get_config()
    # Before pytest 8.1, reading the ini file brings it.
    vars(config).setdefault("inicfg", {})
    hook = install_importhook(config)
    # Else pytest warns of each.
    hook.mark_rewrite(*(name.split(".")[0] for name in plugins))
    for name in (*plugins, *modules):
        importlib.import_module(name)
    sys.meta_path.remove(hook)  # each run has its own
    remember_packages()
    gc.freeze()


def _run(command: list[str]) -> None:
    kind = _kind([sys.executable, *command], _LOADED)
    sys.argv[:] = ["-c", *command[len(kind) :]]
    if "-c" in kind:
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(kind[-1], vars(main))
    else:
        runpy.run_module(
            kind[-1].removeprefix("-m"), run_name="__main__", alter_sys=True
        )


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
    # The first to be registered is the last to be called.
    atexit.register(_leave, statuses)
    _load(sys.argv[2:])
    try:
        _run(_serve(socket.socket(fileno=int(sys.argv[1]))))
    except SystemExit as end:
        if not isinstance(end.code, str):
            statuses.append(end.code or 0)
        raise
    statuses.append(0)
