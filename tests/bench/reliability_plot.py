"""The reliability plot of `docs/selection.md`: what came true over what was said, as SVG for dark and light pages.

No colour carries a meaning. Made by `train.py`.
"""

from collections.abc import Sequence
from html import escape

from cortex.commands.reliability import ReliabilityCurve
from tests.bench.intervals import wilson

LEAST_CASES = 20
SIDE, GAP, LEFT, TOP, BOTTOM = 196, 42, 52, 40, 74
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .quiet { fill: #57606a; font-size: 11px }
  .name { font-weight: 600 }
  .page { fill: #ffffff }
  .frame { fill: none; stroke: #8c959f }
  .line { stroke: #d0d7de; stroke-width: 1 }
  .true { stroke: #8c959f; stroke-dasharray: 4 3 }
  .sure { stroke: #0969da; stroke-width: 1.5 }
  .mark { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #8d96a0 } .line { stroke: #30363d }
    .page { fill: #0d1117 } .frame, .true { stroke: #6e7681 } .sure { stroke: #4493f8 } .mark { fill: #4493f8 }
  }
"""


def svg(curves: Sequence[ReliabilityCurve], caption: str) -> str:
    """A panel for each curve: what came true over what was said, with 95 % intervals. Same curves, same bytes.

    Bins of fewer than LEAST_CASES stand in the table alone.
    """
    width = LEFT + len(curves) * (SIDE + GAP)
    height = TOP + SIDE + BOTTOM
    told = "; ".join(f"{each.of}: calibration error {each.error():.3f}" for each in curves)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="t d">',
        '<title id="t">How often what was given a chance came true</title>',
        f'<desc id="d">{escape(told)}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
    ]
    for at, each in enumerate(curves):
        parts += _panel(each, LEFT + at * (SIDE + GAP))
    middle = TOP + SIDE / 2
    turned = f'text-anchor="middle" transform="rotate(-90 14 {middle})"'
    parts.append(f'<text x="14" y="{middle}" {turned}>share that came true</text>')
    parts.append(f'<text class="quiet" x="{LEFT}" y="{height - 10}">{escape(caption)}</text>')
    return "\n".join((*parts, "</svg>", ""))


def _panel(drawn: ReliabilityCurve, left: float) -> list[str]:
    """One square with its grid, its diagonal of true chances and its marks."""
    parts = [f'<text class="name" x="{left}" y="{TOP - 14}">{escape(drawn.of)}</text>']
    for step in range(5):
        part = step / 4
        x, y = left + part * SIDE, TOP + (1 - part) * SIDE
        parts.append(f'<line class="line" x1="{left}" y1="{y:.1f}" x2="{left + SIDE}" y2="{y:.1f}"/>')
        parts.append(f'<text class="quiet" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{part:.2f}</text>')
        parts.append(f'<text class="quiet" x="{x:.1f}" y="{TOP + SIDE + 16}" text-anchor="middle">{part:.2f}</text>')
    parts.append(f'<rect class="frame" x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}"/>')
    parts.append(f'<line class="true" x1="{left}" y1="{TOP + SIDE}" x2="{left + SIDE}" y2="{TOP}"/>')
    for each in drawn.bins:
        if each.cases >= LEAST_CASES:
            x, y = left + each.said * SIDE, TOP + (1 - each.true) * SIDE
            low, high = (TOP + (1 - edge) * SIDE for edge in wilson(each.true, each.cases))
            parts.append(f'<line class="sure" x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}"/>')
            parts.append(f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
    parts.append(f'<text x="{left + SIDE / 2}" y="{TOP + SIDE + 36}" text-anchor="middle">chance that was said</text>')
    return parts
