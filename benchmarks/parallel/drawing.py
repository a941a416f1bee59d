"""The chart of a measurement: a dot per run, a row per policy, as an SVG for light and dark pages."""

import statistics
from collections.abc import Callable, Sequence
from html import escape
from math import log
from typing import Final

from benchmarks.parallel.report import of_policy
from benchmarks.parallel.runs import KNOWN, POLICIES, UNKNOWN, Measured

_WIDTH: Final = 820
_LABELS: Final = 235
_PANEL: Final = 260
_GAP: Final = 40
_ROW: Final = 30
_TOP: Final = 46
_TICKS: Final = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
_STYLE: Final = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .line { stroke: #8c959f; stroke-opacity: .35; }
  .one { fill: #8c959f; fill-opacity: .55; }
  .mean { stroke: #1f2328; stroke-width: 2; }
  .ours .one { fill: #1a7f37; }
  .ours .mean { stroke: #1a7f37; }
  .ours text { font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .one { fill-opacity: .85; }
    .mean { stroke: #e6edf3; }
    .ours .one { fill: #3fb950; }
    .ours .mean { stroke: #3fb950; }
  }
"""


def drawn(runs: Sequence[Measured]) -> str:
    """Return the SVG: on the left the time over its bound, on the right what was billed over the least."""
    policies = [policy for policy in POLICIES if of_policy(runs, policy)]
    height = _TOP + _ROW * len(policies) + 10
    parts = [
        _panel("wall time over its lower bound", _LABELS, height, _most(runs)),
        _panel(
            "billed time over the least", _LABELS + _PANEL + _GAP, height, _most(runs)
        ),
    ]
    for place, policy in enumerate(policies):
        y = _TOP + _ROW * place + _ROW // 2
        of_it = of_policy(runs, policy)
        group = "ours" if policy in (KNOWN, UNKNOWN) else "theirs"
        parts += [
            f'<g class="{group}">',
            f'<text x="{_LABELS - 14}" y="{y + 4}" text-anchor="end">{escape(policy.name)}</text>',
            _row([run.over for run in of_it], _scale(_LABELS, _most(runs)), y),
            _row(
                [run.billed_over for run in of_it],
                _scale(_LABELS + _PANEL + _GAP, _most(runs)),
                y,
            ),
            "</g>",
        ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">'
    title = (
        "<title>Time and bill of whole runs over their lower bounds, by policy</title>"
    )
    return "\n".join([head, title, f"<style>{_STYLE}</style>", *parts, "</svg>", ""])


def _most(runs: Sequence[Measured]) -> float:
    return max(2.0, *(max(run.over, run.billed_over) for run in runs))


def _scale(left: int, most: float) -> Callable[[float], float]:
    """Return what gives a ratio its place, by logarithm; what is below 1, as a bill can be, stands at its left."""
    return lambda ratio: left + max(-8.0, (_PANEL - 30) * log(ratio) / log(most))


def _panel(title: str, left: int, height: int, most: float) -> str:
    scale = _scale(left, most)
    lines = [f'<text x="{left}" y="14">{title}</text>']
    for tick in (tick for tick in _TICKS if tick <= most):
        x = scale(tick)
        lines += [
            f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 4}" y2="{height - 8}"/>',
            f'<text x="{x:.1f}" y="{_TOP - 12}" text-anchor="middle">{tick:g}</text>',
        ]
    return "\n".join(lines)


def _row(ratios: Sequence[float], scale: Callable[[float], float], y: int) -> str:
    dots = [
        f'<circle class="one" cx="{scale(ratio):.1f}" cy="{y}" r="3.5"/>'
        for ratio in ratios
    ]
    mean = statistics.geometric_mean(ratios)
    x = scale(mean)
    line = f'<line class="mean" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 9}" y2="{y + 9}"/>'
    return "\n".join(
        [
            *dots,
            line,
            f'<text x="{scale(max(ratios)) + 8:.1f}" y="{y + 4}">{mean:.2f}</text>',
        ]
    )
