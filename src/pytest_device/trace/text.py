"""A trace as text: all its actions, or what led to one of them, short enough for a terminal or a language model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any, Final

from pytest_device.figures import shortened
from pytest_device.trace.reader import ReadAction, ReadTrace

FAIL: Final = "FAIL"
MAX_AROUND: Final = 6_000
"""Maximum characters of the text around an action: fewer than 2,000 tokens."""

_ACTIONS_BEFORE: Final = 12
_ACTIONS_AFTER: Final = 4
_MAX_LINE: Final = 160
_MAX_ERROR: Final = 900
_MAX_FRAMES: Final = 3
_MAX_SCREEN_LINES: Final = 60
_MAX_LOG_LINES: Final = 8
_MORE: Final = "… (more in the trace)"


def lines_of(trace: ReadTrace) -> Iterator[str]:
    """Yield all actions of a trace, and its errors."""
    yield from _header(trace)
    yield ""

    depths = _depths(trace)
    for action in trace.actions:
        if not action.group:
            yield _line(trace, action, depths)

    for error in trace.errors:
        yield ""
        yield from _error(error)


def around(trace: ReadTrace, action: ReadAction) -> str:
    """Return what led to an action: the error, the actions around it, and how the screen changed."""
    header = [*_header(trace), ""]
    if action.error and trace.errors:
        header += [*_error(trace.errors[-1]), ""]

    actions = [*_actions(trace, action), ""]
    log = list(_log(trace, action))

    # The screen gets what is left: it may be of any length, and its beginning says the most.
    used = sum(len(line) + 1 for line in (*header, *actions, *log))
    screen = _within(list(_screen(trace, action)), MAX_AROUND - used)

    return "\n".join([*header, *actions, *screen, *log]).rstrip()


def _header(trace: ReadTrace) -> Iterator[str]:
    yield shortened(f"{trace.title}: {trace.state}", 2 * _MAX_LINE)

    devices = "; ".join(trace.annotations)
    if devices:
        yield shortened(devices, _MAX_LINE)


def _error(error: Mapping[str, Any]) -> Iterator[str]:
    yield shortened(str(error.get("message", "")), _MAX_ERROR)
    for frame in list(error.get("stack") or ())[:_MAX_FRAMES]:
        yield f"  at {frame.get('file')}:{frame.get('line')} in {frame.get('function', '')}"


def _actions(trace: ReadTrace, action: ReadAction) -> Iterator[str]:
    shown = [
        candidate
        for candidate in trace.actions
        if not candidate.group or candidate is action
    ]
    index = shown.index(action)
    first = max(0, index - _ACTIONS_BEFORE)
    depths = _depths(trace)

    for near in shown[first : index + _ACTIONS_AFTER + 1]:
        mark = ">" if near is action else " "
        yield mark + _line(trace, near, depths)


def _line(trace: ReadTrace, action: ReadAction, depths: Mapping[str, int]) -> str:
    seconds = (action.start - trace.start) / 1000
    length = ""
    if action.end is not None:
        length = f"{(action.end - action.start) / 1000:.1f}s"

    location = ""
    if action.stack:
        frame = action.stack[0]
        location = f"  ({frame.get('file')}:{frame.get('line')})"

    mark = " "
    error = ""
    if action.error:
        mark = "x"
        first_line = action.error.partition("\n")[0]
        error = f": {first_line}"

    indent = "  " * depths.get(action.key, 0)
    text = (
        f"{action.number:4} {seconds:7.1f}s {length:>6} {mark} {indent}{action.title}"
    )

    return shortened(f"{text}{location}{error}", _MAX_LINE)


def _depths(trace: ReadTrace) -> Mapping[str, int]:
    """Return how many actions each action is within, by its key."""
    depths: dict[str, int] = {}
    for action in trace.actions:
        # The parent began earlier.
        depths[action.key] = depths[action.parent] + 1 if action.parent in depths else 0

    return depths


def _screen(trace: ReadTrace, action: ReadAction) -> Iterator[str]:
    """Yield how the screen differs from the last one before the action; all of it if there is none."""
    index = trace.actions.index(action)
    # Many actions have no tree of their own, such as the polls of a wait.
    after = _first_tree(trace.actions[index:])
    before = _first_tree(reversed(trace.actions[:index]))
    if not after:
        yield "No tree of the screen was recorded."
        return

    lines_after = list(_tree_lines(after))
    if not before:
        yield "Screen:"
        yield from lines_after
        return

    # Without the two lines that name the files.
    changes = list(
        unified_diff(list(_tree_lines(before)), lines_after, lineterm="", n=1)
    )[2:]
    if not changes:
        yield "Screen, unchanged since the last recorded one:"
        yield from lines_after
        return

    yield "Screen, changes since the last recorded one:"
    for line in changes:
        if not line.startswith("@@"):
            yield line


def _first_tree(actions: Iterable[ReadAction]) -> Sequence[Mapping[str, Any]]:
    for action in actions:
        if action.tree:
            return action.tree

    return ()


def _tree_lines(
    nodes: Sequence[Mapping[str, Any]], indent: str = "  "
) -> Iterator[str]:
    for node in nodes:
        words = [str(node.get("role", ""))]
        if node.get("name"):
            words.append(f'"{node["name"]}"')
        if node.get("text"):
            words.append(f"text={node['text']!r}")

        if node.get("bounds"):
            words.append(str(node["bounds"]))

        yield shortened(indent + " ".join(words), _MAX_LINE)
        yield from _tree_lines(node.get("children") or (), f"{indent}  ")


def _log(trace: ReadTrace, action: ReadAction) -> Iterator[str]:
    """Yield the last lines of the devices' logs since an action: those of trouble, else all."""
    lines = [line for line in trace.console if line.time >= action.start]
    shown = [line for line in lines if line.level in {"error", "warning"}] or lines
    if shown:
        yield ""
        yield "Device log:"

    for line in shown[-_MAX_LOG_LINES:]:
        yield shortened(f"  {line.level} {line.text}", _MAX_LINE)


def _within(lines: Sequence[str], characters: int) -> list[str]:
    """Return as many lines as fit; the last one says if there are more."""
    kept: list[str] = []
    for line in lines:
        characters -= len(line) + 1
        if characters < len(_MORE) or len(kept) > _MAX_SCREEN_LINES:
            return [*kept, _MORE]

        kept.append(line)

    return kept
