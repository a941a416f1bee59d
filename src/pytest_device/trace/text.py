"""A trace as text: all its actions, or what led to one of them, short enough for a terminal or a language model."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any, Final

from pytest_device.trace.reader import ReadAction, ReadTrace

FAIL: Final = "FAIL"
MAX_AROUND: Final = 6_000
"""Maximum characters of the text around an action: fewer than 2,000 tokens."""

_BEFORE: Final = 12
_AFTER: Final = 4
_LINE: Final = 160
_ERROR: Final = 900
_SCREEN_LINES: Final = 60
_LOG_LINES: Final = 8
_CUT: Final = "… (more in the trace)"


def lines_of(trace: ReadTrace) -> Iterator[str]:
    """Yield all actions of a trace, and its errors."""
    yield from _header(trace)
    yield ""

    for action in trace.actions:
        if not action.group:
            yield _line(trace, action, _depths(trace))

    for error in trace.errors:
        yield ""
        yield from _error(error)


def around(trace: ReadTrace, action: ReadAction) -> str:
    """Return what led to an action: the error, the actions around it, and how the screen changed."""
    header = [*_header(trace), ""]
    if action.error:
        for error in trace.errors[-1:]:
            header += [*_error(error), ""]

    actions = [*_actions(trace, action), ""]
    log = list(_log(trace, action))
    screen = list(_screen(trace, action))

    rest = MAX_AROUND - sum(len(line) + 1 for line in (*header, *actions, *log))

    return "\n".join([*header, *actions, *_within(screen, rest), *log]).rstrip()


def _header(trace: ReadTrace) -> Iterator[str]:
    yield _cut(f"{trace.title}: {trace.state}", 2 * _LINE)
    devices = "; ".join(trace.annotations)
    if devices:
        yield _cut(devices, _LINE)


def _error(error: Mapping[str, Any]) -> Iterator[str]:
    yield _cut(str(error.get("message", "")), _ERROR)
    for frame in list(error.get("stack") or ())[:3]:
        yield f"  at {frame.get('file')}:{frame.get('line')} in {frame.get('function', '')}"


def _actions(trace: ReadTrace, action: ReadAction) -> Iterator[str]:
    shown = [
        candidate
        for candidate in trace.actions
        if not candidate.group or candidate is action
    ]
    index = shown.index(action)
    first = max(0, index - _BEFORE)
    depths = _depths(trace)

    for near in shown[first : index + _AFTER + 1]:
        mark = ">" if near is action else " "
        yield mark + _line(trace, near, depths)


def _line(trace: ReadTrace, action: ReadAction, depths: Mapping[str, int]) -> str:
    seconds = (action.start - trace.start) / 1000
    length = ""
    if action.end is not None:
        length = f"{(action.end - action.start) / 1000:.1f}s"

    where = ""
    if action.stack:
        frame = action.stack[0]
        where = f"  ({frame.get('file')}:{frame.get('line')})"

    mark = "x" if action.error else " "
    indent = "  " * depths.get(action.key, 0)
    text = (
        f"{action.number:4} {seconds:7.1f}s {length:>6} {mark} {indent}{action.title}"
    )
    error = f": {action.error.partition(chr(10))[0]}" if action.error else ""

    return _cut(f"{text}{where}{error}", _LINE)


def _depths(trace: ReadTrace) -> Mapping[str, int]:
    depths: dict[str, int] = {}
    for action in trace.actions:
        depths[action.key] = depths[action.parent] + 1 if action.parent in depths else 0
    return depths


def _screen(trace: ReadTrace, action: ReadAction) -> Iterator[str]:
    """Yield how the screen differs from the last one before the action; all of it if there is none."""
    until = trace.actions.index(action)
    following = (later.tree for later in trace.actions[until:] if later.tree)
    after = action.tree or next(following, ())
    if not after:
        yield "No tree of the screen was recorded."
        return

    preceding = reversed(trace.actions[:until])
    before = next((earlier.tree for earlier in preceding if earlier.tree), ())
    now = list(_tree_lines(after))
    if not before:
        yield "Screen:"
        yield from now
        return

    earlier = list(_tree_lines(before))
    changes = list(unified_diff(earlier, now, lineterm="", n=1))[2:]
    if not changes:
        yield "Screen, unchanged since the last recorded one:"
        yield from now
        return

    yield "Screen, changes since the last recorded one:"
    yield from (line for line in changes if not line.startswith("@@"))


def _tree_lines(
    nodes: Sequence[Mapping[str, Any]], indent: str = "  "
) -> Iterator[str]:
    for node in nodes:
        words = [str(node.get("role", ""))]
        words += [f'"{node["name"]}"'] if node.get("name") else []
        words += [f"text={node['text']!r}"] if node.get("text") else []

        if box := node.get("box"):
            words.append(
                f"[{box['x']:.0f},{box['y']:.0f} {box['width']:.0f}x{box['height']:.0f}]"
            )

        yield _cut(indent + " ".join(words), _LINE)
        yield from _tree_lines(node.get("children") or (), f"{indent}  ")


def _log(trace: ReadTrace, action: ReadAction) -> Iterator[str]:
    lines = [line for line in trace.console if line[0] >= action.start]
    shown = [line for line in lines if line[1] in {"error", "warning"}] or lines
    if shown:
        yield ""
        yield "Device log:"

    for _, level, text in shown[-_LOG_LINES:]:
        yield _cut(f"  {level} {text}", _LINE)


def _within(lines: Sequence[str], characters: int) -> list[str]:
    """Return as many lines as fit."""
    kept: list[str] = []
    for line in lines:
        characters -= len(line) + 1
        if characters < len(_CUT) or len(kept) > _SCREEN_LINES:
            return [*kept, _CUT]

        kept.append(line)

    return kept


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
