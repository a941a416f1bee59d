"""Linux: it reports the end of processes, shows who opened a connection, and isolates programs in namespaces."""

import sys

assert sys.platform == "linux"  # noqa: S101  # for type checkers

import ipaddress
import os
import select
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_device.platforms.addresses import Ends, ends_of
from pytest_device.platforms.posix import Posix
from pytest_device.platforms.system import Address, Level, Support, User, Watch

_Owner = tuple[int, int] | None
"""User and inode of a client's socket, None if there is no such socket."""

if TYPE_CHECKING:  # it would take memory in every reaper
    import subprocess

# Of unshare(2) and netdevice(7).
_NEW_USER: Final = 0x10000000
_NEW_NETWORK: Final = 0x40000000
_GET_FLAGS: Final = 0x8913
_SET_FLAGS: Final = 0x8914
_UP: Final = 1

# Of netlink(7) and sock_diag(7).
_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_ANY_STATE: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_QUERY: Final = struct.Struct("=BBBBI")
_SOCKET: Final = struct.Struct("!HH16s16s")
_NO_INTERFACE_AND_COOKIE: Final = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_ANSWER: Final = struct.Struct("=BBBB48sIIIII")
_ANSWER_BYTES: Final = 4096
_ANSWER_SECONDS: Final = 1.0

_LISTS: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_READS: Final = 3
"""Maximum number of reads of the lists: one that changes while it is read can lack a row."""
_ROW_BYTES: Final = 256
"""More than any row has."""
_USER_COLUMN: Final = 6
_INODE_COLUMN: Final = 8


class Linux(Posix):
    """Linux, on any processor."""

    title: str = "Linux"
    support: Support = Support(Level.FULL, "")
    has_local_service: bool = True
    loader_prefix: str = "LD_"

    def connection_user(self, client: Address, server: Address) -> User | None:
        """Look for the client's socket, over netlink (microseconds), else in the lists of all sockets (milliseconds).

        A list may exist and be empty: some sandboxes hide connections.
        """
        ends = ends_of(client, server)
        return _user(_owner_by_netlink(ends) or _owner_in_lists(ends))

    def watch(self, pid: int) -> Watch | None:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except (AttributeError, OSError):  # an old kernel, or a sandbox
            return super().watch(pid)

        return _ProcessDescriptor(descriptor)

    def wait_for_exit(self, process: "subprocess.Popen[Any]", seconds: float) -> None:
        """Wait without polling: ``Popen.wait`` with a timeout polls, up to 50 ms apart."""
        try:
            descriptor = os.pidfd_open(process.pid)
        # An old kernel, a sandbox, or a child that was waited for.
        except (AttributeError, OSError):
            process.wait(seconds)
            return

        try:
            exits = select.poll()
            exits.register(descriptor, select.POLLIN)
            has_exited = bool(exits.poll(seconds * 1000))
        finally:
            os.close(descriptor)

        # It also reads the exit status; without an exit, it raises TimeoutExpired.
        process.wait(None if has_exited else 0)

    def why_no_namespaces(self) -> str:
        return ""

    def enter_namespace(self) -> None:
        # Imported here: only a program that is about to be isolated needs them.
        import ctypes
        import fcntl

        user, group = os.geteuid(), os.getegid()
        library = ctypes.CDLL(None, use_errno=True)

        # Without a user namespace, root keeps its permissions for other users' files.
        if library.unshare(_NEW_NETWORK) != 0:
            if library.unshare(_NEW_USER | _NEW_NETWORK) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

            # Only with groups denied, the kernel lets a user map its own group: user_namespaces(7).
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")

        # A new namespace has its loopback interface, but not up.
        with socket.socket() as any_socket:
            interface = struct.pack("16sH14x", b"lo", 0)
            reply = fcntl.ioctl(any_socket, _GET_FLAGS, interface)
            flags = struct.unpack("16sH14x", reply)[1]
            fcntl.ioctl(
                any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP)
            )

    def namespace_refusal(self) -> str:
        # In a child, since a process cannot leave a namespace, not even one that was created in part.
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                self.enter_namespace()
            except OSError as error:
                os.write(writer, str(error.strerror or error).encode())
            finally:
                os._exit(0)

        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as answer:
            return answer.read().decode()


