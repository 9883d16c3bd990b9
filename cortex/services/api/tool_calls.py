"""Cortex's tools for a program that brings its own model: which there are within its token, and single calls of them.

Each call is a turn without a model call, through the same gate, questions and records as any other; those of a day
stand in one conversation, so that what one call brought counts for the next. Its arguments are text from outside,
unless the token says that the person typed them; then they may hold what the program was given on whatever day.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from cortex.agent.arguments import check
from cortex.agent.refusals import as_changed
from cortex.base.ids import derived_id, new_id
from cortex.base.messages import ToolCall
from cortex.base.zone import midnight
from cortex.selection.types import META
from cortex.services.api.answers import Tell, Working
from cortex.services.api.hearing import follow, left_open, waiting
from cortex.services.api.tokens import ApiTokens, Caller
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.tools.tools import ToolsService
from cortex.services.turns.answer_writer import opening_rows
from cortex.services.turns.queue import TurnQueue
from cortex.storage.api_tokens import ApiTokensRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import NewTurn, Reads, TurnRow, TurnsRepository

WIRE_ID = "program"
BROKEN = "The call was stopped before it ended."


class ProgramTool(Struct, frozen=True, kw_only=True):
    """A tool as a program sees it. `is_read`: it changes nothing here; `is_outward`: it reaches places outside."""

    name: str
    description: str
    parameters: dict[str, Any]
    is_read: bool
    is_risky: bool
    is_outward: bool


class CallAnswer(Struct, frozen=True, kw_only=True):
    """The result of a call."""

    text: str
    is_error: bool


class ProgramTools(Struct, frozen=True, kw_only=True):
    """The tools that a program's token reaches: to list and to call."""

    runtime: Runtime
    tokens: ApiTokens
    roles: Roles
    tools: ToolsService
    turns: TurnQueue

    async def list(self, caller: Caller) -> Sequence[ProgramTool]:
        """Return what the token reaches, by name."""
        found = [self.runtime.registry.tools[name] for name in sorted(await self._permitted(caller))]
        return [
            ProgramTool(
                name=tool.name,
                description=tool.full.description,
                parameters=tool.full.parameters,
                is_read=tool.effect == "read",
                is_risky=tool.risk == "high",
                is_outward=tool.sends_out or tool.reads_untrusted,
            )
            for tool in found
        ]

    async def call(
        self, caller: Caller, name: str, arguments: str, tell: Tell, *, ends_with_caller: bool
    ) -> CallAnswer:
        """Call a tool and wait for what it gives, or for its refusal. NotAllowed, Throttled, Busy.

        A call that asks waits for the person as long as the token says; where that is no time, it is left open.
        ends_with_caller: cancelled, it ends the call, which goes on otherwise.
        """
        permitted = await self._permitted(caller)
        checked = check(self.runtime.registry, permitted, ToolCall(id=WIRE_ID, name=name, arguments=arguments))
        if isinstance(checked, str):
            return CallAnswer(text=checked, is_error=True)
        call = ToolCall(id=WIRE_ID, name=checked.tool.name, arguments=checked.canonical)
        row, seq = await self._begin(caller, call)
        await self.turns.start_call(row, call)
        try:
            return await self._answer(row, seq, tell, waits=caller.token.wait_s > 0)
        except asyncio.CancelledError:
            if ends_with_caller:
                await self.turns.stop(row)
            raise

    async def _answer(self, row: TurnRow, seq: int, tell: Tell, *, waits: bool) -> CallAnswer:
        asking, changed, answer = "", "", CallAnswer(text=BROKEN, is_error=True)
        async for news in follow(self.runtime, row, seq):
            for event in news.events:
                asking = waiting(event, asking)
                words = "" if waits else left_open(event)
                if words and await self.turns.set_aside(row):
                    return CallAnswer(text=words, is_error=True)
                if event.kind == "tool.call" and event.payload.get("instead_of"):
                    changed = event.payload["arguments"]
                elif event.kind == "tool.result":
                    text = event.payload["text"]
                    text = as_changed(changed, text) if changed else text
                    answer = CallAnswer(text=text, is_error=event.payload["state"] != "ok")
                elif event.kind == "turn.end":
                    return answer
            if not news.events and not news.parts:
                await tell(Working(asking))
        raise AssertionError("a turn is followed to its end")

    async def _begin(self, caller: Caller, call: ToolCall) -> tuple[TurnRow, int]:
        """The call's turn, running, and the number of the log's row ahead of it."""
        day = midnight(self.runtime.clock(), caller.user.time_zone).date().isoformat()
        place = derived_id("mcp", caller.token.id, day)
        async with self.runtime.transaction_then_notify(caller.user.id, place) as repository:
            await self.tokens.must_be_open(repository, caller)
            made = await repository(ConversationsRepository).create(
                caller.token.role,
                "auto",
                f"Calls of {caller.token.name}, {day}",
                id=place,
                source="api",
                uses_memory=False,
                is_title_tainted=False,
            )
            is_outside = not caller.token.is_own_words
            # The first call of a day marks the rest of it.
            knows = is_outside and not made.seq and await repository(ApiTokensRepository).was_given(caller.token.id)
            row = await repository(TurnsRepository).create(
                NewTurn(
                    f"turn:{new_id()}",
                    place,
                    f"Call {call.name} with {call.arguments}",
                    mode="auto",
                    role=caller.token.role,
                    channel="api",
                    state="running",
                    is_tainted=is_outside,
                    reads=Reads(private=knows),
                )
            )
            await repository(ApiTokensRepository).take(row.id, caller.token.id, place, "")
            await repository(ConversationsRepository).append(place, opening_rows(row))
        return row, made.seq

    async def _permitted(self, caller: Caller) -> frozenset[str]:
        if caller.token.is_pass_through:  # it reaches the models alone
            return frozenset()
        role = await self.roles.within_token(
            caller.user, await self.roles.role(caller.user, caller.token.role), caller.token
        )
        ground = await self.tools.ground()
        found = self.tools.permitted_on(ground, caller.user, role, channel="api", mode="auto")
        return frozenset(name for name in found if self.runtime.registry.tools[name].category != META)
