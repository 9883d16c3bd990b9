"""Calls that an admin makes by hand on a tool's page: in the admin's own name, through the gate, recorded as any call.

Each is a turn of its own without a model call, in a conversation that the sidebar leaves out.
"""

import json

from msgspec import Struct

from cortex.agent.arguments import CheckedCall, check, digest, visible
from cortex.base.errors import NotFound, UserError
from cortex.base.ids import new_id
from cortex.base.messages import ToolCall
from cortex.base.user import User
from cortex.selection.types import META
from cortex.services.chat.chat import Chat
from cortex.services.chat.transcript_views import ApprovalCard, CallCard, TurnView, turn_of
from cortex.services.runtime import Runtime
from cortex.services.tools.settings import asks_itself
from cortex.services.tools.tools import ToolsService
from cortex.services.turns.answer_writer import opening_rows
from cortex.services.turns.queue import TurnQueue
from cortex.storage.audit import AuditRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnRow, TurnsRepository

PATIENCE_S = 3.0
WIRE_ID = "hand"


class CallResult(Struct, frozen=True, kw_only=True):
    """A call by hand as it stands. `call` None = not decided yet."""

    key: str
    conversation_id: str
    turn: TurnView
    call: CallCard | None
    asks: bool

    @property
    def is_running(self) -> bool:
        """Tell whether it has not ended."""
        return self.turn.state != "ended"


class TrialCall(Struct, frozen=True, kw_only=True):
    """A call that can be made. `sure`: what to hand back with a yes, "" where none is needed before it runs."""

    arguments: str
    risk: str
    detail: str
    sure: str


class CallTrials(Struct, frozen=True, kw_only=True):
    """Checks, starts and shows calls by hand; only admins make them."""

    runtime: Runtime
    tools: ToolsService
    chat: Chat
    turns: TurnQueue

    async def why_not(self, name: str) -> str:
        """Why nobody can call this tool here, or ""; NotFound for an unknown one."""
        tool = self.runtime.registry.get(name)
        if tool is None:
            raise NotFound(f"There is no tool {name!r}.")
        if tool.category == META:
            return "It finds and calls the other tools. Try one of those."
        setup = (await self.tools.setups()).get(name)
        if setup:
            return setup.text
        return "It is switched off. Switch it on to try it." if name in (await self.tools.in_force()).off else ""

    async def ask(self, user: User, name: str, role: str, arguments: str) -> TrialCall:
        """The call as the gate will see it; UserError says why it cannot be made."""
        checked = await self._checked(user, name, role, arguments)
        return TrialCall(
            arguments=checked.canonical,
            risk=checked.risk,
            detail=visible(checked),
            sure=digest(name, checked.canonical) if await self._needs_word(checked) else "",
        )

    async def start(self, user: User, name: str, role: str, arguments: str) -> str:
        """Make the call: the key of its turn, which runs on whoever looks. Call `ask` first."""
        checked = await self._checked(user, name, role, arguments)
        turn_id = f"turn:{new_id()}"
        async with self.runtime.db.transaction(user.id) as repository:
            made = await repository(ConversationsRepository).create(
                role, "auto", f"Tried: {name}", source="try", is_title_tainted=False
            )
            text = f"Call {name} with {json.dumps(checked.said, ensure_ascii=False)}"
            row = await repository(TurnsRepository).create(
                NewTurn(
                    turn_id,
                    made.id,
                    text,
                    mode="auto",
                    role=role,
                    state="running",
                    is_tainted=False,
                    reads=NOTHING_READ,
                )
            )
            await repository(ConversationsRepository).append(made.id, opening_rows(row))
            await repository(AuditRepository).add(user.id, "tool.tried", name, {"turn": turn_id})
        await self.turns.start_call(row, ToolCall(id=WIRE_ID, name=name, arguments=checked.canonical))
        return turn_id.removeprefix("turn:")

    async def result(self, user: User, name: str, key: str, *, patience_s: float = 0.0) -> CallResult:
        """The call as it stands, once it has ended or asks, or after so long; NotFound for another tool's or user's."""
        row = await self.runtime.db.repository(TurnsRepository, user.id).get(turn_of(key))
        ends_s, counter = self.runtime.ticks_s() + patience_s, -1
        while True:
            tried = await self._look(user, row, key)
            if tried.call is not None and tried.call.name != name:
                raise NotFound("This call of this tool does not exist.")
            left_s = ends_s - self.runtime.ticks_s()
            if not tried.is_running or tried.asks or left_s <= 0:
                return tried
            counter = await self.runtime.hub.changed(row.conversation_id, counter, left_s)

    async def _look(self, user: User, row: TurnRow, key: str) -> CallResult:
        page = await self.chat.log(user, row.conversation_id)
        turn = page.folded().turn(row.id)
        if turn is None or row.ordinal != 1 or page.conversation.source != "try":
            raise NotFound("This call does not exist.")
        cards = [part for part in turn.parts if isinstance(part, CallCard)]
        return CallResult(
            key=key,
            conversation_id=row.conversation_id,
            turn=turn,
            call=cards[0] if cards else None,
            asks=any(isinstance(part, ApprovalCard) for part in turn.parts),
        )

    async def _checked(self, user: User, name: str, role: str, arguments: str) -> CheckedCall:
        user.must_be_admin("call tools manually")
        if why := await self.why_not(name):
            raise UserError(why)
        if await self.turns.halt_of(user.id):
            raise UserError("Everything is stopped: no tool runs until work is resumed.")
        permitted = await self.tools.permitted(user, role)
        if name not in permitted:
            raise UserError(f"The role {role} may not use {name}. Choose another role.", field="role")
        checked = check(self.runtime.registry, permitted, ToolCall(id=WIRE_ID, name=name, arguments=arguments))
        if isinstance(checked, str):
            raise UserError(checked)
        return checked

    async def _needs_word(self, checked: CheckedCall) -> bool:
        """Tell whether a yes is asked for: it acts outside one's own things, and the gate will not ask by itself."""
        tool = checked.tool
        is_asked = asks_itself(tool) or checked.risk == "high" or tool.name in (await self.tools.in_force()).asks_first
        return checked.risk != "low" and not is_asked and (tool.effect == "write" or tool.sends_out)
