"""Bar plots as plain geometry, for `templates/plots.html` to draw as SVG: no script, no style, no colour needed.

Pure. Every bar says its numbers in a title; the table behind each plot holds them all.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

SERIES_MOST = 6
WIDE, NARROW = (920, 230), (350, 210)
LEFT, BOTTOM, TOP, RIGHT = 52, 26, 10, 4
GAP_SHARE = 0.16
THICK_MOST = 56.0
_STEPS = (1, 2, 2.5, 5, 10)


class Bar(Struct, frozen=True, kw_only=True):
    """One bar, or one layer of one; `series` is its place in the key and chooses its pattern."""

    x: float
    y: float
    width: float
    height: float
    series: int


class Column(Struct, frozen=True, kw_only=True):
    """All layers that stand on one place, with what the reader is told of them."""

    title: str
    bars: tuple[Bar, ...]


class AxisMark(Struct, frozen=True, kw_only=True):
    """A word of an axis."""

    at: float
    text: str


class Drawing(Struct, frozen=True, kw_only=True):
    """One size of a plot, in user units."""

    kind: Literal["wide", "nar"]
    width: int
    height: int
    floor: float
    columns: tuple[Column, ...]
    ticks: tuple[AxisMark, ...]
    labels: tuple[AxisMark, ...]


class Plot(Struct, frozen=True, kw_only=True):
    """A stacked bar plot in two widths; `key` names the series in the order in which they are stacked."""

    title: str
    unit: str
    key: tuple[str, ...]
    drawings: tuple[Drawing, Drawing]


class Series(Struct, frozen=True, kw_only=True):
    """One layer: its name and a value for each place."""

    name: str
    values: Sequence[float]


def stacked(
    title: str, unit: str, places: Sequence[str], series: Sequence[Series], write: Callable[[float], str]
) -> Plot | None:
    """The plot of these layers, the first at the bottom; None when there is nothing to see."""
    tops = [sum(one.values[place] for one in series) for place in range(len(places))]
    if not any(tops):
        return None
    scale = ceiling(max(tops))
    wide, narrow = (
        _drawing("wide", WIDE, places, series, scale, write, 7),
        _drawing("nar", NARROW, places, series, scale, write, 4),
    )
    return Plot(title=title, unit=unit, key=tuple(one.name for one in series), drawings=(wide, narrow))


def largest(series: Sequence[Series], rest: str) -> list[Series]:
    """At most as many layers as there are patterns: the smaller ones are added up as `rest`."""
    if len(series) <= SERIES_MOST:
        return list(series)
    ranked = sorted(series, key=lambda one: -sum(one.values))
    kept, others = ranked[: SERIES_MOST - 1], ranked[SERIES_MOST - 1 :]
    added = [sum(values) for values in zip(*(one.values for one in others), strict=True)]
    return [*kept, Series(name=rest, values=added)]


def ceiling(value: float) -> float:
    """The next round number: 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** _exponent(value)
    return next(step * power for step in _STEPS if step * power >= value * (1 - 1e-9))


def _exponent(value: float) -> int:
    exponent = 0
    while value >= 10:
        value, exponent = value / 10, exponent + 1
    while 0 < value < 1:
        value, exponent = value * 10, exponent - 1
    return exponent


def _drawing(
    kind: Literal["wide", "nar"],
    size: tuple[int, int],
    places: Sequence[str],
    series: Sequence[Series],
    scale: float,
    write: Callable[[float], str],
    labels_most: int,
) -> Drawing:
    width, height = size
    floor = height - BOTTOM
    step = (width - LEFT - RIGHT) / len(places)
    thick = max(1.0, min(step * (1 - GAP_SHARE), THICK_MOST))
    every = -(-len(places) // labels_most)
    per_unit = (floor - TOP) / scale
    ticks = tuple(
        AxisMark(at=round(floor - share * (floor - TOP), 1), text=write(share * scale)) for share in (0.0, 0.5, 1.0)
    )
    labels = tuple(
        AxisMark(at=round(LEFT + step * (place + 0.5), 1), text=places[place]) for place in range(0, len(places), every)
    )
    columns = []
    for place in range(len(places)):
        bars, below = [], 0.0
        for number, one in enumerate(series):
            value = one.values[place]
            if value > 0:
                tall = value * per_unit
                bars.append(
                    Bar(
                        x=round(LEFT + step * (place + 0.5) - thick / 2, 1),
                        y=round(floor - below - tall, 1),
                        width=round(thick, 1),
                        height=round(max(0.4, tall), 1),
                        series=number,
                    )
                )
                below += tall
        columns.append(Column(title=_told(places[place], series, place, write), bars=tuple(bars)))
    return Drawing(
        kind=kind, width=width, height=height, floor=floor, columns=tuple(columns), ticks=ticks, labels=labels
    )


def _told(place: str, series: Sequence[Series], at: int, write: Callable[[float], str]) -> str:
    parts = [f"{one.name} {write(one.values[at])}" for one in series if one.values[at] > 0]
    return f"{place}: {', '.join(parts) or 'nothing'}"
