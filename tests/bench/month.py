"""A month of one household, and what is measured on it: rows of its file, figures of what their requests carried.

Made up, by us: three people, their names for devices, lists and habits, in English, German and dialect. Weeks 1 to 3
are what a server learns from, week 4 and other wordings of the same habits (day 0) what it is judged by.
`month_replay.py` replays it on the services.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Literal

from cortex.base.errors import UserError
from cortex.base.user import Rank
from cortex.commands.training import aligned
from tests.bench.rows import Kind, Needs, _Row
from tests.bench.scores import met, share

HOUSEHOLD = Path(__file__).parent / "months" / "household.jsonl"
LEARNED_DAYS, DAYS_A_WEEK = 21, 7
WEEKS = (1, 2, 3, 4)
Way = Literal["as shipped", "learned", "learned and refitted"]
HEADS = ("recall", "tools", "talk with a tool", "writing with a tool")


class HouseholdPerson(_Row):
    """Who lives there. `shares`: lets admins see the words of messages that lacked a tool."""

    person: str
    rank: Rank
    shares: bool


class SaidRow(_Row):
    """What somebody wrote on a day, 0 for what is only judged, and the tools that it needs, as in a routing file."""

    day: int
    who: str
    text: str
    kind: Kind
    need_tools: Needs = ()

    @property
    def week(self) -> int:
        """From 1; the last holds what is left of the month, 0 is what is only judged."""
        return min((self.day + DAYS_A_WEEK - 1) // DAYS_A_WEEK, WEEKS[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """The file."""

    people: tuple[HouseholdPerson, ...]
    said: tuple[SaidRow, ...]

    def of(self, week: int) -> tuple[SaidRow, ...]:
        """What was said in this week, 0 for what is only judged."""
        return tuple(row for row in self.said if row.week == week)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekFigures:
    """`recall`: share of requests that carried all they need; `tools`: a message's mean of those that need any.

    `talk`, `writing`: share that carried any tool. `week`: 0 for what is only judged.
    """

    week: int
    way: Way
    recall: float
    tools: float
    talk: float
    writing: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """Rows of our own cases before and after: met, of `rows`; lost and won, by their ids.

    `burdened`: how many of the `plain` ones, which need no tool, carried any before and after.
    """

    rows: int
    before: int
    after: int
    lost: tuple[str, ...]
    won: tuple[str, ...]
    plain: int
    burdened: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefitCost:
    """Refits made and held, messages learned from, processor time, and by how much the process's peak grew."""

    made: int
    held: int
    cases: int
    seconds: float
    grown_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """After all was taken back: of so many plans so many are what they were before anything was learned."""

    plans: int
    same: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedMonth:
    """What a month of learning came to: answers an admin gave, what it forgot, what was left of it when undone."""

    way: Way
    answers: int
    forgot: Forgetting
    undone: Undone
    refits: RefitCost


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthReport:
    """The weeks by each way, in order; and what each way of learning came to."""

    weeks: tuple[WeekFigures, ...]
    ways: tuple[LearnedMonth, ...]


def read(path: Path = HOUSEHOLD) -> Month:
    """The month of this file; UserError names a row whose writer does not live there."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    people = tuple(HouseholdPerson.model_validate(row) for row in rows if "person" in row)
    said = tuple(SaidRow.model_validate(row) for row in rows if "text" in row)
    stranger = {row.who for row in said} - {person.person for person in people}
    if stranger:
        raise UserError(f"{path.name}: {min(stranger)!r} wrote, but does not live there.")
    return Month(people=people, said=said)


def figures(week: int, way: Way, carried: Sequence[tuple[SaidRow, frozenset[str]]]) -> WeekFigures:
    """Of messages with the tools that their first request carried."""
    tool = [(row, names) for row, names in carried if row.kind == "tool"]
    return WeekFigures(
        week=week,
        way=way,
        recall=share(met(row.need_tools, names) for row, names in tool) if tool else 1.0,
        tools=round(mean(len(names) for _, names in tool), 2) if tool else 0.0,
        talk=_any(carried, "chat"),
        writing=_any(carried, "llm"),
    )


def _any(carried: Sequence[tuple[SaidRow, frozenset[str]]], kind: Kind) -> float:
    marks = [bool(names) for row, names in carried if row.kind == kind]
    return share(marks) if marks else 0.0


def told(report: MonthReport) -> str:
    """The report as text."""
    rows = [["week", "way", *HEADS]]
    for one in sorted(report.weeks, key=lambda one: one.week or len(WEEKS) + 1):
        cells = (f"{one.recall:.3f}", f"{one.tools:.2f}", f"{one.talk:.3f}", f"{one.writing:.3f}")
        rows.append([str(one.week or "other words"), one.way, *cells])
    return "\n".join((aligned(rows), *(line for way in report.ways for line in _told(way))))


def _told(one: LearnedMonth) -> tuple[str, ...]:
    forgot, cost = one.forgot, one.refits
    refits = (
        f"  refits: {cost.made}, {cost.held} held, the last of {cost.cases} messages; "
        f"at most {cost.seconds:.1f} s of processor and {cost.grown_mb:.0f} MB more",
    )
    return (
        f"\n{one.way}: {one.answers} answers on the page",
        f"  of {forgot.rows} own cases {forgot.before} were met before, {forgot.after} after; "
        f"lost: {', '.join(forgot.lost) or 'none'}; won: {', '.join(forgot.won) or 'none'}",
        f"  of {forgot.plain} that need none {forgot.burdened[0]} carried a tool before, {forgot.burdened[1]} after",
        *(refits if cost.made else ()),
        f"  undone: {one.undone.same} of {one.undone.plans} plans as before, byte for byte",
    )
