"""`make bench ARGS=month`: replays a household's month on the services of a new home, and says what learning brought.

Real: plans, search, calls as they are kept, ends of turns, reports, the page *Learn from use*, refits, and how each is
undone. Played: a model that calls what a message needs, and people who report a tool that never came, or that talk
carried. Every tool counts as set up, as in the other measures; each message begins a conversation.
"""

import resource
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from msgspec.structs import replace

from cortex.agent.arguments import digest
from cortex.app import Cortex
from cortex.base import tokens
from cortex.base.messages import assistant, user
from cortex.base.model import PROFILES
from cortex.base.settings import load_settings
from cortex.base.turn import Need, Outcome, Turn
from cortex.base.user import User
from cortex.commands.planned import tools_of
from cortex.ports.loop import CallEnding, CallRecord
from cortex.selection.types import META
from cortex.services.tools.plans import PlannedRound, PlanRequest, needed, opening
from cortex.services.tools.tools import ToolsService
from cortex.services.turns.calls import CallLog
from cortex.services.turns.tool_outcomes import SEARCH
from cortex.services.workshop.refits import CASES_LEAST
from cortex.storage.plans import PlansRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from tests.bench import month as months
from tests.bench import routing
from tests.bench.files import RoutingSet
from tests.bench.ground import BenchGround, Tell
from tests.bench.month import (
    Forgetting,
    LearnedMonth,
    Month,
    MonthReport,
    RefitCost,
    SaidRow,
    Undone,
    Way,
    WeekFigures,
)
from tests.bench.scores import ScoredRow, met

ROLE, RECIPE = "orchestrator", "cortex"
MONDAY = datetime.fromisoformat("2026-10-26T06:00:00+00:00")
BEHIND = PROFILES["anthropic"]
LEARNING: tuple[Way, ...] = ("learned", "learned and refitted")
LACKS = "I don't have a tool for that here."
KB_A_MB = 1024

Carried = list[tuple[SaidRow, frozenset[str]]]


