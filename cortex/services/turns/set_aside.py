"""A call that waits for its person when its turn is over: it goes on, or is asked for again, in a turn of its own.

A turn is set aside when its person goes on talking (`queue.py: give_way`, `end.py: TurnEnd.set_aside`): its call still
waits, and what is answered later is carried out in a turn of its own, through the whole gate, under that very answer.
"""

from cortex.base.errors import Conflict
from cortex.base.ids import derived_id
from cortex.base.messages import ToolCall
from cortex.base.role import BY_TOKEN
from cortex.base.turn import GIVEN
from cortex.services.turns.answer_writer import Row, message_row
from cortex.services.turns.approval_log import answer_payload, end_call
from cortex.storage.api_tokens import ApiTokensRepository
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository
from cortex.storage.calls import CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.halts import HaltsRepository
from cortex.storage.turns import NewTurn, TurnRow, TurnsRepository

# Read by the model, in its person's voice, and by people in an export. No argument of the call: what stands here counts
# for the choice of tools.
ALLOWED = "I have now allowed the call that waited for my approval. It follows with its result: go on from there."
AGAIN = "Ask me again for the call that I did not answer in time. It follows: go on from its result."
GOES_ON = "Goes on below"


async def go_on(repository: Opener, row: ApprovalRow, *, is_again: bool = False) -> tuple[TurnRow, bool]:
    """A turn that begins with the call of this question, whose own turn is over; whether it waits behind another.

    Conflict where there is one already. It is marked with what the first one had read, whatever stands between, and is
    bounded by the token that the first one came with.
    """
    turns = repository(TurnsRepository)
    before = await turns.get(row.turn_id)
    made = await turns.create(
        NewTurn(
            f"turn:{derived_id(row.id, 'on')}",
            row.conversation_id,
            AGAIN if is_again else ALLOWED,
            mode=before.mode,
            role=before.role,
            channel="result",
            model=before.model,
            max_rounds=before.max_rounds,
            is_tainted=False,
            reads=await turns.reads(before),
        )
    )
    if before.channel in BY_TOKEN:
        await repository(ApiTokensRepository).go_on(before.id, made.id)
    if not await repository(ApprovalsRepository).continue_in(row.id, made.id):
        raise Conflict("This was asked again before. The new request is further down in this chat.")
    is_queued = await repository(HaltsRepository).of(made.owner_id) is not None or await turns.is_behind(made)
    if not is_again:
        await end_call(repository, row, "allowed", GOES_ON)
    words = f"{'Asked again' if is_again else 'You allowed'}: {row.verb}"
    rows: list[Row] = [message_row(made, is_queued, resumed=words)]
    if is_again:
        rows.insert(0, ("approval", answer_payload(row, "again"), row.turn_id))
    await repository(ConversationsRepository).append(row.conversation_id, rows)
    return made, is_queued


async def given_call(repository: Opener, turn: TurnRow) -> ToolCall | None:
    """The call that the turn begins with, None for one that begins with a model."""
    if turn.channel != "result":
        return None
    row = await repository(ApprovalsRepository).continued(turn.id)
    if row is None:
        return None
    call = await repository(CallsRepository).get(row.call_id)
    return ToolCall(id=GIVEN, name=call.name, arguments=call.arguments)
