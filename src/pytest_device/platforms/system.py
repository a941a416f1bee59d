"""What differs between operating systems, as one protocol."""

import socket
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pytest_device.platforms.places import Places
from pytest_device.platforms.shells import Shell

if TYPE_CHECKING:  # it would take memory in every reaper
    import subprocess

Address = tuple[Any, ...]
"""IP address and port; those of IPv6 sockets have two more values."""
User = int | str
"""A user: an ID on Unix, a security identifier (SID) on Windows."""


class Level(StrEnum):
    """How far this package works on a system."""

    FULL = "supported"
    PARTIAL = "supported in part"
    CLIENT = "client only"


class Support(NamedTuple):
    """How far this package works on a system, and what does not work there."""

    level: Level
    limits: str


class Intrusion(NamedTuple):
    """How another user can change a directory, and the command that prevents it, if there is one."""

    problem: str
    fix: str = ""


class Watch(Protocol):
    """Becomes readable, for ``select``, once a process has ended."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class System(Protocol):
    """An operating system. Where methods raise OSError, the system refuses.

    Processes of this package import it, too, that run on the standard library alone.
    """

    title: str
    """Its name in messages, such as ``Linux``."""
    support: Support
    places: Places
    signals: tuple[str, ...]
    """Names of the signals that ask a program to end: Ctrl-C's first."""
    signals_text: str
    """These signals, as a user knows them."""
    has_terminal_select: bool
    """Whether ``select`` can wait for a terminal's input."""
    has_local_service: bool
    """Whether the programs of the local service can run here."""
    creation_flags: int
    """For ``subprocess``, beside ``start_new_session``: the process and its children are a group of their own."""
    loader_prefix: str
    """Prefix of the variables that make the system load other libraries, "" if it has none."""

    # Users.

    def user(self) -> User | None:
        """Return the user of this process, None if the system does not show it."""
        ...

    def is_root(self) -> bool:
        """Return whether this process runs as a user whose browsers have no sandbox."""
        ...

    def intrusion(self, directory: Path, *, may_be_of_root: bool) -> Intrusion | None:
        """Return how another user can change a directory, None if nobody can.

        Raises OSError if the directory cannot be examined.
        """
        ...

    def connection_user(self, client: Address, server: Address) -> User | None:
        """Return the user who opened a connection, by its two ends.

        None if the system does not show it, or if the connection is closed.
        """
        ...

    # Processes.

    def exists(self, pid: int) -> bool:
        """Return whether a process with this ID is running."""
        ...

    def watch(self, pid: int) -> Watch | None:
        """Return what becomes readable at the end of a process; None if the caller has to poll ``exists``.

        Raises ProcessLookupError if there is no such process.
        """
        ...

    def wait_for_exit(self, process: "subprocess.Popen[Any]", seconds: float) -> None:
        """Wait until a child process exits. Raises subprocess.TimeoutExpired."""
        ...

    def session_of(self, pid: int) -> int:
        """Return the process session of a process: its own ID, if the system has no sessions.

        Raises ProcessLookupError if there is no such process.
        """
        ...

    def terminate_group(self, pid: int) -> bool:
        """Ask the processes of a group to end; return whether there are any.

        ``pid`` was started with ``start_new_session`` and ``creation_flags``.
        """
        ...

    def has_group(self, pid: int) -> bool:
        """Return whether a group has processes."""
        ...

    def kill_group(self, pid: int) -> None:
        """End the processes of a group at once."""
        ...

    def interrupt_main_thread(self) -> None:
        """Send SIGTERM to the main thread; nothing where that is impossible."""
        ...

    def sync_directory(self, directory: str) -> None:
        """Make changes of a directory's entries durable, where the system can. Raises OSError."""
        ...

    # Processes that are connected to this one, on the standard library alone.

    def spawn_guardian(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        warn: Callable[[str], None],
    ) -> socket.socket:
        """Start a Python program that survives this process, its terminal and its group; return a channel to it.

        The channel can be used at once; it reaches its end if the program does not start.

        Arguments:
            command: the program and its arguments.
            environ: all environment variables of the program.
            warn: gets one line, perhaps in another thread, if something can end the program together with this process.

        Raises:
            OSError: the system refuses.
        """
        ...

    def ignore_signals(self) -> None:
        """Ignore requests to end: this process ends by itself."""
        ...

    def detach(self) -> None:
        """Leave, as a guardian, the tree of processes that started it; ignore requests to end."""
        ...

    def spawn_child(
        self, command: Sequence[str], environ: Mapping[str, str]
    ) -> socket.socket:
        """Start a Python program of a guardian; return a channel to it, as above. Raises OSError."""
        ...

    def await_channel(self) -> socket.socket:
        """Return the started program's end of its channel. Raises OSError."""
        ...

    # The programs of the local service.

    def why_no_namespaces(self) -> str:
        """Return why this system cannot isolate a program's ports, "" if it can."""
        ...

    def enter_namespace(self) -> None:
        """Give this process a network of its own, with a loopback interface only. Raises OSError."""
        ...

    def namespace_refusal(self) -> str:
        """Return why this process may not have a network namespace, "" if it may."""
        ...

    def send_sockets(
        self, channel: socket.socket, sockets: Sequence[socket.socket]
    ) -> None:
        """Send sockets over a channel between processes."""
        ...

    def receive_sockets(
        self, channel: socket.socket, max_sockets: int
    ) -> tuple[bytes, list[socket.socket]]:
        """Receive sockets over a channel, or the bytes that were sent instead."""
        ...

    def short_directory(self) -> str:
        """Return a directory of temporary files with a short path."""
        ...

    def home_variables(self, home: Path, temporary: Path) -> dict[str, str]:
        """Return the variables that give a program a home and a directory of temporary files."""
        ...

    def browser_command(self, command: Sequence[str | Path]) -> list[str | Path]:
        """Return a command that starts a browser with its debugging pipe as standard input and output."""
        ...

    @property
    def shell(self) -> Shell:
        """The user's shell."""
        ...
