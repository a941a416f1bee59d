"""Windows: handles instead of signals, and job objects, which may end the processes that a run leaves behind."""

import sys

assert sys.platform == "win32"  # noqa: S101  # for type checkers

import ctypes
import hmac
import ipaddress
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ctypes import wintypes
from pathlib import Path
from typing import Any, Final

from pytest_device.platforms.addresses import Ends, ends_of
from pytest_device.platforms.bare_python import bare_python
from pytest_device.platforms.places import Places, places_on
from pytest_device.platforms.shells import Shell, shell_on_windows
from pytest_device.platforms.system import (
    Address,
    Intrusion,
    Level,
    Support,
    User,
    Watch,
)

_CHANNEL: Final = "PYTEST_DEVICE_CHANNEL"
"""Variable of a started program: port and key of the channel. Other users cannot read a process's environment."""
_HOST: Final = "127.0.0.1"
_KEY_BYTES: Final = 16
_CONNECT_SECONDS: Final = 30.0
_KEY_SECONDS: Final = 2.0
_CHUNK_BYTES: Final = 64 * 1024

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_security = ctypes.WinDLL("advapi32", use_last_error=True)
_network = ctypes.WinDLL("iphlpapi", use_last_error=True)

# Otherwise ctypes would cut 64-bit handles to 32 bits.
_kernel.OpenProcess.restype = wintypes.HANDLE
_kernel.OpenProcess.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
_kernel.GetCurrentProcess.restype = wintypes.HANDLE
_kernel.GetCurrentProcess.argtypes = ()
_kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
_kernel.WaitForSingleObject.argtypes = (wintypes.HANDLE, wintypes.DWORD)
_kernel.WaitForSingleObject.restype = wintypes.DWORD
_kernel.TerminateProcess.argtypes = (wintypes.HANDLE, wintypes.UINT)
_kernel.IsProcessInJob.argtypes = (
    wintypes.HANDLE,
    wintypes.HANDLE,
    ctypes.POINTER(wintypes.BOOL),
)
_kernel.CreateJobObjectW.restype = wintypes.HANDLE
_kernel.SetInformationJobObject.argtypes = (
    wintypes.HANDLE,
    ctypes.c_int,
    ctypes.c_void_p,
    wintypes.DWORD,
)
_kernel.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
_kernel.CreateToolhelp32Snapshot.restype = wintypes.HANDLE
_kernel.CreateToolhelp32Snapshot.argtypes = (wintypes.DWORD, wintypes.DWORD)
_kernel.LocalFree.argtypes = (ctypes.c_void_p,)
_security.OpenProcessToken.argtypes = (
    wintypes.HANDLE,
    wintypes.DWORD,
    ctypes.POINTER(wintypes.HANDLE),
)
_security.GetTokenInformation.argtypes = (
    wintypes.HANDLE,
    ctypes.c_int,
    ctypes.c_void_p,
    wintypes.DWORD,
    ctypes.POINTER(wintypes.DWORD),
)
_security.ConvertSidToStringSidW.argtypes = (
    ctypes.c_void_p,
    ctypes.POINTER(wintypes.LPWSTR),
)

_SYNCHRONIZE: Final = 0x00100000
_TERMINATE: Final = 0x0001
_QUERY_LIMITED: Final = 0x1000
_TOKEN_QUERY: Final = 0x0008
_TOKEN_USER: Final = 1
_INFINITE: Final = 0xFFFFFFFF
_WAIT_TIMEOUT: Final = 0x102
_ACCESS_DENIED: Final = 5
_SNAPSHOT_PROCESSES: Final = 2
_EXTENDED_LIMITS: Final = 9
_KILL_ON_JOB_CLOSE: Final = 0x2000
_TCP_TABLE_OWNER_PID_ALL: Final = 5

_DETACHED: Final = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP

