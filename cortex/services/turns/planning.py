"""Plans the rounds of real turns, and shows what a draft would carry: gathers what `ToolsService` plans from.

Serves the loop as its `Planner`. Each planned round leaves a receipt with its row and in the log, and the planner's
memory with the conversation.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base import portable
from cortex.base.attachments import READERS, is_long
from cortex.base.messages import Picture
from cortex.base.model import OFFLINE, ModelEntry, no_tools
from cortex.base.role import ToolMode
from cortex.base.tokens import count_picture
from cortex.base.turn import Need, RoundPlan, Turn
from cortex.base.user import User
from cortex.ports.steps import is_first_life, step
from cortex.ports.stored_names import StepName
from cortex.ports.system import Discovered
from cortex.selection.discover import in_words
from cortex.selection.types import PlannerMemory
from cortex.selection.words.talk import is_small_talk
from cortex.services.accounts.accounts import Accounts
from cortex.services.budgets.budgets import Limit
from cortex.services.memory.recall import NOTHING, RecallReader, carried
from cortex.services.models import prices
from cortex.services.models.profiles import endpoint_of
from cortex.services.models.registry import gone_text
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.tools.plans import (
    PAST_TURNS,
    PlannedRound,
    PlanRequest,
    as_one,
    needed,
    opening,
    past_turns,
    request_tokens,
    set_to,
    with_so_far,
)
from cortex.services.tools.replays import recorded
from cortex.services.tools.tools import ToolsService
from cortex.services.turns.answer_writer import Row
from cortex.services.turns.attached import AttachedFiles
from cortex.services.turns.history import size_bytes
from cortex.services.turns.lacking import is_named_in
from cortex.services.turns.turn_context import TurnContext, TurnContexts
from cortex.storage.calls import CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.messages import by_turn
from cortex.storage.plans import PlansRepository, TextsRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import Reads, TurnsRepository

BYTES_A_TOKEN = 4
READ_CHARACTERS = 2_000  # of a message, where a search leans on it


class ChosenModels(Struct, frozen=True, kw_only=True):
    """The models that a round may ask, and why they are not those of before; or why there is none (`refusal`)."""

    names: tuple[str, ...] = ()
    text: str = ""
    refusal: str = ""

    @property
    def is_other(self) -> bool:
        """Tell whether it is not, or no longer, the model that was to answer."""
        return bool(self.refusal or self.text)


class DraftSettings(Struct, frozen=True, kw_only=True):
    """The settings of a draft besides text, mode and role.

    `model`: None for the conversation's. `rounds`: how many it may take, 0 = as usual; the last goes out without tools.
    `choices`: tool -> always | never, for a conversation that is not there yet. `attached`: ids of files.
    """

    model: str | None = None
    rounds: int = 0
    choices: Mapping[str, str] = field(default_factory=dict)
    attached: Sequence[str] = ()


AS_USUAL = DraftSettings()


class Planning(Struct, frozen=True, kw_only=True):
    """Implements the `Planner` port, and the page's preview."""

    runtime: Runtime
    contexts: TurnContexts
    tools: ToolsService
    recall: RecallReader
    files: AttachedFiles

    @step(StepName.PLAN)
    async def plan(self, turn: Turn, need: Need) -> RoundPlan:
        """The plan of this round, its receipt stored; a search for a missing tool that found none leaves no trace.

        A budget that is used up makes it a plan for another model, one without tools, or one with a refusal; so does
        a shared model that was taken back. An answer that would be asked for again stands instead.
        """
        context, limits = await self._context(turn, need)
        context = context if is_first_life.get() else await self._before(context, turn, need)
        chosen = await self._chosen(context, turn, need, limits)
        if need.missing and (chosen.is_other or await self._is_explained(turn, need.missing)):
            return RoundPlan(round=need.round, system="")
        if chosen.refusal:
            await self.runtime.db.repository(RoundsRepository, turn.user_id).refused(turn.id, need.round)
            return RoundPlan(round=need.round, system="", refusal=chosen.refusal)
        entry = context.model(chosen.names[0])
        planned = await self._planned(context, turn, need, entry, turn.mode)
        if need.missing and not planned.round.added:
            return planned.round
        budgets = self.contexts.budgets
        most = await self._most(turn, planned) if limits else 0
        admission = await budgets.admit(context.user, turn, limits, need.round, entry, most)
        if need.missing and admission.action != "go":
            await self.runtime.db.repository(RoundsRepository, turn.user_id).refused(turn.id, need.round)
            return RoundPlan(round=need.round, system="")
        if admission.action == "stop":
            return replace(planned.round, refusal=admission.text)
        if admission.action == "chat":
            planned = await self._planned(context, turn, need, entry, "chat")
        elif admission.action == "model":
            names, why = await budgets.open_models(context.user, limits, (admission.model,))
            if not names:
                return replace(planned.round, refusal=why)
            chosen, entry = replace(chosen, names=names), context.model(admission.model)
            planned = await self._planned(context, turn, need, entry, turn.mode)
        if chosen.names != turn.models:
            planned = replace(planned, round=replace(planned.round, models=chosen.names))
        limited = " ".join(text for text in (chosen.text, admission.text) if text)
        await self._keep(context.user, turn, need, planned, entry, limited)
        self.contexts.hold(turn.id, context.remembering(planned.memory))
        return planned.round

    async def _is_explained(self, turn: Turn, answer: str) -> bool:
        """Tell whether what is lacking is known, named by the answer or not set up: no other tool does in its place."""
        plans = await self.runtime.db.repository(PlansRepository, turn.user_id).of_turn(turn.id)
        return any("setup" in plan.receipt or is_named_in(answer, plan.receipt) for plan in plans)

    async def _context(self, turn: Turn, need: Need) -> tuple[TurnContext, Sequence[Limit]]:
        """The turn's context and limits, as far as they may have changed since the round before."""
        context = await self.contexts.context_of(turn)
        if need.round == 1:
            return context, context.limits
        async with self.runtime.db.one_view():
            is_still = not context.models.given or await self.contexts.models.is_given_still(
                context.user, context.models
            )
            if not is_still:
                context = await self.contexts.renewed(turn)
            # A limit that is set while a turn runs away stops it.
            return context, await self.contexts.budgets.limits(context.user, turn, context.role)

    async def _before(self, context: TurnContext, turn: Turn, need: Need) -> TurnContext:
        """The context as this round's plan found it, where a process died between its commit and the engine's note.

        Else the plan would hold for known what it is to bring: tools told behind the message, those of a rescue.
        """
        kept = await self.runtime.db.repository(PlansRepository, turn.user_id).of_turn(turn.id)
        memory = next((plan.given.get("memory") for plan in kept if plan.round == need.round), None)
        return context if memory is None else context.remembering(memory)

    async def _chosen(self, context: TurnContext, turn: Turn, need: Need, limits: Sequence[Limit]) -> ChosenModels:
        """The models that this round may ask, and what the person reads where that is not what it was."""
        gone = [name for name in turn.models if context.models.get(name) is None]
        before = context.borrowed if need.round == 1 and not gone else ""
        if before and context.models.get(before) is None:
            gone = [before]
        first = context.chain[0]
        if gone and need.round > 1 and first == OFFLINE.name:  # it never takes over what a model began
            return ChosenModels(refusal=gone_text(gone, ""))
        names, why = await self.contexts.budgets.open_models(context.user, limits, context.chain)
        if not names:
            return ChosenModels(refusal=why)
        told = [gone_text(gone, "" if names[0] == OFFLINE.name else names[0])] if gone else []
        if first not in names:
            told.append(f"Your share of {first} for today is used up: switching to {names[0]}.")
        return ChosenModels(names=names, text=" ".join(told))

    async def _most(self, turn: Turn, planned: PlannedRound) -> int:
        """Tokens that the request will hardly go beyond: as planned, or as long as the one before, and a quarter."""
        before = await self.runtime.db.repository(RoundsRepository, turn.user_id).at(turn.id, planned.round.round - 1)
        grown = before.input_tokens + before.output_tokens if before else 0
        return max(request_tokens(planned.receipt), grown) * 5 // 4

    async def _planned(
        self, context: TurnContext, turn: Turn, need: Need, entry: ModelEntry, mode: ToolMode
    ) -> PlannedRound:
        """The round as this model and mode would have it; nothing is stored."""
        asked = await self._asked(context, turn.text, mode, entry)
        if turn.job_id:  # each run of a job begins anew
            memory = asked.given.memory if need.round > 1 else PlannerMemory()
            asked = asked.with_given(past=(), memory=memory, history_tokens=0)
        asked = replace(asked, given=needed(asked.given, need)).with_given(
            channel=turn.channel,
            turn=turn.id,
            now=self._moment(turn, need).isoformat(),
            summary=turn.summary_id,
        )
        asked = _with_attached(asked, turn.pictures if entry.takes_pictures else (), turn.documents)
        asked = await self._with_heard(turn, asked, need) if need.heard else asked
        is_read_first = need.round == 1 or (need.heard and need.heard_at == need.round)
        if is_read_first and turn.channel == "chat" and not turn.is_tainted and not need.missing:
            asked = await self._with_facts(context, asked, turn.conversation_id, turn.id)
        return await self.tools.plan_on(context.ground, asked, context.persona)

    async def _with_facts(
        self, context: TurnContext, asked: PlanRequest, conversation_id: str | None, turn_id: str = ""
    ) -> PlanRequest:
        """With what is remembered of the person; a greeting asks for nothing, and costs no look."""
        is_asking = not is_small_talk(asked.given.message)
        known = await self.recall.recallable(context.user.id, conversation_id) if is_asking else NOTHING
        if not known.facts:
            return asked
        upto = context.summary.upto_ordinal if context.summary else 0
        shown = carried([row.message for row in context.stored if row.ordinal > upto])
        if turn_id and asked.given.round > 1:  # what this turn carried already
            plans = await self.runtime.db.repository(PlansRepository, context.user.id).of_turn(turn_id)
            ids = {fact["id"] for plan in plans for fact in plan.receipt.get("facts", ())}
            known = replace(known, facts=tuple(fact for fact in known.facts if fact.id not in ids))
        return replace(asked, facts=known.facts, facts_tokens=known.budget_tokens, carried=shown)

    async def _with_heard(self, turn: Turn, asked: PlanRequest, need: Need) -> PlanRequest:
        """With what was sent meanwhile as a message of its own, after all that the turn has done so far."""
        calls = await self.runtime.db.repository(CallsRepository, turn.user_id).of_turn(turn.id)
        used, given = [call.name for call in calls], asked.given
        return asked.with_given(
            message=as_one(need.heard),
            past=with_so_far(given.past, turn.text, used),
            found=tuple(dict.fromkeys((*given.found, *used))),
            history_tokens=given.history_tokens + len(turn.text.encode()) // BYTES_A_TOKEN,
        )

    async def _keep(
        self, user: User, turn: Turn, need: Need, planned: PlannedRound, entry: ModelEntry, limited: str
    ) -> None:
        """Store the receipt, its figures, the texts and the planner's memory; log, once, what limits or lacks."""
        receipt = planned.receipt
        if limited:
            receipt = {**receipt, "labels": {**receipt["labels"], "budget": limited}}
        payload = {"turn": turn.id, "round": need.round, "total": receipt["total"]}
        rows: list[Row] = [("selection", payload, turn.id)]
        given, texts = recorded(planned)
        async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
            kept = await repository(PlansRepository).of_turn(turn.id)
            earlier = [plan for plan in kept if plan.round < need.round]
            is_again = len(kept) > len(earlier)  # a plan that is made again says it once
            if limited and not is_again and not (earlier and earlier[-1].receipt["labels"].get("budget") == limited):
                rows.append(("notice", {"turn": turn.id, "level": "warn", "text": limited}, turn.id))
            await repository(TextsRepository).keep(*texts)
            await repository(PlansRepository).add(turn.id, need.round, receipt, given)
            if facts := planned.given.facts:  # read as a tool would have read them, ahead of the model's first word
                reads = Reads(outside=any(fact.is_tainted for fact in facts), private=True)
                await repository(TurnsRepository).add_reads(turn.id, reads)
            if self._has_foreign_words(planned):
                await repository(TurnsRepository).add_reads(turn.id, Reads(outside=True, private=False))
            await repository(RoundsRepository).planned(
                turn.id,
                need.round,
                receipt,
                request_tokens(receipt),
                entry.name,
                endpoint_of(entry),
                paid_by=entry.owner_id,
            )
            await repository(ConversationsRepository).save_selection_state(turn.conversation_id, planned.memory)
            await repository(ConversationsRepository).append(turn.conversation_id, rows)

    def _has_foreign_words(self, planned: PlannedRound) -> bool:
        """Tell whether the model is sent a tool in words of its server's; its short form has none."""
        tools = self.runtime.registry.tools
        sent = (tools.get(schema.name) for schema in planned.round.tools if schema.description.count("\n"))
        return any(tool is not None and tool.has_foreign_words for tool in sent)

    def _moment(self, turn: Turn, need: Need) -> datetime:
        """The turn's own time in its first round, which the user's message carries; the present later."""
        return datetime.fromisoformat(turn.now) if need.round == 1 else self.runtime.clock()

    async def preview(
        self,
        user: User,
        conversation_id: str | None,
        text: str,
        mode: ToolMode,
        *,
        role: str = "",
        composed: DraftSettings = AS_USUAL,
    ) -> dict[str, Any]:
        """The receipt that this draft would get as the next message; stores nothing, asks no model.

        What the attached files take is `attached_tokens` of the receipt; `asks`: as `prices.of_draft` has it.
        """
        pictures, documents = await self.files.of_draft(user.id, composed.attached)
        async with self.runtime.db.one_view():
            name = role or await self._role_of(user, conversation_id)
            context = await self.contexts.of_draft(user, conversation_id, name, composed.model)
            asked = await self._asked(context, text, mode, context.entry)
            if not context.conversation:
                asked = asked.with_given(
                    always=set_to(composed.choices, "always"), never=set_to(composed.choices, "never")
                )
            asked = await self._with_facts(context, asked, conversation_id)
            asked = asked.with_given(is_last=composed.rounds == 1)
        await self.runtime.db.end_view()
        pictures = pictures if context.entry.takes_pictures else ()
        planned = await self.tools.plan_on(context.ground, _with_attached(asked, pictures, documents), context.persona)
        attached = _attached_tokens(pictures, documents)
        asks = await prices.of_draft(context.entry, request_tokens(planned.receipt))
        return {**planned.receipt, "attached_tokens": attached, "asks": asks}

    async def _role_of(self, user: User, conversation_id: str | None) -> str:
        """The conversation's role; the default one for a new conversation."""
        if conversation_id is None:
            return "orchestrator"
        return (await self.runtime.db.repository(ConversationsRepository, user.id).get(conversation_id)).role

    async def _asked(self, context: TurnContext, text: str, mode: ToolMode, entry: ModelEntry) -> PlanRequest:
        """The planner's inputs for this model; one that takes no tools gets none."""
        past, conversation = by_turn(context.stored), context.conversation
        is_first = entry.name == context.entry.name
        profile = (
            context.profile if is_first else (await self.contexts.profiles.profile_of(context.user, entry)).profile
        )
        asked = opening(context.user, context.role, text, self.runtime.clock()).with_given(
            mode=mode if entry.tools else "chat",
            past=past_turns([messages for _, messages in past[-PAST_TURNS:]]),
            profile=profile,
            window_tokens=entry.request_tokens,
            model=entry.name,
            history_tokens=size_bytes(past) // BYTES_A_TOKEN,
            skills=context.skills,
        )
        if conversation:
            asked = asked.with_given(
                memory=portable.read(PlannerMemory, conversation.selection_state),
                recipe=conversation.recipe or context.role.recipe,
                always=set_to(conversation.tool_choices, "always"),
                never=set_to(conversation.tool_choices, "never"),
            )
        return replace(asked, no_tools=no_tools(entry) if mode != "chat" else {}, left_out=entry.left_out)


