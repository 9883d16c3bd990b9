"""What model calls sent, took and cost, for the usage page: one person's own, or for an admin anybody's or all.

Everything here is a sum over the ledger (`storage/usage.py`), which is written from the receipts themselves.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from cortex.base.errors import NotAllowed, NotFound
from cortex.base.record import field_names
from cortex.base.user import User
from cortex.base.zone import local, midnight
from cortex.services.accounts.accounts import Accounts
from cortex.services.accounts.people import AccountRow
from cortex.services.models.cache_misses import WORDS
from cortex.services.runtime import Runtime
from cortex.storage.jobs import AllJobsRepository
from cortex.storage.usage import AllUsageRepository, Cell, ExpensiveTurn, Span, ToolUsage
from cortex.storage.usage import Sum as Sum
from cortex.storage.usage import UsageRepository as OwnUsage

By = Literal["model", "role", "tool", "job", "person", "token"]
ALL = "all"
DEAR_MOST = 10
NAMELESS: dict[str, str] = {"job": "(no job)", "token": "(no token)", "role": "(unknown)", "model": "(unknown)"}
META = "meta"


class UsageRow(Struct, frozen=True, kw_only=True):
    """One model, role, job or person with its sum over the range, and what it cost on each day."""

    key: str
    label: str
    sum: Sum
    cost_by_day: tuple[float, ...]


class Miss(Struct, frozen=True, kw_only=True):
    """A cache outcome, in words, and how many rounds had it; `fresh_tokens` were paid in full by them."""

    outcome: str
    words: str
    rounds: int
    fresh_tokens: int


class View(Struct, frozen=True, kw_only=True):
    """The page's numbers. `days`: every day of the range in the reader's zone, in order; `tools` only by tool.

    models: by model, whatever `by` is; persons: by person, where it is everybody's.
    """

    of: str
    by: By
    whole: Sum
    days: tuple[tuple[date, Sum], ...]
    rows: tuple[UsageRow, ...]
    models: tuple[UsageRow, ...]
    persons: tuple[UsageRow, ...]
    misses: tuple[Miss, ...]
    histogram: tuple[tuple[int, int], ...]
    dear: tuple[ExpensiveTurn, ...]
    tools: tuple[ToolUsage, ...]
    never: tuple[ToolUsage, ...]
    people: tuple[AccountRow, ...]

    @property
    def turns(self) -> int:
        """Return how many messages were answered."""
        return sum(turns for _, turns in self.histogram)

    @property
    def hit_rate(self) -> float | None:
        """The share of rounds that found the cache warm, of those for which there was one; None for none."""
        known = [miss for miss in self.misses if miss.outcome != "uncached"]
        rounds = sum(miss.rounds for miss in known)
        return sum(miss.rounds for miss in known if miss.outcome == "hit") / rounds if rounds else None

    def name_of(self, user_id: str) -> str:
        """A person's name."""
        return next((one.name for one in self.people if one.id == user_id), user_id)