@dataclass(slots=True, kw_only=True)
class _Clock:
    """Moved by hand, so that ids and times are the same in each run."""

    at: datetime = MONDAY

    def __call__(self) -> datetime:
        self.at += timedelta(milliseconds=1)
        return self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class _House:
    """A new home with its people. `tools`: as admins changed them; `shipped`: as nobody did."""

    cortex: Cortex
    clock: _Clock
    people: Mapping[str, User]
    tools: ToolsService
    shipped: ToolsService

    @property
    def admin(self) -> User:
        """Who learns."""
        return next(person for person in self.people.values() if person.is_admin)

    async def planned(self, row: SaidRow, tools: ToolsService) -> PlannedRound:
        """The first round of this message as the first of a conversation."""
        return await tools.plan_turn(await self._asked(row, MONDAY))

    async def carried(self, rows: Iterable[SaidRow], tools: ToolsService) -> Carried:
        """What the first request of each carries."""
        return [(row, _names(await self.planned(row, tools))) for row in rows]

    async def bytes_of(self, rows: Iterable[SaidRow]) -> list[str]:
        """What is sent with each message and why, every byte of it."""
        rounds = [await self.planned(row, self.tools) for row in rows]
        return [
            tokens.minified([one.tools, one.round.system, one.round.tail, one.receipt, one.memory]) for one in rounds
        ]

    async def live(self, row: SaidRow) -> frozenset[str]:
        """A turn from the message to its end, kept as a server keeps it; what its first request carried."""
        self.clock.at = max(self.clock.at, MONDAY + timedelta(days=row.day - 1))
        person = self.people[row.who]
        conversation = (await self.cortex.conversations.new(person, role=ROLE)).id
        turn = _turn(f"{conversation}-1", conversation, person, row, self.clock())
        async with self.cortex.runtime.db.transaction(person.id) as repository:
            await repository(TurnsRepository).create(
                NewTurn(turn.id, conversation, row.text, mode="auto", role=ROLE, is_tainted=False, reads=NOTHING_READ)
            )
        asked = (await self._asked(row, self.clock())).with_given(turn=turn.id)
        first = await self._round(asked)
        had = _names(first)
        rounds, lacks = await self._act(turn, row, asked, first)
        said = (user(row.text), assistant("Done."))
        await self.cortex.turn_end.end_turn(turn, Outcome(state="done", rounds=rounds, messages=said))
        wrong = lacks if row.kind == "tool" else sorted(had)
        for name in wrong if await self.cortex.learning.shares(person) else ():
            await self.cortex.reports.report(person, turn.id, name, is_missing=row.kind == "tool")
        return had

    async def learn(self) -> int:
        """What an admin does with the page on a Sunday evening: accept it all; how many answers."""
        learning, admin, answers = self.cortex.learning, self.admin, 0
        while True:
            page = await learning.page(admin)
            told = [(one.tool, wording.text_hash) for one in page.suggestions for wording in one.wordings]
            agreed = [one for one in page.unneeded if one.text]
            if not (told or agreed):
                return answers
            for tool, wording in told:
                await learning.add_example(admin, tool, wording)
            for report in agreed:
                await learning.agree(admin, report.tool, report.text_hash)
            answers += len(told) + len(agreed)

    async def refit(self) -> RefitCost:
        """A refit and what it cost; one that is refused leaves in force what was."""
        start_s, before = process_time(), _peak_mb()
        done = await self.cortex.refits.make(self.admin)
        seconds, grown_mb = process_time() - start_s, _peak_mb() - before
        return RefitCost(made=1, held=not done.worse, cases=done.report.cases, seconds=seconds, grown_mb=grown_mb)

    async def forget(self) -> None:
        """Take all of it back."""
        for answer in (await self.cortex.learning.page(self.admin)).answers:
            await self.cortex.learning.take_back(self.admin, answer.id)
        await self.cortex.refits.choose(self.admin, 0)

    async def _asked(self, row: SaidRow, now: datetime) -> PlanRequest:
        person = self.people[row.who]
        role = await self.cortex.roles.role(person, ROLE)
        return opening(person, role, row.text, now).with_given(profile=BEHIND, model="bench")

    async def _round(self, asked: PlanRequest) -> PlannedRound:
        """A round, planned and kept."""
        made = await self.tools.plan_turn(asked)
        plans = self.cortex.runtime.db.repository(PlansRepository, asked.user.id)
        await plans.add(asked.given.turn, asked.given.round, made.receipt)
        return made

    async def _act(
        self, turn: Turn, row: SaidRow, asked: PlanRequest, first: PlannedRound
    ) -> tuple[int, tuple[str, ...]]:
        """Call what the message needs, looked for where it was not sent; how many rounds that took, what never came."""
        log = CallLog(runtime=self.cortex.runtime, contexts=self.cortex.turn_contexts, homes=self.cortex.homes)
        had, at, lacks = _names(first), 1, list[str]()
        if row.need_tools and not met(row.need_tools, had):
            had, at = await self._looked_for(turn, log, asked, first), 2
        for number, group in enumerate(row.need_tools):
            name = next((name for name in group if name in had), "")
            if name:
                await _call(log, turn, at, f"{turn.id}-{number}", name, "ok")
            else:
                lacks.append(group[0])
        return at, tuple(lacks)

    async def _looked_for(self, turn: Turn, log: CallLog, asked: PlanRequest, first: PlannedRound) -> frozenset[str]:
        """What a search brings, or a second look after an answer that lacks it."""
        need = Need(round=2, missing=LACKS)
        if any(item.name == SEARCH for item in first.plan.sent):
            found = await self.tools.discover(asked.user, asked.role, asked.given.message, memory=first.memory)
            await _call(log, turn, 1, f"{turn.id}-search", SEARCH, found.text)
            need = Need(round=2, found=found.names)
        given = replace(needed(asked.given, need), memory=first.plan.memory)
        second = await self._round(replace(asked, given=given))
        return _names(second) | frozenset(need.found)


async def replayed(
    month: Month, cases: Sequence[RoutingSet], ground: BenchGround, tell: Tell, ways: Sequence[Way] = LEARNING
) -> MonthReport:
    """The month as it would have gone with nothing learned, by Learn from use, and by refits too."""
    weeks: list[WeekFigures] = []
    lived: list[LearnedMonth] = []
    for way in ways:
        tell(f"{way} …")
        async with _opened(month) as house:
            if not weeks:
                shipped = {week: await house.carried(month.of(week), house.shipped) for week in (*months.WEEKS, 0)}
                weeks += _by_week("as shipped", shipped)
            carried, learned = await _lived(house, month, cases, ground, way)
            weeks += _by_week(way, carried)
            lived.append(learned)
    return MonthReport(weeks=tuple(weeks), ways=tuple(lived))


