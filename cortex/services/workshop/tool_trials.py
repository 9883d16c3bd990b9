"""Messages tried out for the Tools page: under every recipe side by side, and as cases with the tools they must get.

Asks no model; stores nothing but the cases. The effect of a change of words is `services/workshop/tool_effects.py`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from cortex.base.errors import NotAllowed, UserError
from cortex.base.user import Rank, User
from cortex.selection.pipeline import plan
from cortex.selection.recipes import RECIPES
from cortex.selection.steps import Step, steps
from cortex.selection.types import META
from cortex.services.models.models import Models
from cortex.services.models.profiles import Profiles
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.tools.plans import PlannedRound, PlanRequest, planned
from cortex.services.tools.tools import PlanGround, ToolsService
from cortex.storage.audit import AuditRepository
from cortex.storage.tool_cases import ToolCaseRow as ToolCaseRow
from cortex.storage.tool_cases import ToolCasesRepository

TEXT_MAX = 4_000
CASES_MAX = 500
RECIPE_NAMES = tuple(RECIPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A message to try: as whom, in which role, which recipe to explain. `is_assumed`: as if every tool were set up."""

    text: str
    role: str = "orchestrator"
    rank: Rank = "admin"
    recipe: str = "cortex"
    is_assumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeResult:
    """What a recipe makes of a message: the receipt's tools, tokens a round, their share of all, the time to choose."""

    recipe: str
    sent: tuple[dict[str, Any], ...]
    tokens: int
    share: float
    ms: float

    @property
    def names(self) -> tuple[str, ...]:
        """The tools without those that find and call others."""
        return tuple(item["name"] for item in self.sent if item["category"] != META)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTrial:
    """Every recipe, and one of them step by step with its receipt."""

    rows: tuple[RecipeResult, ...]
    steps: tuple[Step, ...]
    receipt: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseVerdict:
    """A case that was run. `missing`: expected and not sent; `extra`: sent although none was to be."""

    case: ToolCaseRow
    sent: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]

    @property
    def is_passed(self) -> bool:
        """Whether the message got what it must."""
        return not self.missing and not self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTrials:
    """Plans messages that nobody sent."""

    runtime: Runtime
    tools: ToolsService
    roles: Roles
    models: Models
    profiles: Profiles

    async def ask(self, user: User, question: Question) -> MessageTrial:
        """The message as the first of a new conversation, under every recipe. UserError for a wrong question."""
        text = _checked(question)
        asked = await self.asked(user, question.role, question.rank, text)
        ground, persona = await self.ground(is_assumed=question.is_assumed), await self.roles.persona(user)
        return await asyncio.to_thread(self._trial, asked, ground, persona, question.recipe)

    async def cases(self) -> Sequence[ToolCaseRow]:
        """The kept cases, oldest first."""
        return await self.runtime.db.repository(ToolCasesRepository).all()

    async def add_case(self, user: User, question: Question, tools: str) -> ToolCaseRow:
        """Keep a message with the tools it must be given, names apart by blanks or commas; none = it must get none."""
        text, names = _checked(question), tuple(dict.fromkeys(tools.replace(",", " ").split()))
        _admin(user)
        unknown = [name for name in names if self.runtime.registry.get(name) is None]
        if unknown:
            raise UserError(f"There is no tool {unknown[0]!r}.", field="tools")
        async with self.runtime.db.transaction() as repository:
            if len(await repository(ToolCasesRepository).all()) >= CASES_MAX:
                raise UserError(f"{CASES_MAX} messages is the limit. Remove one first.", field="text")
            case = await repository(ToolCasesRepository).add(text, question.role, question.rank, names, user.id)
            await repository(AuditRepository).add(user.id, "tool.case_added", case.id, {"tools": list(names)})
        return case

    async def remove_case(self, user: User, case_id: str) -> None:
        """Forget a case; NotFound when there is none."""
        _admin(user)
        async with self.runtime.db.transaction() as repository:
            await repository(ToolCasesRepository).remove(case_id)
            await repository(AuditRepository).add(user.id, "tool.case_removed", case_id)

    async def try_cases(self, user: User, recipe: str, *, is_assumed: bool = False) -> tuple[CaseVerdict, ...]:
        """Every case under this recipe."""
        if recipe not in RECIPES:
            raise UserError(f"There is no recipe {recipe!r}.", field="recipe")
        ground = await self.ground(is_assumed=is_assumed)
        found = []
        for case in await self.cases():
            asked = await self.asked(user, case.role, case.rank, case.text)
            made = await asyncio.to_thread(planned, replace(asked, recipe=recipe), ground.snapshot, ground.ready, "")
            found.append(_verdict(case, made))
        return tuple(found)

    async def asked(self, user: User, role_name: str, rank: Rank, text: str) -> PlanRequest:
        """The planner's inputs for a first message of this user, were they of this rank."""
        somebody = replace(user, rank=rank)
        role = await self.roles.role(user, role_name)
        entry = await self.models.entry(user, (await self.models.names(user, role))[0])
        profile = (await self.profiles.profile_of(user, entry)).profile
        return PlanRequest(
            user=somebody, role=role, message=text, profile=profile, model=entry.name, now=self.runtime.clock()
        )

    async def ground(self, *, is_assumed: bool) -> PlanGround:
        """What plans stand on here, or would if every tool that is on were set up."""
        ground = await self.tools.ground()
        if not is_assumed:
            return ground
        return replace(
            ground, ready=tuple(name for name in self.runtime.registry.tools if name not in ground.settings.off)
        )

    def _trial(self, asked: PlanRequest, ground: PlanGround, persona: str, recipe: str) -> MessageTrial:
        """Off the event loop: plans, counts and times."""
        made = {
            name: planned(replace(asked, recipe=name), ground.snapshot, ground.ready, persona) for name in RECIPE_NAMES
        }
        chosen = made[recipe]
        rows = tuple(self._row(name, each) for name, each in made.items())
        return MessageTrial(rows=rows, steps=steps(chosen.given), receipt=chosen.receipt)

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
    if question.rank not in get_args(Rank):
        raise UserError(f"There is no rank {question.rank!r}.", field="rank")
    return text


def _admin(user: User) -> None:
    if not user.is_admin:
        raise NotAllowed("Only an admin can save checks.")
