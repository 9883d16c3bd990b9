"""The rows of what is weighed: their units, what they are a ratio to, and whether a committed one has been outgrown."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.bench.weight.subject import Weights

SHARE = 0.05  # what a held row may grow by
CORTEX, BARE = "Cortex", "bare"
Rounds = Mapping[str, Sequence[Weights]]  # by the name of what was weighed
Kept = Mapping[str, Mapping[str, float]]  # row -> "value", and "ratio" where it has one


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line. `per`: the row of the bare program, of the same round, by which processor is divided: so that a slow
    machine blames nobody. `least`: growth in the row's unit that is none, for processor is counted in hundredths of a
    second. `is_held`: it fails the run where it grew.
    """

    name: str
    unit: str
    per: str = ""
    least: float = 0.0
    is_held: bool = True


START, HELLO = "processor to ready", "later hello"
ROWS = (
    Row(name=START, unit="s", per=START, least=0.03),
    Row(name="processor in that minute", unit="s", per=START, least=0.05),
    Row(name="idle processor", unit="% of a core", per=START, least=0.1),
    Row(name="first hello at once", unit="s", per=START, least=0.03),
    Row(name="first hello behind the minute", unit="s", per=START, least=0.03),
    Row(name=HELLO, unit="ms", per=HELLO, least=1),
    Row(name="later hello, first word", unit="ms", is_held=False),
    Row(name="turn with one tool", unit="ms", per=HELLO, least=1),
    Row(name="20 at once", unit="s", per="20 at once", least=0.05),
    Row(name="20 at once, unanswered", unit=""),
    Row(name="memory a minute after ready", unit="MB"),
    Row(name="memory after 1 turn", unit="MB"),
    Row(name="memory after 20 turns", unit="MB"),
    Row(name="memory after 20 at once", unit="MB"),
    Row(name="memory after 300 turns", unit="MB"),
    Row(name="stored, a hello", unit="KB", is_held=False),
    Row(name="stored, a turn with one tool", unit="KB", is_held=False),
    Row(name="threads", unit="", is_held=False),
    Row(name="descriptors", unit="", is_held=False),
)


def kept(rounds: Rounds) -> dict[str, dict[str, float]]:
    """The medians of Cortex, each row with its ratio to the bare program, as they are committed."""
    found: dict[str, dict[str, float]] = {}
    for row in ROWS:
        found[row.name] = {"value": round(_median(rounds[CORTEX], row.name), 3)}
        if row.per:
            pairs = zip(rounds[CORTEX], rounds[BARE], strict=True)
            found[row.name]["ratio"] = round(statistics.median(mine[row.name] / of[row.per] for mine, of in pairs), 3)
    return found


def grown(before: Kept, now: Kept) -> Iterator[str]:
    """A sentence for each held row that grew by more than a twentieth, or is on one side alone."""
    for row in ROWS:
        was, is_now = before.get(row.name), now.get(row.name)
        if was is None or is_now is None:
            yield f"{row.name}: {'not committed yet' if was is None else 'not measured'}."
            continue
        what = "ratio" if row.per else "value"
        if row.is_held and is_now[what] > was[what] * (1 + SHARE) + _least(row, was):
            of = f" times the bare program's {row.per}" if row.per else f" {row.unit}"
            yield f"{row.name}: {is_now[what]:g}{of}, was {was[what]:g} (now {is_now['value']:g} {row.unit})."


def markdown(rounds: Rounds, missed: Mapping[str, str]) -> str:
    """A column for each, a line for each row; what could not be weighed with the reason."""
    names = list(rounds)
    ratios = kept(rounds)
    lines = [f"| | {' | '.join(names)} | Cortex to bare |", f"|---|{'--:|' * (len(names) + 1)}"]
    for row in ROWS:
        values = [_shown(_median(rounds[name], row.name), row.unit) for name in names]
        ratio = ratios[row.name].get("ratio")
        lines.append(f"| {row.name} | {' | '.join(values)} | {'' if ratio is None else f'{ratio:.1f}'} |")
    return "\n".join([*lines, *(f"\n{name} was not weighed: {why}" for name, why in missed.items())])


def _median(rounds: Sequence[Weights], name: str) -> float:
    return statistics.median(one[name] for one in rounds)


def _least(row: Row, was: Mapping[str, float]) -> float:
    """What is no growth, in what is compared: the row's unit, or its ratio."""
    if not row.per or not was["value"]:
        return row.least
    return row.least * was["ratio"] / was["value"]


def _shown(value: float, unit: str) -> str:
    digits = 0 if value >= 100 or not value % 1 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()
