"""Whether chances are what they say: how often what was given a chance of p came true, by p. Knows nothing of tools."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

EDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
TOLD_FROM = 0.05


class Bin(Struct, frozen=True, kw_only=True):
    """The cases whose chance lies from `least` up to `most`: their mean chance, and the share that came true."""

    least: float
    most: float
    cases: int
    said: float
    true: float


class ReliabilityCurve(Struct, frozen=True, kw_only=True):
    """One kind of chance: its name, what it is a chance of, and its bins that hold anything, rising."""

    name: str
    of: str
    bins: tuple[Bin, ...]

    def error(self, least: float = 0.0) -> float:
        """The expected calibration error: how far chance and share lie apart, over the cases from this chance on."""
        counted = [each for each in self.bins if each.least >= least]
        cases = sum(each.cases for each in counted)
        return sum(each.cases * abs(each.said - each.true) for each in counted) / cases if cases else 0.0


def curve(name: str, of: str, cases: Iterable[tuple[float, bool]]) -> ReliabilityCurve:
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
    return ReliabilityCurve(name=name, of=of, bins=tuple(bins))


def rows(curves: Sequence[ReliabilityCurve]) -> list[list[str]]:
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
