"""Messages tried out for the Tools page: under every recipe side by side, and as cases with the tools they must get.

Asks no model; stores nothing but the cases. The effect of a change of words is `services/workshop/tool_effects.py`.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import UserError
from cortex.base.model import ModelEntry
from cortex.base.role import Role
from cortex.base.user import Rank, User
from cortex.selection.pipeline import plan
from cortex.selection.recipes import RECIPES
from cortex.selection.types import META
from cortex.services.models.profiles import in_words
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.tools.absent import ToolSeeker, absent_tools
from cortex.services.tools.plans import NOTHING_ABSENT, PlannedRound, PlanRequest, planned
from cortex.services.tools.tools import PlanGround, ToolsService
from cortex.services.workshop.assumptions import Assumed, Assumptions, Whom
from cortex.services.workshop.steps import Step, steps
from cortex.storage.audit import AuditRepository
from cortex.storage.tool_settings import ToolCaseRow as ToolCaseRow
from cortex.storage.tool_settings import ToolCasesRepository

ONLY = "save checks"  # for admins
TEXT_MAX = 4_000
CASES_MAX = 500
RECIPE_NAMES = tuple(RECIPES)


class Question(Struct, frozen=True, kw_only=True):
    """A message to try: as whom, in which role, for which model, which recipe to explain.

    `person`: an account's name, "" for who asks. `rank`: as if they were of it, "" for their own. `model`, `profile`:
    "" for the person's first model and what it caches. `is_assumed`: as if every tool were set up.
    """

    text: str
    role: str = "orchestrator"
    rank: Rank | Literal[""] = ""
    person: str = ""
    model: str = ""
    profile: str = ""
    recipe: str = "cortex"
    is_assumed: bool = False


class RecipeResult(Struct, frozen=True, kw_only=True):
    """A message under a recipe: the receipt's tools, tokens a round, their share of all, the time to choose."""

    recipe: str
    sent: tuple[dict[str, Any], ...]
    tokens: int
    share: float
    ms: float

    @property
    def names(self) -> tuple[str, ...]:
        """The tools without those that find and call others."""
        return tuple(item["name"] for item in self.sent if item["category"] != META)


class MessageTrial(Struct, frozen=True, kw_only=True):
    """Every recipe, and one of them step by step with its receipt. `told`: what was assumed, in words."""

    told: str
    rows: tuple[RecipeResult, ...]
    steps: tuple[Step, ...]
    receipt: dict[str, Any]


class CaseVerdict(Struct, frozen=True, kw_only=True):
    """A case that was run. `missing`: expected and not sent; `extra`: sent although none was to be."""

    case: ToolCaseRow
    sent: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]

    @property
    def is_passed(self) -> bool:
        """Tell whether the message got what it must."""
        return not self.missing and not self.extra


