"""The one plot of the README: recall against tokens, a mark for each recipe. Plain SVG, readable in dark and light.

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
  .line { stroke: #d0d7de; stroke-width: 1 }
  .goal { fill: #0969da; fill-opacity: .10; stroke: #0969da; stroke-dasharray: 4 3 }
  .set { fill: none; stroke: #8c959f; stroke-width: 1 }
  .other { fill: #ffffff; stroke: #24292f; stroke-width: 2 }
  .ours { fill: #0969da; stroke: #0969da; stroke-width: 2 }
  .name { font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #8d96a0 } .line { stroke: #30363d }
    .goal { fill: #4493f8; stroke: #4493f8 } .set { stroke: #6e7681 }
    .other { fill: #0d1117; stroke: #e6edf3 } .ours { fill: #4493f8; stroke: #4493f8 }
  }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A recipe: its mean over the sets, and each set's (tokens share, recall), both from 0 to 1."""

    name: str
    share: float
    recall: float
    sets: Sequence[tuple[float, float]] = ()


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
    for mark, (dx, dy, anchor) in zip(drawn, _places(drawn), strict=True):
        x, y = _x(mark.share), _y(mark.recall)
        rows.append(f'<circle class="{"ours" if mark.name == "cortex" else "other"}" cx="{x:.1f}" cy="{y:.1f}" r="6"/>')
        rows.append(
            f'<text class="name" x="{x + dx:.1f}" y="{y + dy:.1f}" text-anchor="{anchor}">{escape(mark.name)}</text>'
        )
    rows.append(f'<text class="quiet" x="{LEFT}" y="{HEIGHT - 8}">{escape(caption)}</text>')
    return "\n".join((*rows, "</svg>", ""))


def _set(mark: Mark, share: float, recall: float) -> str:
    """A small mark for one set, tied to its recipe's large one."""
    x, y = _x(share), _y(recall)
    tie = f'<line class="tie" x1="{_x(mark.share):.1f}" y1="{_y(mark.recall):.1f}" x2="{x:.1f}" y2="{y:.1f}"/>'
    return f'{tie}<circle class="set" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'


def _told(drawn: Sequence[Mark]) -> str:
    """The plot in words, for whoever cannot see it."""
    return "; ".join(
        f"{mark.name}: recall {mark.recall:.2f} at {100 * mark.share:.0f} % of the tokens" for mark in drawn
    )


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


def _places(drawn: Sequence[Mark]) -> list[tuple[int, int, str]]:
    """Where each name stands beside its mark: to the right, to the left near the edge, lower where two would meet."""
    placed: list[tuple[int, int, str]] = []
    for at, mark in enumerate(drawn):
        near = sum(
            abs(mark.share - other.share) < 0.12 and abs(mark.recall - other.recall) < 0.05 for other in drawn[:at]
        )
        is_far = mark.share > 0.85
        placed.append((-11 if is_far else 11, 4 + 16 * near, "end" if is_far else "start"))
    return placed


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(recall: float) -> float:
    return TOP + (1 - recall) * (HEIGHT - TOP - BOTTOM)