async def _lived(
    house: _House, month: Month, cases: Sequence[RoutingSet], ground: BenchGround, way: Way
) -> tuple[dict[int, Carried], LearnedMonth]:
    """Live week after week, learn on each Sunday but the last; judge, and take it back."""
    before, kept = await house.bytes_of(month.said), _scored(cases, ground.over(await house.tools.snapshot()))
    carried: dict[int, Carried] = {}
    answers, known, refits = 0, CASES_LEAST - 1, list[RefitCost]()
    for week in months.WEEKS:
        carried[week] = [(row, await house.live(row)) for row in month.of(week)]
        if week != months.WEEKS[-1]:
            answers += await house.learn()
            found = len(await house.cortex.refits.cases())
            if way == "learned and refitted" and found > known:
                known = found
                refits.append(await house.refit())
    carried[0] = await house.carried(month.of(0), house.tools)
    learned = _scored(cases, ground.over(await house.tools.snapshot()))
    await house.forget()
    after = await house.bytes_of(month.said)
    undone = Undone(plans=len(before), same=sum(a == b for a, b in zip(before, after, strict=True)))
    forgot = _forgotten(kept, learned)
    return carried, LearnedMonth(way=way, answers=answers, forgot=forgot, undone=undone, refits=_all(refits))


@asynccontextmanager
async def _opened(month: Month) -> AsyncIterator[_House]:
    """A new home in a folder of its own, with the month's people."""
    clock = _Clock()
    with TemporaryDirectory(prefix="cortex-month-") as folder:
        settings = load_settings(None, home=Path(folder), database_url="", engine_url="")
        async with Cortex.at_rest(settings, clock=clock) as cortex:
            people = {}
            for one in month.people:
                people[one.person] = (await cortex.accounts.add_user(one.person, one.rank)).user
                await cortex.learning.share(people[one.person], is_shared=one.shares)
            yield _House(
                cortex=cortex,
                clock=clock,
                people=people,
                tools=tools_of(cortex, assume_configured=True),
                shipped=ToolsService(
                    registry=cortex.runtime.registry,
                    wired=cortex.wired,
                    roles=cortex.roles,
                    clock=clock,
                    assume_configured=True,
                ),
            )


def _by_week(way: Way, carried: Mapping[int, Carried]) -> list[WeekFigures]:
    return [months.figures(week, way, rows) for week, rows in carried.items() if rows]


def _all(refits: Sequence[RefitCost]) -> RefitCost:
    """The refits of a month as one: cases of the last, time and memory of the dearest."""
    return RefitCost(
        made=sum(one.made for one in refits),
        held=sum(one.held for one in refits),
        cases=refits[-1].cases if refits else 0,
        seconds=max((one.seconds for one in refits), default=0.0),
        grown_mb=max((one.grown_mb for one in refits), default=0.0),
    )


def _scored(cases: Sequence[RoutingSet], ground: BenchGround) -> Sequence[ScoredRow]:
    """Our own cases as they would be given now."""
    return [one for each in cases for one in routing.given(each, routing.known(each.rows, ground), ground, RECIPE)]


def _forgotten(before: Sequence[ScoredRow], after: Sequence[ScoredRow]) -> Forgetting:
    wanting = [(a, b) for a, b in zip(before, after, strict=True) if a.row.kind == "tool" and a.needs]
    plain = [(a, b) for a, b in zip(before, after, strict=True) if a.row.kind in ("chat", "llm")]
    return Forgetting(
        rows=len(wanting),
        before=sum(a.is_met for a, _ in wanting),
        after=sum(b.is_met for _, b in wanting),
        lost=tuple(a.row.id for a, b in wanting if a.is_met and not b.is_met),
        won=tuple(a.row.id for a, b in wanting if b.is_met and not a.is_met),
        plain=len(plain),
        burdened=(sum(bool(a.names) for a, _ in plain), sum(bool(b.names) for _, b in plain)),
    )


def _turn(id: str, conversation: str, person: User, row: SaidRow, now: datetime) -> Turn:
    return Turn(
        id=id,
        conversation_id=conversation,
        user_id=person.id,
        role=ROLE,
        channel="chat",
        text=row.text,
        mode="auto",
        max_rounds=8,
        max_rounds_from="role",
        models=("bench",),
        window_tokens=0,
        now=now.isoformat(),
    )


async def _call(log: CallLog, turn: Turn, at: int, id: str, name: str, text: str) -> None:
    """A call as the log keeps it, from the gate's word to its result."""
    call = CallRecord(id=id, wire_id=id, tool=name, arguments="{}", hash=digest(name, "{}"), risk="low")
    await log.record(turn, at, call)
    await log.intend(turn, call.id)
    await log.end(turn, call, CallEnding(text=text, state="ok"))


def _names(made: PlannedRound) -> frozenset[str]:
    """The tools that a request carries; meta tools are none."""
    sent = (item["name"] for item in made.receipt["sent"] if item["category"] != META)
    return frozenset((*sent, *made.plan.memory.noted))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KB_A_MB
