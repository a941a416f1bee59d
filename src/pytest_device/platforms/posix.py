"""What Unix systems have in common."""

import sys

assert sys.platform != "win32"  # noqa: S101  # for type checkers

import errno
import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_device.platforms.places import UNIX, Places
from pytest_device.platforms.shells import Shell, UnixShell
from pytest_device.platforms.system import (
    Address,
    Intrusion,
    Level,
    Support,
    User,
    Watch,
)

if TYPE_CHECKING:  # it would take memory in every reaper
    import subprocess

_ROOT: Final = 0
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_CHANNEL: Final = 0
"""The descriptor of a started program's channel: its standard input."""
_IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_MAX_TEMPORARY: Final = 40
"""Maximum length of the temporary directory: a socket's path may have 103 characters on macOS, 107 on Linux; a browser
adds 46, and the local service 12."""
_ON_PIPE: Final = ("/bin/sh", "-c", 'exec "$@" 3<&0 4>&1 0</dev/null 1>&2', "sh")
"""A browser reads commands from descriptor 3 and answers on 4: it opens no port, which any user could connect to."""


class Posix:
    """Any Unix. Systems that this package knows override what they do better."""

    title: str = sys.platform
    support: Support = Support(
        Level.CLIENT,
        f"the local service was never tried on {sys.platform}",
    )
    places: Places = UNIX
    signals: tuple[str, ...] = ("SIGINT", "SIGTERM", "SIGHUP")
    signals_text: str = "Ctrl-C, SIGTERM or SIGHUP"
    has_terminal_select: bool = True
    has_local_service: bool = False
    creation_flags: int = 0
    loader_prefix: str = ""

    # Users.

    def user(self) -> User | None:
        return os.geteuid()

    def is_root(self) -> bool:
        return os.geteuid() == _ROOT

    def intrusion(self, directory: Path, *, may_be_of_root: bool) -> Intrusion | None:
        status = directory.stat()
        trusted = {os.geteuid(), _ROOT} if may_be_of_root else {os.geteuid()}
        if status.st_uid not in trusted:
            return Intrusion(f"belongs to another user (ID {status.st_uid})")

        if status.st_mode & _OTHERS_WRITE:
            mode = stat.S_IMODE(status.st_mode)
            return Intrusion(
                f"can be written to by other users (mode {mode:o})",
                f"run `chmod go-w {self.shell.argument(str(directory))}`",
            )

        return None

    def connection_user(self, client: Address, server: Address) -> User | None:
        del client, server
        return None

    # Processes.

    def exists(self, pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except OSError:  # it is another user's
            return True

        return True

    def watch(self, pid: int) -> Watch | None:
        if not self.exists(pid):
            raise ProcessLookupError

        return None

    def wait_for_exit(self, process: "subprocess.Popen[Any]", seconds: float) -> None:
        process.wait(seconds)

    def session_of(self, pid: int) -> int:
        return os.getsid(pid)

    def terminate_group(self, pid: int) -> bool:
        return _signal(pid, signal.SIGTERM)

    def has_group(self, pid: int) -> bool:
        return _signal(pid, 0)

    def kill_group(self, pid: int) -> None:
        _signal(pid, signal.SIGKILL)

    def interrupt_main_thread(self) -> None:
        # Not to the process: the kernel gives its signal to any of its threads, and Python handles it once the main
        # thread runs again. A main thread that sleeps meanwhile sleeps on, which happens to half of the signals that
        # follow another one within a millisecond.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    def sync_directory(self, directory: str) -> None:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            # CIFS and the shared folders of VirtualBox cannot do this for directories.
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(descriptor)

    # Processes that are connected to this one.

    def spawn_guardian(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        warn: Callable[[str], None],
    ) -> socket.socket:
        import subprocess

        del warn  # a process session of its own survives whatever ends the others
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: S603  # a program of this package
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=dict(environ),
                start_new_session=True,
            )

        # It forks at once to detach itself, which ends this process.
        threading.Thread(
            target=process.wait, name="pytest-device-reaper-start", daemon=True
        ).start()
        return ours

    def ignore_signals(self) -> None:
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)

    def detach(self) -> None:
        if os.fork():
            # Not a child of the starting process: no zombie, and not killed together with its process tree.
            os._exit(0)

        self.ignore_signals()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # its children leave no zombies

    def spawn_child(
        self, command: Sequence[str], environ: Mapping[str, str]
    ) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            # Not with subprocess, which would take memory in every reaper. The child inherits no other descriptor than
            # the standard ones: the other end of the guardian's own channel notices the guardian's end.
            os.posix_spawn(
                command[0],
                list(command),
                environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), _CHANNEL)],
            )

        return ours

    def await_channel(self) -> socket.socket:
        return socket.socket(fileno=_CHANNEL)

    # The programs of the local service.

    def why_no_namespaces(self) -> str:
        return f"{sys.platform} has no network namespaces"

    def enter_namespace(self) -> None:
        raise OSError(self.why_no_namespaces())

    def namespace_refusal(self) -> str:
        return self.why_no_namespaces()

    def send_sockets(
        self, channel: socket.socket, sockets: Sequence[socket.socket]
    ) -> None:
        socket.send_fds(channel, [b"\0"], [sent.fileno() for sent in sockets])

    def receive_sockets(
        self, channel: socket.socket, max_sockets: int
    ) -> tuple[bytes, list[socket.socket]]:
        data, descriptors, *_ = socket.recv_fds(channel, 65536, max_sockets)
        return data, [socket.socket(fileno=number) for number in descriptors]

    def short_directory(self) -> str:
        import tempfile  # here: its modules would take memory in every reaper

        usual = tempfile.gettempdir()
        if len(usual) <= _MAX_TEMPORARY:
            return usual

        return "/tmp"  # noqa: S108  # only private directories are created in it

    def home_variables(self, home: Path, temporary: Path) -> dict[str, str]:
        return {"HOME": str(home), "TMPDIR": str(temporary)}

    def browser_command(self, command: Sequence[str | Path]) -> list[str | Path]:
        return [*_ON_PIPE, *command]

    @property
    def shell(self) -> Shell:
        return UnixShell()


def _signal(group: int, number: int) -> bool:
    """Send a signal to a group, 0 to ask only; return whether it has processes."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS: only zombies are left
        return False

    return True
