"""The lines of the suite that made a call, and the polling wait that it belongs to."""

import sys
import sysconfig
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, cast

from pytest_device.trace.values import Frame, Locator, Wait

MAX_FRAMES: Final = 8
"""Frames of the suite that are kept, the innermost."""
_MAX_DEPTH: Final = 200
"""Frames that are looked at: each command of a test pays for them."""
_NOT_THE_SUITE: Final = frozenset(
    {"selenium", "appium", "urllib3", "httpx", "httpcore", "pytest_device", "_pytest"}
    | {"pytest", "pluggy", "xdist", "contextlib", "functools", "threading", "runpy"}
    | {"asyncio", "concurrent", "unittest", "pytest_bdd", "pytest_rerunfailures"}
    | {"__main__"}
)
"""Packages whose frames don't help to find a line of the suite, wherever they are installed."""
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_STANDARD_LIBRARY: Final = Path(sysconfig.get_path("stdlib")).resolve()
_WAIT_MODULE: Final = "selenium.webdriver.support.wait"
_LOOP_MODULE: Final = "asyncio.base_events"
_THREAD_STARTERS: Final = frozenset({"asyncio", "anyio"})
"""Packages with coroutines that call a function, ``func``, in a thread and wait for it."""


@dataclass(frozen=True, slots=True)
class WaitCall:
    """A polling wait that is going on: ``key`` distinguishes it from all other waits."""

    key: tuple[int, float]
    wait: Wait