def _with_attached(asked: PlanRequest, pictures: Sequence[Picture], documents: Sequence[str]) -> PlanRequest:
    """With what is attached to the message: about what the request grows by, and the tools that read on."""
    asked = asked.with_given(history_tokens=asked.given.history_tokens + _attached_tokens(pictures, documents))
    if not is_long(documents):
        return asked
    # The words on a long text name these tools: they go along.
    return asked.with_given(found=(*asked.given.found, *READERS))


def _attached_tokens(pictures: Sequence[Picture], documents: Sequence[str]) -> int:
    return sum(len(text.encode()) for text in documents) // BYTES_A_TOKEN + sum(map(count_picture, pictures))


class Finder(Struct, frozen=True, kw_only=True):
    """Implements the `Discovery` port for one user: what `tools_discover` finds is what the turn may use."""

    runtime: Runtime
    accounts: Accounts
    tools: ToolsService
    roles: Roles
    user_id: str

    async def discover(self, turn_id: str, query: str) -> Discovered:
        """Up to five permitted tools that fit, or the domains that exist."""
        async with self.runtime.db.one_view():
            user = await self.accounts.user(self.user_id)
            turns = self.runtime.db.repository(TurnsRepository, user.id)
            turn = await turns.get(turn_id)
            before = await turns.at(turn.conversation_id, turn.ordinal - 1)
            earlier = before.text if before and not before.is_dropped else ""
            conversation = await self.runtime.db.repository(ConversationsRepository, user.id).get(turn.conversation_id)
            role = await self.roles.of_turn(user, turn)
        return await self.tools.discover(
            user,
            role,
            in_words(query, (turn.text[:READ_CHARACTERS], earlier[:READ_CHARACTERS])),
            channel=turn.channel,
            mode=turn.mode,
            memory=conversation.selection_state,
            never=conversation.never,
        )
