"""The plot of README and benchmarks: recall against tokens, a mark for each way. Plain SVG, readable in dark and light.

No colour carries a meaning: each mark has its name beside it, and `cortex` a filled one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 36, 24, 68
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .quiet { fill: #57606a; font-size: 12px }
  .tie { stroke: #8c959f; stroke-width: 1; stroke-opacity: .5 }
  .frontier { fill: none; stroke: #57606a; stroke-width: 1.5 } .sure { stroke: #57606a; stroke-width: 1.5 }
  .line { stroke: #d0d7de; stroke-width: 1 }
  .goal { fill: #0969da; fill-opacity: .10; stroke: #0969da; stroke-dasharray: 4 3 }
  .set { fill: none; stroke: #8c959f; stroke-width: 1 }
  .other { fill: #ffffff; stroke: #24292f; stroke-width: 2 }
  .ours { fill: #0969da; stroke: #0969da; stroke-width: 2 }
  .name { font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #8d96a0 } .line { stroke: #30363d }
    .goal { fill: #4493f8; stroke: #4493f8 } .set { stroke: #6e7681 }
    .frontier, .sure { stroke: #8d96a0 }
    .other { fill: #0d1117; stroke: #e6edf3 } .ours { fill: #4493f8; stroke: #4493f8 }
  }
"""


Span = tuple[float, float]
NO_SPAN: Span = (0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A recipe: its mean over the sets, and each set's (tokens share, recall), both from 0 to 1.

    `span`: the 95 % interval of the recall. `frontier`: the same means at other settings, by share.
    """

    name: str
    share: float
    recall: float
    sets: Sequence[tuple[float, float]] = ()
    span: Span = NO_SPAN
    frontier: Sequence[tuple[float, float, Span]] = ()


def svg(drawn: Sequence[Mark], caption: str, *, goal_recall: float, goal_share: float) -> str:
    """The plot; the goal's corner is shaded. The same marks give the same bytes."""
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d">',
        '<title id="t">Recall against tokens, by recipe</title>',
        f'<desc id="d">{escape(_told(drawn))}</desc>',
        f"<style>{STYLE}</style>",
        *_grid(),
        f'<rect class="goal" x="{_x(0):.1f}" y="{_y(1):.1f}" width="{_x(goal_share) - _x(0):.1f}" '
        f'height="{_y(goal_recall) - _y(1):.1f}"/>',
    ]
    for mark in drawn:
        rows += [_set(mark, x, y) for x, y in mark.sets]
    for mark in drawn:
        rows += _frontier(mark)
    for mark, (x, y, anchor) in zip(drawn, _places(drawn), strict=True):
        at = f'cx="{_x(mark.share):.1f}" cy="{_y(mark.recall):.1f}"'
        rows.append(f'<circle class="{"ours" if mark.name == "cortex" else "other"}" {at} r="6"/>')
        rows.append(f'<text class="name" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(mark.name)}</text>')
    rows.append(f'<text class="quiet" x="{LEFT}" y="{HEIGHT - 8}">{escape(caption)}</text>')
    return "\n".join((*rows, "</svg>", ""))


def _set(mark: Mark, share: float, recall: float) -> str:
    """A small mark for one set, tied to its recipe's large one."""
    x, y = _x(share), _y(recall)
    tie = f'<line class="tie" x1="{_x(mark.share):.1f}" y1="{_y(mark.recall):.1f}" x2="{x:.1f}" y2="{y:.1f}"/>'
    return f'{tie}<circle class="set" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'


def _frontier(mark: Mark) -> list[str]:
    """The line through the mark's other settings, with an upright bar for each interval."""
    path = " ".join(f"{_x(share):.1f},{_y(recall):.1f}" for share, recall, _ in mark.frontier)
    rows = [f'<polyline class="frontier" points="{path}"/>'] if path else []
    for share, span in ((mark.share, mark.span), *((share, span) for share, _, span in mark.frontier)):
        if span != NO_SPAN:
            x, low, high = _x(share), _y(span[0]), _y(span[1])
            rows.append(f'<line class="sure" x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}"/>')
    return rows


def _told(drawn: Sequence[Mark]) -> str:
    """The plot in words, for whoever cannot see it."""
    parts: list[str] = []
    for mark in drawn:
        parts.append(f"{mark.name}: recall {mark.recall:.2f} at {100 * mark.share:.0f} % of the tokens")
        if mark.frontier:
            others = ", ".join(f"{recall:.2f} at {100 * share:.0f} %" for share, recall, _ in mark.frontier)
            parts.append(f"{mark.name} at other settings: {others}")
    return "; ".join(parts)


def _grid() -> list[str]:
    rows: list[str] = []
    for step in range(6):
        part = step / 5
        y, x = _y(part), _x(part)
        rows.append(f'<line class="line" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        rows.append(f'<text class="quiet" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{part:.1f}</text>')
        rows.append(
            f'<text class="quiet" x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{100 * part:.0f} %</text>'
        )
    across, middle = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    below, turned = (
        f'x="{across}" y="{HEIGHT - BOTTOM + 36}"',
        f'x="16" y="{middle}" transform="rotate(-90 16 {middle})"',
    )
    rows.append(f'<text {below} text-anchor="middle">tokens of a tool turn, as a share of sending all</text>')
    rows.append(f'<text {turned} text-anchor="middle">recall at the first request</text>')
    return rows


def _places(drawn: Sequence[Mark]) -> list[tuple[float, float, str]]:
    """Where each name stands: right of its mark and of those near it, at the edge to the left, one below another."""
    placed: list[tuple[float, float, str]] = []
    for at, mark in enumerate(drawn):
        near = [abs(mark.share - other.share) < 0.12 and abs(mark.recall - other.recall) < 0.05 for other in drawn]
        lowest = max((placed[other][1] + 16 for other in range(at) if near[other]), default=0)
        is_far = mark.share > 0.85
        beside = max(_x(other.share) for other, is_near in zip(drawn, near, strict=True) if is_near)
        x = _x(mark.share) - 11 if is_far else beside + 11
        placed.append((x, max(_y(mark.recall) + 4, lowest), "end" if is_far else "start"))
    return placed


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(recall: float) -> float:
    return TOP + (1 - recall) * (HEIGHT - TOP - BOTTOM)