_CREATE_BY_WMI: Final = """\
$ErrorActionPreference = 'Stop'
$startup = New-CimInstance -ClassName Win32_ProcessStartup -ClientOnly -Property @{
    CreateFlags = [uint32]16777224
    ShowWindow = [uint16]0
    EnvironmentVariables = [string[]]($env:PYTEST_DEVICE_VARIABLES -split "`n")
}
$created = Invoke-CimMethod -ClassName Win32_Process -MethodName Create -Arguments @{
    CommandLine = $env:PYTEST_DEVICE_COMMAND
    ProcessStartupInformation = $startup
}
if ($created.ReturnValue -ne 0) { exit 1 }
$created.ProcessId
"""
"""Its flags are DETACHED_PROCESS and CREATE_BREAKAWAY_FROM_JOB: outside the job object of the service that creates it."""
_WMI_SECONDS: Final = 10.0
_DIES_WITH_JOB: Final = (
    "the reaper process is in the job object of whoever started this run, which forbids leaving it: if that ends all its "
    "processes at once, the next run stops the sessions that are left"
)


class Windows:
    """Windows 10 and newer."""

    title: str = "Windows"
    support: Support = Support(
        Level.PARTIAL,
        "the ports of a session's programs are open to other users of the machine; tried under Wine only",
    )
    places: Places = places_on("win32")
    signals: tuple[str, ...] = ("SIGINT", "SIGBREAK", "SIGTERM")
    signals_text: str = "Ctrl-C or Ctrl-Break"
    has_terminal_select: bool = False
    has_local_service: bool = True
    creation_flags: int = subprocess.CREATE_NEW_PROCESS_GROUP
    loader_prefix: str = ""

    # Users.

    def user(self) -> User | None:
        return _user_of(_kernel.GetCurrentProcess())

    def is_root(self) -> bool:
        return False  # a browser has its sandbox for administrators, too

    def intrusion(self, directory: Path, *, may_be_of_root: bool) -> Intrusion | None:
        del directory, may_be_of_root
        return None  # access control lists are not examined

    def connection_user(self, client: Address, server: Address) -> User | None:
        pid = _owner(ends_of(client, server))
        if not pid:
            return None

        with _opened(pid, _QUERY_LIMITED) as process:
            return _user_of(process) if process else None

    # Processes.

    def exists(self, pid: int) -> bool:
        with _opened(pid, _SYNCHRONIZE) as process:
            if process is None:
                return ctypes.get_last_error() == _ACCESS_DENIED

            return bool(_kernel.WaitForSingleObject(process, 0) == _WAIT_TIMEOUT)

    def watch(self, pid: int) -> Watch | None:
        process = _kernel.OpenProcess(_SYNCHRONIZE, False, pid)
        if process:
            return _end_of(process)

        if ctypes.get_last_error() == _ACCESS_DENIED:
            return None  # another user's

        raise ProcessLookupError

    def wait_for_exit(self, process: "subprocess.Popen[Any]", seconds: float) -> None:
        process.wait(seconds)

    def session_of(self, pid: int) -> int:
        return pid

    def terminate_group(self, pid: int) -> bool:
        with suppress(OSError):  # it has ended, or has another console
            os.kill(pid, signal.CTRL_BREAK_EVENT)

        return self.has_group(pid)

    def has_group(self, pid: int) -> bool:
        return any(self.exists(member) for member in _tree(pid))

    def kill_group(self, pid: int) -> None:
        for member in _tree(pid):
            with _opened(member, _TERMINATE) as process:
                if process:
                    _kernel.TerminateProcess(process, 1)

    def interrupt_main_thread(self) -> None:
        return  # no signal interrupts a wait

    def sync_directory(self, directory: str) -> None:
        del directory  # directories cannot be opened

    # Processes that are connected to this one.

    def spawn_guardian(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        warn: Callable[[str], None],
    ) -> socket.socket:
        return _spawned(command, environ, _Start.outside_job, warn)

    def detach(self) -> None:
        self.ignore_signals()

    def ignore_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGBREAK, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    def spawn_child(
        self, command: Sequence[str], environ: Mapping[str, str]
    ) -> socket.socket:
        # It ends with its guardian anyway: no end is worth a warning.
        return _spawned(command, environ, _Start.hidden, warn=lambda _line: None)

    def await_channel(self) -> socket.socket:
        port, _, key = os.environ.pop(_CHANNEL).partition(" ")
        channel = socket.create_connection((_HOST, int(port)))
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        channel.sendall(key.encode())
        return channel

    # The programs of the local service.

    def why_no_namespaces(self) -> str:
        return "Windows has no network namespaces"

    def enter_namespace(self) -> None:
        raise OSError(self.why_no_namespaces())

    def namespace_refusal(self) -> str:
        return self.why_no_namespaces()

    def send_sockets(
        self, channel: socket.socket, sockets: Sequence[socket.socket]
    ) -> None:
        del channel, sockets
        raise OSError(self.why_no_namespaces())

    def receive_sockets(
        self, channel: socket.socket, max_sockets: int
    ) -> tuple[bytes, list[socket.socket]]:
        del channel, max_sockets
        raise OSError(self.why_no_namespaces())

    def short_directory(self) -> str:
        import tempfile

        return tempfile.gettempdir()

    def home_variables(self, home: Path, temporary: Path) -> dict[str, str]:
        return {
            "HOME": str(home),
            "USERPROFILE": str(home),
            "TEMP": str(temporary),
            "TMP": str(temporary),
        }

    def browser_command(self, command: Sequence[str | Path]) -> list[str | Path]:
        python, *options = bare_python("pytest_device.platforms.windows_browser")
        return [_interpreter(python), *options, *command]

    @property
    def shell(self) -> Shell:
        return shell_on_windows(os.environ)