class ToolTrials(Struct, frozen=True, kw_only=True):
    """Plans messages that nobody sent."""

    runtime: Runtime
    tools: ToolsService
    roles: Roles
    assumptions: Assumptions

    async def ask(self, user: User, question: Question) -> MessageTrial:
        """The message as the first of a new conversation, under every recipe. UserError for a wrong question."""
        text = _checked(question)
        assumed = await self._assumed(user, question)
        role = await self.roles.role(assumed.user, assumed.role)
        ground = await self.tools.ground()
        asked = await self._opening(assumed.user, role, text, assumed.entry)
        asked = asked.with_given(encoder_skipped=ground.encoder_skipped)
        ready = self._ready(ground, asked, is_assumed=question.is_assumed)
        who = ToolSeeker(user=asked.user, role=role, mode=asked.given.mode, channel="chat")
        is_assumed = question.is_assumed
        absent = NOTHING_ABSENT if is_assumed else absent_tools(ground.snapshot, ready, ground.absent, who)
        persona = await self.roles.persona(assumed.user)
        lay = partial(planned, snapshot=ground.snapshot, ready=ready, persona=persona, absent=absent)
        told = f"{assumed.sentence} {in_words(assumed.entry.profile)}"
        return await asyncio.to_thread(self._trial, asked, lay, question.recipe, told)

    async def cases(self) -> Sequence[ToolCaseRow]:
        """The kept cases, oldest first."""
        return await self.runtime.db.repository(ToolCasesRepository).all()

    async def add_case(self, user: User, question: Question, tools: str) -> ToolCaseRow:
        """Keep a message with the tools it must be given, names apart by blanks or commas; none = it must get none."""
        text, names = _checked(question), tuple(dict.fromkeys(tools.replace(",", " ").split()))
        user.must_be_admin(ONLY)
        unknown = [name for name in names if self.runtime.registry.get(name) is None]
        if unknown:
            raise UserError(f"There is no tool {unknown[0]!r}.", field="tools")
        rank = (await self._assumed(user, question)).user.rank
        async with self.runtime.db.transaction() as repository:
            if len(await repository(ToolCasesRepository).all()) >= CASES_MAX:
                raise UserError(f"{CASES_MAX} messages is the limit. Remove one first.", field="text")
            case = await repository(ToolCasesRepository).add(text, question.role, rank, names, user.id)
            await repository(AuditRepository).add(user.id, "tool.case_added", case.id, {"tools": list(names)})
        return case

    async def remove_case(self, user: User, case_id: str) -> None:
        """Forget a case; NotFound when there is none."""
        user.must_be_admin(ONLY)
        async with self.runtime.db.transaction() as repository:
            await repository(ToolCasesRepository).remove(case_id)
            await repository(AuditRepository).add(user.id, "tool.case_removed", case_id)

    async def try_cases(self, user: User, recipe: str, *, is_assumed: bool = False) -> tuple[CaseVerdict, ...]:
        """Every case under this recipe."""
        if recipe not in RECIPES:
            raise UserError(f"There is no recipe {recipe!r}.", field="recipe")
        ground = await self.tools.ground()
        found = []
        for case in await self.cases():
            asked = await self.asked(user, case.role, case.rank, case.text)
            asked = asked.with_given(recipe=recipe, encoder_skipped=ground.encoder_skipped)
            ready = self._ready(ground, asked, is_assumed=is_assumed)
            made = await asyncio.to_thread(planned, asked, ground.snapshot, ready, "")
            found.append(_verdict(case, made))
        return tuple(found)

    async def asked(self, user: User, role_name: str, rank: Rank, text: str) -> PlanRequest:
        """The planner's inputs for a first message of this user, were they of this rank."""
        somebody = replace(user, rank=rank)
        role = await self.roles.role(user, role_name)  # it may be gone by now: then it has no tools
        entry = (await self.assumptions.models.registry(user)).first(role)
        profile = (await self.assumptions.profiles.profile_of(user, entry)).profile
        return await self._opening(somebody, role, text, replace(entry, profile=profile))

    async def people(self) -> tuple[str, ...]:
        """Return whose rights and settings a message can be tried with."""
        return tuple(person.name for person in await self.assumptions.accounts.users())

    async def models_of(self, user: User, person: str) -> tuple[str, ...]:
        """The models to try it for: those of this person, "" for who asks; none where there is no such person."""
        whose = next((one for one in await self.assumptions.accounts.users() if one.name == person), None)
        if person and whose is None:
            return ()
        return tuple(entry.name for entry in (await self.assumptions.models.shown(whose or user)).entries)

    async def _assumed(self, user: User, question: Question) -> Assumed:
        return await self.assumptions.of(
            Whom(
                user=question.person or user.name,
                rank=question.rank or None,
                role=question.role,
                mode="auto",
                model=question.model,
                profile=question.profile,
            )
        )

    async def _opening(self, user: User, role: Role, text: str, entry: ModelEntry) -> PlanRequest:
        asked = self.tools.opening(user, role, text, entry=entry)
        return asked.with_given(skills=await self.tools.skills.skills(user))

    def _ready(self, ground: PlanGround, asked: PlanRequest, *, is_assumed: bool) -> tuple[str, ...]:
        """Name what is ready for this person in this role, or would be if every tool that is on were set up."""
        if is_assumed:
            return tuple(name for name in self.runtime.registry.tools if name not in ground.settings.off)
        return self.tools.ready_for(ground, asked.user, asked.role.name)

    def _trial(
        self, asked: PlanRequest, lay: Callable[[PlanRequest], PlannedRound], recipe: str, told: str
    ) -> MessageTrial:
        """Off the event loop: plans, counts and times."""
        made = {name: lay(asked.with_given(recipe=name)) for name in RECIPE_NAMES}
        chosen = made[recipe]
        rows = tuple(self._row(name, each) for name, each in made.items())
        return MessageTrial(told=told, rows=rows, steps=steps(chosen.given), receipt=chosen.receipt)

    def _row(self, name: str, made: PlannedRound) -> RecipeResult:
        started_s = self.runtime.ticks_s()
        plan(made.given)  # once more: by now its search structures stand
        took_s = self.runtime.ticks_s() - started_s
        receipt = made.receipt
        total = receipt["total_tokens"]
        return RecipeResult(
            recipe=name,
            sent=tuple(receipt["sent"]),
            tokens=receipt["tokens"],
            share=receipt["tokens"] / total if total else 0.0,
            ms=took_s * 1000,
        )


def _verdict(case: ToolCaseRow, made: PlannedRound) -> CaseVerdict:
    sent = tuple(item["name"] for item in made.receipt["sent"] if item["category"] != META)
    return CaseVerdict(
        case=case,
        sent=sent,
        missing=tuple(name for name in case.tools if name not in sent),
        extra=() if case.tools else sent,
    )


def _checked(question: Question) -> str:
    """The message; UserError for an empty or endless one, and for what does not exist."""
    text = question.text.strip()
    if not text:
        raise UserError("Write a message to try.", field="text")
    if len(text) > TEXT_MAX:
        raise UserError(f"That is too long: at most {TEXT_MAX:,} characters.", field="text")
    if question.recipe not in RECIPES:
        raise UserError(f"There is no recipe {question.recipe!r}.", field="recipe")
    if question.rank and question.rank not in get_args(Rank):
        raise UserError(f"There is no rank {question.rank!r}.", field="rank")
    return text