class _ProcessDescriptor:
    """A pidfd, which is readable once its process has ended."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        os.close(self._descriptor)


def _user(owner: _Owner) -> int | None:
    """Return the user of a socket, None if its program has closed it.

    A closed socket has no inode, and the kernel reports root as its user: otherwise, another user could send a request
    and close the connection before the lookup.
    """
    if owner is None:
        return None

    user, inode = owner
    return user if inode else None


def _owner_by_netlink(ends: Ends) -> _Owner:
    """Ask the kernel for the client's socket."""
    (client, _), _ = ends
    is_ipv4 = isinstance(client, ipaddress.IPv4Address)
    family = socket.AF_INET if is_ipv4 else socket.AF_INET6
    query = (
        _QUERY.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
        + _socket_id(ends)
        + _NO_INTERFACE_AND_COOKIE
    )
    header = _HEADER.pack(_HEADER.size + len(query), _BY_FAMILY, _REQUEST, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.settimeout(_ANSWER_SECONDS)
            kernel.send(header + query)
            answer = kernel.recv(_ANSWER_BYTES)
    except (OSError, AttributeError):  # not permitted, or not Linux
        return None

    _length, kind, *_ = _HEADER.unpack_from(answer)
    # An error: there is no such socket.
    if kind != _BY_FAMILY or len(answer) < _HEADER.size + _ANSWER.size:
        return None

    *_, socket_id, _expires, _received, _sent, user, inode = _ANSWER.unpack_from(
        answer, _HEADER.size
    )
    # Without a connection, the kernel returns the socket that listens on the client's port.
    expected = {_socket_id(ends), _socket_id(_mapped(ends))}
    if socket_id[: _SOCKET.size] not in expected:
        return None

    return user, inode


def _socket_id(ends: Ends) -> bytes:
    """Return the ports and addresses of a connection as netlink identifies the client's socket."""
    (address, port), (far_address, far_port) = ends
    return _SOCKET.pack(port, far_port, address.packed, far_address.packed)


def _owner_in_lists(ends: Ends) -> _Owner:
    """Search the lists of all connections for the client's socket."""
    for _ in range(_READS):
        for path, row_ends in zip(_LISTS, (ends, _mapped(ends)), strict=True):
            listed = b""
            with suppress(OSError):  # not Linux, or without IPv6
                listed = path.read_bytes()

            start = listed.find(_columns(row_ends))
            if start >= 0:
                columns = listed[start : start + _ROW_BYTES].split()
                return int(columns[_USER_COLUMN]), int(columns[_INODE_COLUMN])

    return None


def _columns(ends: Ends) -> bytes:
    """Return two addresses as a list has them: 32-bit numbers in this machine's byte order, in hexadecimal."""
    columns: list[str] = []
    for address, port in ends:
        words = [
            address.packed[start : start + 4]
            for start in range(0, len(address.packed), 4)
        ]
        numbers = "".join(
            f"{int.from_bytes(word, sys.byteorder):08X}" for word in words
        )
        columns.append(f"{numbers}:{port:04X}")

    return f" {' '.join(columns)} ".encode()


def _mapped(ends: Ends) -> Ends:
    """Return two addresses as those of IPv6 sockets.

    A client with such a socket can connect to an IPv4 address. The kernel shows it with ``::ffff:127.0.0.1``, and in
    the list of IPv6, while the server sees ``127.0.0.1``.
    """
    return tuple(
        (
            ipaddress.IPv6Address(f"::ffff:{address}")
            if isinstance(address, ipaddress.IPv4Address)
            else address,
            port,
        )
        for address, port in ends
    )
