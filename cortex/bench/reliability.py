"""Whether chances are what they say: how often what was given a chance of p came true, by p, as bins and as a plot.

The plot is plain SVG for dark and light pages; no colour carries a meaning. Knows nothing of tools.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import sqrt

EDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
LEAST_CASES = 20
TOLD_FROM = 0.05
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The cases whose chance lies from `least` up to `most`: their mean chance, and the share that came true."""

    least: float
    most: float
    cases: int
    said: float
    true: float

    @property
    def sure(self) -> tuple[float, float]:
        """The 95 % interval of the share (Wilson 1927)."""
        z, n = 1.96, self.cases
        middle = (self.true + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * sqrt(self.true * (1 - self.true) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One kind of chance: its name, what it is a chance of, and its bins that hold anything, rising."""

    name: str
    of: str
    bins: tuple[Bin, ...]

    def error(self, least: float = 0.0) -> float:
        """The expected calibration error: how far chance and share lie apart, over the cases from this chance on."""
        counted = [each for each in self.bins if each.least >= least]
        cases = sum(each.cases for each in counted)
        return sum(each.cases * abs(each.said - each.true) for each in counted) / cases if cases else 0.0


def curve(name: str, of: str, cases: Iterable[tuple[float, bool]]) -> Curve:
    """The cases, each with its chance and whether it came true, as bins between EDGES."""
    counts, said, true = ([0.0] * (len(EDGES) - 1) for _ in range(3))
    for p, is_true in cases:
        at = next(at for at in range(len(counts)) if p < EDGES[at + 1] or at == len(counts) - 1)
        counts[at] += 1
        said[at] += p
        true[at] += is_true
    bins = (
        Bin(least=EDGES[at], most=EDGES[at + 1], cases=int(count), said=said[at] / count, true=true[at] / count)
        for at, count in enumerate(counts)
        if count
    )
    return Curve(name=name, of=of, bins=tuple(bins))


def rows(curves: Sequence[Curve]) -> list[list[str]]:
    """A table: bins down; for each curve the mean chance, the share that came true, and the cases. Heads first."""
    heads = ["chance", *(f"{each.name}: {what}" for each in curves for what in ("said", "true", "cases"))]
    found = [heads]
    for least, most in pairwise(EDGES):
        row = [f"{least:.2f} to {most:.2f}"]
        for each in curves:
            here = next((one for one in each.bins if one.least == least), None)
            row += [f"{here.said:.3f}", f"{here.true:.3f}", f"{here.cases:,}"] if here else ["", "", "0"]
        found.append(row)
    return found


def svg(curves: Sequence[Curve], caption: str) -> str:
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


def _panel(drawn: Curve, left: float) -> list[str]:
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
            low, high = (TOP + (1 - edge) * SIDE for edge in each.sure)
            parts.append(f'<line class="sure" x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}"/>')
            parts.append(f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
    parts.append(f'<text x="{left + SIDE / 2}" y="{TOP + SIDE + 36}" text-anchor="middle">chance that was said</text>')
    return parts
