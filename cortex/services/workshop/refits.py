"""Refits: the shipped model moved towards this server's own examples, as an explicit, numbered act that can be undone.

Judged before it is stored: own cases held back, and a sample of the shipped utterances. One that is worse is refused.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from cortex.base.clock import Clock, now
from cortex.base.errors import UserError
from cortex.base.model import Profile
from cortex.base.record import as_dict
from cortex.base.user import User
from cortex.selection.model import refit, weights
from cortex.selection.model.refit import OwnCase
from cortex.selection.model.weights import Weights
from cortex.selection.pipeline import plan
from cortex.selection.types import Example, PlanInput, RoleView, Snapshot
from cortex.selection.words import text
from cortex.services.tools.edits import with_weights
from cortex.services.tools.own_weights import digest_of, is_current, rests_on
from cortex.services.tools.tools import ToolsService
from cortex.services.workshop.learning import NOT_NEEDED
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.learning import AllCasesRepository, AnswersRepository
from cortex.storage.refits import RefitRow, RefitsRepository
from cortex.storage.tool_settings import ToolSettingsRepository

ONLY = "refit the model"  # for admins
CASES_LEAST = 8
CASES_MOST = 2_000
SHIPPED_JUDGED = 300
FIXED_TOKENS = 300
EVERYTHING = RoleView(name="admin", tools=("all",))
JUDGED_BEHIND = Profile(caches=True, read_factor=0.1, write_factor=1.25)
RECALL_LOSS = 0.005
TOOLS_GROWTH = 1.05


class Figure(Struct, frozen=True, kw_only=True):
    """Share of messages that get all they want, and tools a message."""

    recall: float
    tools: float


class Report(Struct, frozen=True, kw_only=True):
    """`own`: cases of this server that the judged fit had not seen; `shipped`: a sample of the shipped utterances."""

    cases: int
    unknown: int
    own_judged: int
    own_before: Figure
    own_after: Figure
    shipped_judged: int
    shipped_before: Figure
    shipped_after: Figure

    @property
    def worse(self) -> str:
        """Return what got worse, in words; "" for nothing."""
        if self.own_after.recall < self.own_before.recall:
            return "messages like this server's own get less of what they want"
        if self.shipped_after.recall < self.shipped_before.recall - RECALL_LOSS:
            return "other messages get less of what they want"
        if self.shipped_after.tools > self.shipped_before.tools * TOOLS_GROWTH:
            return "other messages are sent more tools"
        return ""


class RefitResult(Struct, frozen=True, kw_only=True):
    """A refit that was judged: stored under a number, or refused because of `worse`."""

    report: Report
    number: int = 0
    worse: str = ""


class Version(Struct, frozen=True, kw_only=True):
    """A stored refit as the page shows it. `is_current`: it rests on the model that ships now."""

    refit: RefitRow
    report: Report
    is_current: bool


class _Known(Struct, frozen=True, kw_only=True):
    """A wording with the tools of its examples, those that ran for it, went unused, or were agreed to be not needed."""

    text: str
    taught: dict[str, None] = field(default_factory=dict)
    called: dict[str, None] = field(default_factory=dict)
    unused: dict[str, None] = field(default_factory=dict)
    unneeded: set[str] = field(default_factory=set)

    @property
    def tools(self) -> tuple[str, ...]:
        """Return what it wants."""
        return (*self.taught, *(name for name in self.called if name not in self.unneeded | self.taught.keys()))

    @property
    def not_tools(self) -> tuple[str, ...]:
        """Return what it was given for nothing."""
        return tuple(sorted((self.unneeded | self.unused.keys()) - {*self.tools}))


class RefitsService(Struct, frozen=True, kw_only=True):
    """Makes, judges, chooses. Only admins may."""

    db: Database
    tools: ToolsService
    clock: Clock = field(default=now)

    async def versions(self, user: User) -> Sequence[Version]:
        """Every refit, the newest first."""
        user.must_be_admin(ONLY)
        found = await self.db.repository(RefitsRepository).all()
        current = await asyncio.to_thread(lambda: [is_current(refit) for refit in found])
        return [
            Version(refit=refit, report=report_of(refit.report), is_current=is_now)
            for refit, is_now in zip(found, current, strict=True)
        ]

    async def cases(self) -> tuple[OwnCase, ...]:
        """Gather what a refit would learn from: own examples, tools not needed, messages whose tools went unused.

        Each wording once, with all that is known of it. What it wants by an example is no tool that it does not need.
        """
        found: dict[str, _Known] = {}
        for word in await self.db.repository(ToolSettingsRepository).words():
            if word.kind == "example" and not word.is_left_out:
                _of(found, word.text).taught.update(dict.fromkeys(word.tools))
        for case in await self.db.repository(AllCasesRepository).recent(CASES_MOST):
            if case.text and case.unused:
                known = _of(found, case.text)
                known.called.update(dict.fromkeys(case.called))
                known.unused.update(dict.fromkeys(case.unused))
        for answer in await self.db.repository(AnswersRepository).all():
            if answer.kind == NOT_NEEDED:
                _of(found, answer.text).unneeded.add(answer.tool)
        return tuple(OwnCase(text=known.text, tools=known.tools, not_tools=known.not_tools) for known in found.values())

    async def make(self, user: User) -> RefitResult:
        """Fit, judge, and put it in force if nothing got worse. UserError when there is too little to learn from."""
        user.must_be_admin(ONLY)
        cases = await self.cases()
        shipped = (await self.tools.ground()).shipped
        tried, data = await asyncio.to_thread(_judged, shipped, cases, f"{self.clock():%Y-%m-%d}")
        async with self.db.transaction() as repository:
            if tried.worse:
                await repository(AuditRepository).add(
                    user.id, "refit.refused", "", {"why": tried.worse, **as_dict(tried.report)}
                )
                return tried
            report = as_dict(tried.report)
            number = await repository(RefitsRepository).add(rests_on(), digest_of(data), data, report, user.id)
            await repository(RefitsRepository).choose(number)
            await repository(ToolSettingsRepository).changed()
            await repository(AuditRepository).add(user.id, "refit.made", str(number), report)
        return RefitResult(report=tried.report, number=number)

    async def choose(self, user: User, number: int) -> None:
        """Put a stored refit in force, or with 0 the shipped model. UserError for one of an older version."""
        user.must_be_admin(ONLY)
        found = {version.refit.number: version for version in await self.versions(user)}
        if number in found and not found[number].is_current:
            raise UserError(f"Refit {number} was made for an older model than the one that ships now. Make a new one.")
        async with self.db.transaction() as repository:
            await repository(RefitsRepository).choose(number)
            await repository(ToolSettingsRepository).changed()
            await repository(AuditRepository).add(user.id, "refit.chosen", str(number), {})


def _of(found: dict[str, _Known], said: str) -> _Known:
    return found.setdefault(text.normal(said), _Known(text=said))


def report_of(stored: dict[str, Any]) -> Report:
    """The report that was stored."""
    figures = {name: Figure(**value) for name, value in stored.items() if isinstance(value, dict)}
    return Report(**{**stored, **figures})


def _judged(shipped: Snapshot, cases: Sequence[OwnCase], day: str) -> tuple[RefitResult, bytes]:
    """Off the event loop: the model of all cases, judged; what is held back is judged by a fit that did not see it."""
    base = weights.shipped()
    usable = refit.known(base, cases)
    if len(usable) < CASES_LEAST:
        raise UserError(
            f"There are {len(usable)} messages of this server to learn from; {CASES_LEAST} are needed. "
            "What you accept below counts, and applies at once without a refit."
        )
    fit, held = refit.held_back(usable)
    trial = refit.refitted(base, fit)
    final = refit.refitted(base, usable, made=f"refit {day}, {len(usable)} cases")
    data = weights.compressed(final)
    sample = _sample(shipped)
    own = [Example(text=case.text, tools=case.tools) for case in held]
    report = Report(
        cases=len(usable),
        unknown=len(cases) - len(usable),
        own_judged=len(own),
        own_before=_figure(shipped, own),
        own_after=_figure(_with(shipped, trial), own),
        shipped_judged=len(sample),
        shipped_before=_figure(shipped, sample),
        shipped_after=_figure(_with(shipped, weights.from_compressed(data)), sample),
    )
    return RefitResult(report=report, worse=report.worse), data


def _with(snapshot: Snapshot, model: Weights) -> Snapshot:
    """The shipped snapshot judged by this model: own words would find their own wordings by themselves."""
    key = f"judged {digest_of(model.matrix.tobytes() + model.scale.tobytes())}"
    weights.keep(key, model)
    return with_weights(snapshot, key)


def _sample(snapshot: Snapshot) -> list[Example]:
    """Shipped utterances, those that need no tool among them."""
    told = [each for domain in snapshot.domains for each in domain.examples]
    told += [*snapshot.several, *(Example(text=each.text, tools=()) for each in snapshot.none)]
    return [told[at] for at in refit.sample(len(told), SHIPPED_JUDGED)]


def _figure(snapshot: Snapshot, told: Sequence[Example]) -> Figure:
    """Return what these messages get as the first of a chat in which everything may be used."""
    ready = tuple(entry.name for entry in snapshot.entries)
    met = wanting = tools = 0
    for example in told:
        given = PlanInput(
            snapshot=snapshot,
            ready=ready,
            role=EVERYTHING,
            is_admin=True,
            message=example.text,
            profile=JUDGED_BEHIND,
            fixed_tokens=FIXED_TOKENS,
        )
        made = plan(given)
        sent = {item.name for item in made.sent if item.name in made.reachable}
        tools += len(sent)
        wanting += bool(example.tools)
        met += bool(example.tools) and sent.issuperset(example.tools)
    return Figure(recall=round(met / wanting, 4) if wanting else 1.0, tools=round(tools / max(1, len(told)), 3))