def _interpreter(executable: str) -> str:
    """Return the interpreter itself: that of a virtual environment starts it in a job object of its own."""
    base: str = getattr(sys, "_base_executable", "")
    return base if base and executable == sys.executable else executable


def _spawned(
    command: Sequence[str],
    environ: Mapping[str, str],
    start: "Callable[[_Start], bool]",
    warn: Callable[[str], None],
) -> socket.socket:
    """Start a program with a channel; if ``start`` cannot, in the slower ways, beside the run. Raises OSError."""
    # The program connects to a port, since it inherits no socket: any program may, so it has to know the key.
    key = os.urandom(_KEY_BYTES).hex()
    listener = socket.create_server((_HOST, 0))

    # Without the former, sockets do not work. Nothing else: CI runners end all processes that have their variables.
    kept = {
        name: os.environ[name]
        for name in ("SYSTEMROOT", "SYSTEMDRIVE", "TEMP", "TMP")
        if name in os.environ
    }
    variables = {**kept, **environ, _CHANNEL: f"{listener.getsockname()[1]} {key}"}
    started = _Start([_interpreter(command[0]), *command[1:]], variables)
    ours, inner = socket.socketpair()
    try:
        has_started = start(started)
    except OSError:
        for unused in (listener, ours, inner):
            unused.close()
        raise

    def connect() -> None:
        with listener, inner, suppress(OSError):
            program = None
            if has_started:
                program = _accepted(listener, key, _CONNECT_SECONDS)
            elif started.by_wmi():
                program = _accepted(listener, key, _WMI_SECONDS)

            if program is None and not has_started:
                started.inside_job()
                warn(_DIES_WITH_JOB)
                program = _accepted(listener, key, _CONNECT_SECONDS)

            if program is not None:
                with program:
                    _relay_both(inner, program)

    threading.Thread(target=connect, name="pytest-device-channel", daemon=True).start()
    return ours