class UsageService(Struct, frozen=True, kw_only=True):
    """Reads the ledger for the page."""

    runtime: Runtime
    accounts: Accounts

    async def view(self, user: User, *, days: int, by: By = "model", person: str = "") -> View:
        """The last `days` days of the reader's calendar, 0: its month up to today.

        person: "" = the reader, "all", or an account's id.

        NotAllowed for a member who asks for others; NotFound for an account that is none.
        """
        people = await self._people(user, person)
        here = local(self.runtime.clock(), user.time_zone)
        days, today = days or here.day, here.toordinal()
        spans = self._spans(user, days)
        whole: Span = (spans[0][0], spans[-1][1])
        ledger = self._ledger(user, person)
        found = await ledger.cells(spans, "model" if by == "tool" else by)
        models = found if by in ("model", "tool") else await ledger.cells(spans, "model")
        persons = () if person != ALL else found if by == "person" else await ledger.cells(spans, "person")
        tools = await ledger.tools(whole) if by == "tool" else ()
        owner_id = "" if person == ALL else person or user.id
        jobs = await self.runtime.db.repository(AllJobsRepository).names(owner_id) if by == "job" else ()
        names = {one.id: one.name for one in (jobs if by == "job" else people)}
        dates = [date.fromordinal(today - days + 1 + place) for place in range(days)]
        return View(
            of=person or user.id,
            by=by,
            whole=_sum(found),
            days=tuple((on, _sum(cell for cell in found if cell.day == place)) for place, on in enumerate(dates)),
            rows=_rows(found, by, days, names) if by != "tool" else (),
            models=_rows(models, "model", days, {}),
            persons=_rows(persons, "person", days, {one.id: one.name for one in people}),
            misses=_misses(found),
            histogram=tuple(await ledger.histogram(whole)),
            dear=tuple(await ledger.dear(whole, DEAR_MOST)),
            tools=tuple(sorted(tools, key=lambda one: (-one.tokens, one.name))),
            never=self._never(tools) if by == "tool" else (),
            people=people,
        )

    async def _people(self, user: User, person: str) -> tuple[AccountRow, ...]:
        """Return whom the page can show: everybody for an admin, who else only themselves."""
        is_own = person in ("", user.id)
        if not user.is_admin and not is_own:
            raise NotAllowed("Only an admin can see what others use.")
        everybody = await self.accounts.all_accounts()
        if person not in ("", ALL) and all(one.id != person for one in everybody):
            raise NotFound("This account does not exist.")
        return tuple(one for one in everybody if user.is_admin or one.id == user.id)

    def _ledger(self, user: User, person: str) -> OwnUsage | AllUsageRepository:
        if person == ALL:
            return self.runtime.db.repository(AllUsageRepository)
        return self.runtime.db.repository(OwnUsage, person or user.id)

    def _spans(self, user: User, days: int) -> Sequence[Span]:
        """The days of the reader's calendar, today last, each from midnight to midnight."""
        now = self.runtime.clock()
        edges = [midnight(now, user.time_zone, offset) for offset in range(1 - days, 2)]
        return list(pairwise(edges))

    def _never(self, used: Sequence[ToolUsage]) -> tuple[ToolUsage, ...]:
        """Tools of the server that nobody called in the range, those first that cost most to send."""
        known = {one.name: one for one in used}
        names = [name for name, tool in self.runtime.registry.tools.items() if tool.category != META]
        idle = [
            known.get(name, ToolUsage(name=name)) for name in names if not known.get(name, ToolUsage(name=name)).calls
        ]
        return tuple(sorted(idle, key=lambda one: (-one.tokens, one.name)))


def _sum(cells: Iterable[Cell]) -> Sum:
    """The cells' numbers added up."""
    given = list(cells)
    return Sum(**{name: sum(getattr(cell, name) for cell in given) for name in field_names(Sum)})


def _rows(cells: Sequence[Cell], by: By, days: int, names: dict[str, str]) -> tuple[UsageRow, ...]:
    """A row a key, the dearest first."""
    rows = []
    for key in sorted({cell.key for cell in cells}):
        mine = [cell for cell in cells if cell.key == key]
        costs = [sum(cell.cost_usd for cell in mine if cell.day == place) for place in range(days)]
        label = (names.get(key, key) if by in ("person", "job") else key) or NAMELESS.get(by, "")
        rows.append(UsageRow(key=key, label=label, sum=_sum(mine), cost_by_day=tuple(costs)))
    return tuple(sorted(rows, key=lambda row: (-row.sum.cost_usd, -row.sum.input_tokens, row.label)))


def _misses(cells: Sequence[Cell]) -> tuple[Miss, ...]:
    """Return how often each outcome came, hits first, then the most frequent."""
    found = []
    for outcome in {cell.cache for cell in cells}:
        mine = _sum(cell for cell in cells if cell.cache == outcome)
        words = dict(WORDS).get(outcome, "not looked at")  # type: ignore[call-overload]  # "" of rows without a verdict
        found.append(Miss(outcome=outcome, words=words, rounds=mine.rounds, fresh_tokens=mine.fresh_tokens))
    return tuple(sorted(found, key=lambda one: (one.outcome != "hit", -one.rounds, one.outcome)))
