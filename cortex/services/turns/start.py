"""Opens a turn: reads once, inside a step, everything the loop may depend on, and fixes it in a `Turn`."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.messages import ToolCall
from cortex.base.turn import LIVING, LOOP_ENDS, Turn
from cortex.base.user import User
from cortex.ports.steps import step
from cortex.ports.stored_names import StepName
from cortex.services.models.registry import place_of
from cortex.services.roles.roles import max_rounds
from cortex.services.runtime import Runtime
from cortex.services.turns.answer_writer import Row
from cortex.services.turns.attached import AttachedFiles
from cortex.services.turns.done_before import changes, for_model, for_person
from cortex.services.turns.history import ConversationHistory
from cortex.services.turns.plain_commands import may_be_order
from cortex.services.turns.set_aside import given_call
from cortex.services.turns.turn_context import TurnContext, TurnContexts
from cortex.storage.approvals import ApprovalsRepository
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.summaries import SummariesRepository
from cortex.storage.turns import TurnRow, TurnsRepository

NOT_DONE = "(Cortex: calls that waited for the user's approval are settled, and were not run:)"

INSTRUCTED = "The program that passes this message on tells you:\n{text}"


class TurnStart(Struct, frozen=True, kw_only=True):
    """Makes `Turn` values from stored rows."""

    runtime: Runtime
    contexts: TurnContexts
    history: ConversationHistory
    files: AttachedFiles

    @step(StepName.OPEN)
    async def start_turn(self, user_id: str, turn_id: str) -> Turn | None:
        """The turn as the loop needs it, marked as running, here and in the log; None when it has ended already."""
        async with self.runtime.db.one_view():
            user = await self.contexts.accounts.user(user_id)
            row = await self.runtime.db.repository(TurnsRepository, user_id).get(turn_id)
            if row.state in LOOP_ENDS or row.is_dropped:
                return None
            await self.contexts.roles.must_be_there(user, row.role)
            context = await self.contexts.read(user, row, chosen=row.model)
            replaced = await self._replaced(row, context)
            done = await self._done(user_id, list(replaced))
            # Who has an answer made anew asks a model this time.
            given, is_alone, unheard = await self._answers(row, context)
            is_said = row.channel == "chat" and not row.attachments and row.text not in replaced.values()
            is_order = is_said and may_be_order(row, context)
            latest = None
            if not row.job_id:
                latest = await self.runtime.db.repository(SummariesRepository, user_id).latest(
                    row.conversation_id, row.ordinal
                )
        entry = context.entry
        rounds, origin = max_rounds(self.runtime.settings.max_rounds, entry, context.role, row.max_rounds, row.job_id)
        if not await self._record_start(row, context, rounds, origin, done):
            return None
        context = replace(await self._looked(user, row, context), summary=latest)
        entry = context.entry
        if not row.job_id:
            context = replace(context, summary=await self.history.summarise(context, row))
        self.contexts.hold(turn_id, context)
        pictures, documents = await self.files.of(row) if row.attachments else ((), ())
        if context.instructions:
            documents = (*documents, INSTRUCTED.format(text=context.instructions))
        before = for_model(done, is_from_outside=row.is_tainted or row.has_read_outside) if done else ""
        return Turn(
            id=row.id,
            conversation_id=row.conversation_id,
            user_id=user_id,
            role=context.role.name,
            channel=row.channel,
            text=row.text,
            mode=row.mode,
            max_rounds=rounds,
            max_rounds_from=origin,
            models=_asked(row, context),
            window_tokens=entry.request_tokens,
            now=self.runtime.clock().isoformat(),
            is_tainted=row.is_tainted,
            parallel_calls=entry.parallel_calls,
            ordinal=row.ordinal,
            summary_id=context.summary.id if context.summary else "",
            job_id=row.job_id,
            is_order=is_order,
            done_before="\n".join(filter(None, (before, unheard))),
            pictures=pictures,
            documents=documents,
            given=given,
            is_given_alone=is_alone,
        )

    async def _looked(self, user: User, row: TurnRow, context: TurnContext) -> TurnContext:
        """The context as the model's own server has it by now, where it was looked at for the first time."""
        if not await self.contexts.models.looks.ahead(user, context.entry):
            return context
        async with self.runtime.db.one_view():
            return await self.contexts.read(user, row, chosen=row.model)

    async def _answers(self, row: TurnRow, context: TurnContext) -> tuple[ToolCall | None, bool, str]:
        """The call that the turn begins with, whether no model goes on with it, and what became of others since.

        The model was told of those that they wait; what it was told then stays as it is.
        """
        if row.job_id or row.channel == "api" or not context.stored:
            return None, False, ""
        async with self.runtime.db.read_transaction(row.owner_id) as repository:
            asked = await repository(ApprovalsRepository).continued(row.id) if row.channel == "result" else None
            given = await given_call(repository, row) if asked else None
            is_alone = asked is not None and not await repository(RoundsRepository).of_turn(asked.turn_id)
            before = await repository(TurnsRepository).at(row.conversation_id, context.stored[-1].ordinal)
            since = before.created_at if before else row.created_at
            closed = await repository(ApprovalsRepository).closed_late(row.conversation_id, since, row.created_at)
        lines = [
            f"- {one.tool}: {'the user denied it' if one.state == 'denied' else 'nobody answered'}" for one in closed
        ]
        return given, is_alone, "\n".join([NOT_DONE, *lines]) if lines else ""

    async def _replaced(self, row: TurnRow, context: TurnContext) -> Mapping[str, str]:
        """The turns that were set aside for this one; asked for where some are missing ahead of it."""
        last = max((message.ordinal for message in context.stored), default=0)
        if row.ordinal - last <= 1:
            return {}
        return await self.runtime.db.repository(TurnsRepository, row.owner_id).replaced(row)

    async def _done(self, user_id: str, turn_ids: Sequence[str]) -> Sequence[CallRow]:
        if not turn_ids:
            return ()
        calls = await self.runtime.db.repository(CallsRepository, user_id).standing(turn_ids)
        return changes(self.runtime.registry, calls)

    async def _record_start(
        self, row: TurnRow, context: TurnContext, rounds: int, origin: str, done: Sequence[CallRow]
    ) -> bool:
        """The state and its log row, once: a re-run of the step finds the turn running and says nothing twice.

        False when the turn was ended, or taken into another one, since it was read.
        """
        entry = context.entry
        async with self.runtime.transaction_then_notify(row.owner_id, row.conversation_id) as repository:
            turns = repository(TurnsRepository)
            if await turns.move(row.id, "running", only_from=("queued",), models=(entry.name,)) is None:
                return (await turns.get(row.id)).state in LIVING
            has_picture = any(file.is_picture for file in row.attachments)
            payload = {
                "turn": row.id,
                "role": context.role.name,
                "model": entry.name,
                "place": place_of(entry),
                "max_rounds": rounds,
                "max_rounds_from": origin,
                **({"is_blind": True} if has_picture and not entry.takes_pictures else {}),
                **({"is_slow": True} if entry.is_slow else {}),
            }
            rows: list[Row] = [("turn.start", payload, row.id)]
            if done:
                rows.append(
                    (
                        "notice",
                        {"turn": row.id, "level": "info", "text": for_person(self.runtime.registry, done)},
                        row.id,
                    )
                )
            await repository(ConversationsRepository).append(row.conversation_id, rows)
            return True


def _asked(row: TurnRow, context: TurnContext) -> tuple[str, ...]:
    """The models to ask, in order. One that was chosen and is gone stands ahead: the first plan says that it is."""
    is_gone = row.model and context.models.get(row.model) is None
    return (row.model, *context.chain) if is_gone else context.chain