class _Start:
    """The ways to start a program that shall survive the job objects of this process."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._command = command
        self._environ = environ

    def hidden(self) -> bool:
        """Start it without a window, in the job objects of this process. Raises OSError."""
        self._popen(subprocess.CREATE_NO_WINDOW)
        return True

    def inside_job(self) -> bool:
        """Start it detached, in the job objects of this process. Raises OSError."""
        self._popen(_DETACHED)
        return True

    def outside_job(self) -> bool:
        """Start it outside all job objects; return False if one forbids that. Raises OSError."""
        if not _is_in_job(_kernel.GetCurrentProcess()):
            return self.inside_job()

        try:
            process = self._popen(_DETACHED | subprocess.CREATE_BREAKAWAY_FROM_JOB)
        except PermissionError:
            return False

        # The innermost job may allow what one around it forbids.
        if _is_in_job(_handle_of(process)):
            process.kill()
            return False

        return True

    def by_wmi(self) -> bool:
        """Let the system create it, as the child of a system service; return whether it did."""
        variables = "\n".join(
            f"{name}={value}" for name, value in self._environ.items()
        )
        try:
            done = subprocess.run(  # noqa: S603  # a program of the system
                [
                    _system_program("WindowsPowerShell/v1.0/powershell.exe"),
                    "-NoProfile",
                    "-NonInteractive",
                    "-Command",
                    _CREATE_BY_WMI,
                ],
                env={
                    **os.environ,
                    "PYTEST_DEVICE_COMMAND": subprocess.list2cmdline(self._command),
                    "PYTEST_DEVICE_VARIABLES": variables,
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_WMI_SECONDS,
                creationflags=subprocess.CREATE_NO_WINDOW,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return False

        # Wine's substitute for PowerShell succeeds without doing anything.
        return done.stdout.strip().isdigit()

    def _popen(self, flags: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603  # a program of this package
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=_system_program(""),
            env=dict(self._environ),
            creationflags=flags,
        )


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", wintypes.DWORD),
        ("min_memory", ctypes.c_size_t),
        ("max_memory", ctypes.c_size_t),
        ("processes", wintypes.DWORD),
        ("affinity", ctypes.c_size_t),
        ("priority", wintypes.DWORD),
        ("scheduling", wintypes.DWORD),
    )


class _JobLimits(ctypes.Structure):
    _fields_ = (
        ("basic", _BasicLimits),
        ("counters", ctypes.c_uint64 * 6),
        ("memory", ctypes.c_size_t * 4),
    )


def end_with_this_process(process: "subprocess.Popen[bytes]") -> None:
    """Make a child and its descendants end when this process ends, however it ends."""
    # Never closed: the system does, at the end of this process, and then ends the job's processes.
    job = _kernel.CreateJobObjectW(None, None)
    limits = _JobLimits()
    limits.basic.flags = _KILL_ON_JOB_CLOSE
    _kernel.SetInformationJobObject(
        job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
    )
    _kernel.AssignProcessToJobObject(job, _handle_of(process))


def _handle_of(process: "subprocess.Popen[bytes]") -> int:
    return int(process._handle)  # type: ignore[attr-defined]  # noqa: SLF001


def _system_program(path: str) -> str:
    return str(Path(os.environ.get("SYSTEMROOT", "C:/Windows"), "System32", path))


def _is_in_job(process: int) -> bool:
    answer = wintypes.BOOL()
    is_known = _kernel.IsProcessInJob(process, None, ctypes.byref(answer))
    return not is_known or bool(answer)


def _accepted(
    listener: socket.socket, key: str, seconds: float
) -> socket.socket | None:
    """Return the connection of the started program, which sends the key; None if there is none in time."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        listener.settimeout(left)
        try:
            program, _ = listener.accept()
        except OSError:
            return None

        if _sends(program, key):
            program.settimeout(None)
            program.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return program
        program.close()  # of another user, perhaps

    return None


def _sends(program: socket.socket, key: str) -> bool:
    """Return whether a program sends the key; nothing else, and in time."""
    program.settimeout(_KEY_SECONDS)
    sent = b""
    with suppress(OSError):
        while len(sent) < len(key) and (data := program.recv(len(key) - len(sent))):
            sent += data

    return hmac.compare_digest(sent, key.encode())


def _relay_both(near: socket.socket, far: socket.socket) -> None:
    """Forward bytes in both directions until both ends are closed."""
    back = threading.Thread(
        target=_relay, args=(far, near), name="pytest-device-channel-back", daemon=True
    )
    back.start()
    _relay(near, far)
    back.join()


