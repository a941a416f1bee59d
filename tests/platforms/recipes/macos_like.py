"""Makes this Linux process like one on macOS: what is not there is removed, and the system's name changed.

Imported by ``encodings``, and so by each start of the interpreter, isolated ones and those without site packages, too.
The modules of this system's own kernel stay for psutil alone, which has other ways on macOS.
"""

from __future__ import annotations

import os
import posix
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Not at run time: this is imported before anything else.
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_LINUX_ONLY = (
    "P_PIDFD",
    "copy_file_range",
    "eventfd",
    "eventfd_read",
    "eventfd_write",
    "getrandom",
    "getresgid",
    "getresuid",
    "getxattr",
    "listxattr",
    "memfd_create",
    "pidfd_open",
    "pipe2",
    "posix_fadvise",
    "posix_fallocate",
    "removexattr",
    "sched_getaffinity",
    "sched_setaffinity",
    "setns",
    "setresgid",
    "setresuid",
    "setxattr",
    "splice",
    "unshare",
)
_NETLINK = 16
_PATHS = frozenset(("open", "os.listdir", "os.scandir"))
_ADDRESSES = frozenset(("socket.bind", "socket.connect", "socket.sendto"))


def _apply() -> None:
    for module in (os, posix):
        for name in _LINUX_ONLY:
            vars(module).pop(name, None)
    del select.epoll

    for name in ("stat", "lstat", "readlink", "access"):
        hidden = _without_proc(getattr(posix, name))
        setattr(posix, name, hidden)
        setattr(os, name, hidden)

    _, node, _, _, machine = posix.uname()
    named = posix.uname_result(("Darwin", node, "24.6.0", "", machine))
    posix.uname = os.uname = lambda: named

    sys.addaudithook(_refuse)
    sys.platform = "darwin"
    sys.meta_path.insert(0, _Packages)


def _without_proc(function: Callable[..., Any]) -> Callable[..., Any]:
    def hidden(path: object, *arguments: Any, **options: Any) -> Any:
        if _is_proc(path) and not _is_psutil():
            raise FileNotFoundError(2, "No such file or directory", path)
        return function(path, *arguments, **options)

    return hidden


def _refuse(event: str, values: tuple[Any, ...]) -> None:
    """Refuse what macOS has not: /proc, abstract and netlink sockets, namespaces."""
    if event in _PATHS:
        if _is_proc(values[0]) and not _is_psutil():
            raise FileNotFoundError(2, "No such file or directory", values[0])
    elif event in _ADDRESSES:
        if isinstance(values[1], (str, bytes)) and values[1][:1] in ("\0", b"\0"):
            raise FileNotFoundError(2, "No such file or directory")
    elif event == "socket.__new__":
        if values[1] == _NETLINK:
            raise OSError(47, "Address family not supported by protocol family")
    elif event == "ctypes.dlsym" and values[1] in ("unshare", "setns", "prctl"):
        raise AttributeError(f"symbol not found: {values[1]}")


def _is_proc(path: object) -> bool:
    if isinstance(path, bytes):
        return path == b"/proc" or path.startswith(b"/proc/")
    text = path if isinstance(path, str) else getattr(path, "__fspath__", str)()
    return text == "/proc" or text.startswith("/proc/")


def _is_psutil() -> bool:
    """Return whether psutil asks, perhaps by way of a function of the standard library."""
    frame = sys._getframe(2)  # noqa: SLF001  # this and the one that asks
    for _ in range(4):
        if str(frame.f_globals.get("__name__")).startswith("psutil"):
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


class _Packages:
    """Lets packages choose their modules for the real kernel, which has no kqueue."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, _target: object = None
    ) -> ModuleSpec | None:
        if name not in ("psutil", "trio"):
            return None

        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return None

        execute = spec.loader.exec_module

        def as_linux(module: ModuleType) -> None:
            sys.platform = "linux"
            try:
                execute(module)
            finally:
                sys.platform = "darwin"

        spec.loader.exec_module = as_linux  # type: ignore[method-assign]
        return spec


_apply()