class SuiteStack:
    """Finds the suite's frames in the current stack; ``root`` is the directory of its tests."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._thread = threading.get_ident()
        """The thread of the tests."""
        self._names: dict[str, str] = {}
        self._are_users: dict[str, bool] = {}
        """Whether a file is the user's own, by its path: each command asks for those of its frames."""
        self.files: dict[str, str] = {}
        """The real path of each file that a frame names."""

    def now(self) -> tuple[list[Frame], WaitCall | None]:
        """Return the suite's frames, the innermost first, and the wait that the call belongs to.

        In a thread that runs no line of the suite itself, they are those of the test that started it.
        """
        current = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # inspect.stack() reads source files
        frames, wait = self._within(_outwards(current))
        if not frames and self.is_in_a_thread():
            frames = self._of_the_starter(_outwards(current))

        return frames, wait

    def is_in_a_thread(self) -> bool:
        """Return whether the caller is in another thread than the tests."""
        return threading.get_ident() != self._thread

    def _within(
        self, chain: Iterable[FrameType]
    ) -> tuple[list[Frame], WaitCall | None]:
        """Return the suite's frames of a chain, whose innermost is the first."""
        frames: list[Frame] = []
        wait: WaitCall | None = None

        for frame in chain:
            module = _module(frame)
            code = frame.f_code
            if module == _WAIT_MODULE:
                # The outermost one: a condition may wait for something itself.
                wait = _wait_of(frame) or wait
            elif module.startswith("_pytest.") and frames:
                # Everything outside of the test is pytest's.
                break
            elif self._is_of_the_suite(module, code.co_filename):
                name = self.name_of(code.co_filename)
                frames.append(Frame(name, frame.f_lineno, code.co_name))

            if len(frames) == MAX_FRAMES:
                break

        return frames, wait

    def _of_the_starter(self, own: Iterable[FrameType]) -> list[Frame]:
        """Return the frames of the test, or of the task of it, that waits for a call in this thread.

        None if several may have started it, and none of them says what it started.
        """
        current = sys._current_frames().get(self._thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        chains = [list(_outwards(current)), *_suspended_tasks(current)]
        callers = {id(frame.f_locals.get("self")) for frame in own} - {id(None)}
        waiting = [chain for chain in chains if _waits_for(chain, callers)]
        found = [self._within(chain)[0] for chain in waiting or chains]
        found = [frames for frames in found if frames]

        return found[0] if waiting or len(found) == 1 else []

    def of(self, traceback: TracebackType | None) -> list[Frame]:
        """Return the suite's frames of a traceback, the innermost first."""
        frames: list[Frame] = []
        while traceback is not None:
            frame = traceback.tb_frame
            module = _module(frame)
            if self._is_of_the_suite(module, frame.f_code.co_filename):
                code = frame.f_code
                name = self.name_of(code.co_filename)
                frames.append(Frame(name, traceback.tb_lineno, code.co_name))

            traceback = traceback.tb_next

        # A traceback begins with the outermost frame.
        frames.reverse()
        return frames[:MAX_FRAMES]

    def waits_in(self, traceback: TracebackType | None) -> Iterator[WaitCall]:
        """Yield the waits through which an error came, the outermost first."""
        while traceback is not None:
            frame = traceback.tb_frame
            wait = _wait_of(frame) if _module(frame) == _WAIT_MODULE else None
            if wait:
                yield wait

            traceback = traceback.tb_next

    def _is_of_the_suite(self, module: str, path: str) -> bool:
        if module.partition(".")[0] in _NOT_THE_SUITE:
            return False

        if path not in self._are_users:
            self._are_users[path] = self._is_users(Path(path))

        return self._are_users[path]

    def _is_users(self, path: Path) -> bool:
        """Return whether a file is the user's own, not one of an installed package or of Python."""
        # The root directory often has a virtual environment in it, and may be in one itself.
        if path.is_relative_to(self._root):
            return not is_installed(path.relative_to(self._root))

        return not is_installed(path)

    def name_of(self, path: str) -> str:
        """Return a file's name relative to the root, or what identifies it without a directory of this machine."""
        if path not in self._names:
            name = self._shown(Path(path))
            self._names[path] = name
            self.files[name] = path

        return self._names[path]

    def _shown(self, path: Path) -> str:
        if path.is_relative_to(self._root):
            return path.relative_to(self._root).as_posix()

        parts = path.parts
        for library in _INSTALLED:
            if library in parts:
                return "/".join(parts[parts.index(library) + 1 :])

        # Its directory and its name; of a file in the root directory, whose first part is "/", only its name.
        return "/".join(parts[-2:]) if len(parts) > 2 else path.name  # noqa: PLR2004


def is_installed(path: Path) -> bool:
    """Return whether a file belongs to an installed package, in any environment of this process, or to Python."""
    return not _INSTALLED.isdisjoint(path.parts) or path.is_relative_to(
        _STANDARD_LIBRARY
    )


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, the members of groups, and those that led to them, the latest first, as Python shows them."""
    pending = [error]
    # By identity: an error of the suite may compare in its own way.
    seen: set[int] = set()
    while pending:
        link = pending.pop()
        if id(link) in seen:
            continue

        seen.add(id(link))
        yield link

        context = None if link.__suppress_context__ else link.__context__
        earlier = link.__cause__ or context
        if earlier is not None:
            pending.append(earlier)
        if isinstance(link, BaseExceptionGroup):
            group = cast("BaseExceptionGroup[BaseException]", link)
            pending += reversed(group.exceptions)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(_MAX_DEPTH):
        if frame is None:
            return

        yield frame
        frame = frame.f_back


def _suspended_tasks(current: FrameType | None) -> Iterator[list[FrameType]]:
    """Yield the frames of each task that waits in the loop of a thread, whose current frame is given; innermost first."""
    for frame in _outwards(current):
        if _module(frame) != _LOOP_MODULE or frame.f_code.co_name != "run_forever":
            continue

        # The loop runs, so it is loaded.
        import asyncio

        for task in asyncio.all_tasks(frame.f_locals["self"]):
            coroutine: Any = task.get_coro()
            # The frames of the one that runs are the thread's.
            if not getattr(coroutine, "cr_running", False):
                yield list(_awaited(coroutine))[::-1]


def _awaited(awaitable: Any) -> Iterator[FrameType]:
    """Yield the frames of what waits, the outermost first: coroutines, and generators of ``__await__``."""
    for _ in range(_MAX_DEPTH):
        kind = "gi" if hasattr(awaitable, "gi_frame") else "cr"
        frame: FrameType | None = getattr(awaitable, f"{kind}_frame", None)
        if frame is None:
            return

        yield frame
        awaitable = getattr(awaitable, "gi_yieldfrom" if kind == "gi" else "cr_await")


def _waits_for(chain: Iterable[FrameType], callers: Collection[int]) -> bool:
    """Return whether a coroutine in a chain waits for a method, in a thread, of one of the objects with these identities."""
    for frame in chain:
        if _module(frame).partition(".")[0] in _THREAD_STARTERS:
            function: Any = frame.f_locals.get("func")
            function = getattr(function, "func", function)  # of a partial
            if id(getattr(function, "__self__", None)) in callers:
                return True

    return False


def _wait_of(frame: FrameType) -> WaitCall | None:
    """Return the wait of a frame of ``WebDriverWait.until`` or ``until_not``.

    From its local variables: a wait gives no other sign, and a suite uses Selenium's class, not one of ours.
    """
    variables: Mapping[str, Any] = frame.f_locals
    end_time = variables.get("end_time")
    method = variables.get("method")
    if not isinstance(end_time, float) or method is None:
        return None

    seconds = getattr(variables.get("self"), "_timeout", 0.0)
    # Selenium's conditions are functions within a function of their name.
    name = str(getattr(method, "__qualname__", type(method).__name__))
    condition = name.partition(".<locals>")[0]
    # The rest of its name is the test's.
    if name.endswith("<lambda>"):
        condition = "lambda"
    if frame.f_code.co_name == "until_not":
        condition = f"not {condition}"

    wait = Wait(
        condition,
        float(seconds) if isinstance(seconds, int | float) else 0.0,
        _locator_in(method),
        str(variables.get("message") or ""),
    )

    return WaitCall((id(frame), end_time), wait)


def _locator_in(method: object) -> Locator | None:
    """Return the locator that a condition of Selenium looks for."""
    for cell in getattr(method, "__closure__", None) or ():
        try:
            content: object = cell.cell_contents
        except ValueError:
            # Not filled yet.
            continue

        if isinstance(content, tuple):
            pair = cast("tuple[object, ...]", content)
            if len(pair) == 2 and all(isinstance(part, str) for part in pair):  # noqa: PLR2004
                return Locator(str(pair[0]), str(pair[1]))

    return None