def _relay(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            target.sendall(data)

    # The other direction may still be open.
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def _opened(pid: int, access: int) -> Generator[int | None]:
    handle = _kernel.OpenProcess(access, False, pid)
    try:
        yield handle
    finally:
        if handle:
            _kernel.CloseHandle(handle)


def _end_of(process: int) -> socket.socket:
    """Return a socket that is readable once the process of a handle has ended."""
    ours, theirs = socket.socketpair()

    def wait() -> None:
        _kernel.WaitForSingleObject(process, _INFINITE)
        _kernel.CloseHandle(process)
        theirs.close()

    threading.Thread(target=wait, name="pytest-device-watch", daemon=True).start()
    return ours


class _ProcessEntry(ctypes.Structure):
    _fields_ = (
        ("size", wintypes.DWORD),
        ("usage", wintypes.DWORD),
        ("pid", wintypes.DWORD),
        ("heap", ctypes.c_size_t),
        ("module", wintypes.DWORD),
        ("threads", wintypes.DWORD),
        ("parent", wintypes.DWORD),
        ("priority", wintypes.LONG),
        ("flags", wintypes.DWORD),
        ("program", wintypes.WCHAR * 260),
    )


def _parents() -> dict[int, int]:
    """Return the parent of each process."""
    snapshot = _kernel.CreateToolhelp32Snapshot(_SNAPSHOT_PROCESSES, 0)
    parents: dict[int, int] = {}
    try:
        entry = _ProcessEntry()
        entry.size = ctypes.sizeof(entry)
        advance = _kernel.Process32FirstW
        while advance(wintypes.HANDLE(snapshot), ctypes.byref(entry)):
            parents[entry.pid] = entry.parent
            advance = _kernel.Process32NextW
    finally:
        _kernel.CloseHandle(snapshot)

    return parents


def _tree(pid: int) -> list[int]:
    """Return a process, even if it has ended, and its descendants."""
    parents = _parents()
    members = [pid]
    for member in members:  # it grows meanwhile
        members += [
            child
            for child, parent in parents.items()
            if parent == member and child not in members
        ]

    return members


def _user_of(process: int) -> str | None:
    """Return the SID of a process's user."""
    token = wintypes.HANDLE()
    if not _security.OpenProcessToken(process, _TOKEN_QUERY, ctypes.byref(token)):
        return None

    try:
        # The first call returns the size only.
        size = wintypes.DWORD()
        _security.GetTokenInformation(token, _TOKEN_USER, None, 0, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        if not _security.GetTokenInformation(
            token, _TOKEN_USER, data, size, ctypes.byref(size)
        ):
            return None

        sid = ctypes.c_void_p.from_buffer(data)
        text = wintypes.LPWSTR()
        if not _security.ConvertSidToStringSidW(sid, ctypes.byref(text)):
            return None

        try:
            return text.value
        finally:
            _kernel.LocalFree(ctypes.cast(text, ctypes.c_void_p))
    finally:
        _kernel.CloseHandle(token)


class _Row(ctypes.Structure):
    """A connection over IPv4; ports and addresses are in network order."""

    _fields_ = (
        ("state", wintypes.DWORD),
        ("address", ctypes.c_ubyte * 4),
        ("port", wintypes.DWORD),
        ("far_address", ctypes.c_ubyte * 4),
        ("far_port", wintypes.DWORD),
        ("pid", wintypes.DWORD),
    )


class _Row6(ctypes.Structure):
    """A connection over IPv6."""

    _fields_ = (
        ("address", ctypes.c_ubyte * 16),
        ("scope", wintypes.DWORD),
        ("port", wintypes.DWORD),
        ("far_address", ctypes.c_ubyte * 16),
        ("far_scope", wintypes.DWORD),
        ("far_port", wintypes.DWORD),
        ("state", wintypes.DWORD),
        ("pid", wintypes.DWORD),
    )


def _owner(ends: Ends) -> int | None:
    """Return the process that has the client's socket of a connection."""
    (address, port), (far_address, far_port) = ends
    rows = _rows(socket.AF_INET6, _Row6)
    if isinstance(address, ipaddress.IPv4Address):
        rows = _rows(socket.AF_INET, _Row) + rows

    for row in rows:
        if (
            _port(row.port) == port
            and _port(row.far_port) == far_port
            and bytes(row.address) in _packed(address)
            and bytes(row.far_address) in _packed(far_address)
        ):
            return int(row.pid)

    return None


def _port(number: int) -> int:
    return socket.ntohs(number & 0xFFFF)


def _packed(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> set[bytes]:
    """Return an address as the sockets of both versions have it."""
    if isinstance(address, ipaddress.IPv6Address):
        return {address.packed}

    return {address.packed, ipaddress.IPv6Address(f"::ffff:{address}").packed}


def _rows(family: int, row: "type[_Row | _Row6]") -> "list[Any]":
    """Return all TCP connections of an address family, none if the system does not show them."""
    size = wintypes.DWORD(0)
    data = ctypes.create_string_buffer(0)
    # The first call asks for the size, and the table may grow before the second.
    for _ in range(4):
        status = _network.GetExtendedTcpTable(
            data, ctypes.byref(size), False, family, _TCP_TABLE_OWNER_PID_ALL, 0
        )
        if status == 0:
            count = wintypes.DWORD.from_buffer(data).value
            table = row * count
            return list(table.from_buffer(data, ctypes.sizeof(wintypes.DWORD)))

        data = ctypes.create_string_buffer(size.value + ctypes.sizeof(row))
        size.value = len(data)

    return []
