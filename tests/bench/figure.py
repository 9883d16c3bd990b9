"""What a measure gives back, and what it is given: figures with their goals; seed, number of runs, a folder."""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table. `goal`: the most it may be, None where there is none. `stretch`: the best seen elsewhere.

    `how`: the recipe, in a few words. `key`: where programs find the value in the JSON, beside the list of all.
    """

    what: str
    value: float
    unit: str
    how: str
    goal: float | None = None
    stretch: float | None = None
    key: tuple[str, str] | None = None

    @property
    def is_met(self) -> bool:
        """Whether the goal is kept; True without one."""
        return self.goal is None or self.value <= self.goal

    @property
    def shown(self) -> str:
        """The value with its unit, as many digits as are worth reading."""
        digits = 0 if self.value >= 100 or float(self.value).is_integer() else 1 if self.value >= 10 else 2
        return f"{self.value:,.{digits}f} {self.unit}".rstrip()

    @property
    def aim(self) -> str:
        """The goal as it stands in the table."""
        if self.goal is None:
            return ""
        return f"≤ {self.goal:g}" + (f" (stretch {self.stretch:g})" if self.stretch is not None else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What each measure works with. `folder` is its own and goes when it is done.

    `databases`: of `houses.KINDS`, where a measure of many things is taken. `scale`: the share of its full size.
    """

    folder: Path
    seed: int
    runs: int
    databases: tuple[str, ...] = ("sqlite",)
    scale: float = 1.0

    def count(self, whole: int) -> int:
        """The full size, scaled down as asked; at least one."""
        return max(1, round(whole * self.scale))

    def dice(self) -> random.Random:
        """Chance that is the same in every run of the bench."""
        return random.Random(self.seed)  # noqa: S311 - made-up data, no secret


class Unmeasured(Exception):
    """A measure cannot be taken here; its words say what is missing."""


def median(take: Callable[[int], float], runs: int) -> float:
    """The median of that many takes; the machine is never quiet."""
    return statistics.median(take(number) for number in range(runs))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so much of the sample lies at or below."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
