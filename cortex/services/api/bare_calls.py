"""A request that brings its own tools: one model call, passed through within the token's budget. It is no turn.

Nothing of it is kept but its line in the ledger; the program runs its tools itself.
"""

import asyncio
from dataclasses import dataclass
from typing import Literal

from cortex.base.ids import new_id
from cortex.base.turn import Reply
from cortex.ports.loop import Request
from cortex.services.api.answers import WORKING_S, Finished, Said, Tell, Voice, Working
from cortex.services.api.requests import ChatRequest, choice_of, passed_on, tools_of
from cortex.services.api.tokens import STOPPED, ApiTokens, Caller
from cortex.services.models.asking import ask
from cortex.services.runtime import Runtime
from cortex.services.turns.lone_calls import LoneCall, LoneCalls
from cortex.storage.api_tokens import ApiTokensRepository
from cortex.storage.halts import HaltsRepository
from cortex.storage.rounds import RoundsRepository

HALT_LOOK_S = 2.0
LOOKS_A_SIGN = round(WORKING_S / HALT_LOOK_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class BareCalls:
    """Passes requests through."""

    runtime: Runtime
    tokens: ApiTokens
    calls: LoneCalls

    async def take(self, caller: Caller, request: ChatRequest) -> tuple[LoneCall, Request]:
        """Note the request; what is sent to the model. UserError; NotAllowed, Throttled, Busy."""
        system, messages = passed_on(request)
        sent = Request(
            system=system,
            messages=messages,
            tools=tools_of(request),
            tool_choice=choice_of(request),
            parallel_calls=request.parallel_tool_calls is not False,
            max_output_tokens=request.max_completion_tokens or request.max_tokens,
        )
        call = LoneCall(id=f"api:{new_id()}", role=caller.token.role)
        async with self.runtime.db.transaction(caller.user.id) as repository:
            await self.tokens.must_be_open(repository, caller)
            await repository(ApiTokensRepository).take(call.id, caller.token.id, "", request.asked_model)
            await repository(RoundsRepository).begin_alone(call.id, role=call.role, channel=call.channel)
        return call, sent

    async def answer(self, caller: Caller, call: LoneCall, sent: Request, model: str, tell: Tell) -> Finished:
        """Tell the model's answer as it comes, to its end. A stop of all work ends it, and so does a cancel."""
        admitted = await self.calls.admit(caller.user, call, sent, model)
        if admitted.refusal:
            return Finished(failure="quota", text=admitted.refusal)
        voice, tries, began_s = Voice(), dict[str, str](), self.runtime.ticks_s()

        async def on_delta(kind: Literal["text", "thinking"], text: str, attempt: int) -> None:
            if kind == "text":
                tries[str(attempt)] = tries.get(str(attempt), "") + text
                await tell(Said(voice.heard(str(attempt), tries[str(attempt)])))

        reply: Reply | None = None
        try:
            async with asyncio.TaskGroup() as group:
                asking = group.create_task(ask(admitted.links, sent, on_delta=on_delta, on_notice=_unseen))
                watching = group.create_task(self._watch(caller, asking, tell))
                asking.add_done_callback(lambda _: watching.cancel())
            reply = None if asking.cancelled() else asking.result()
        finally:
            ms = round((self.runtime.ticks_s() - began_s) * 1000)
            await self.calls.book(caller.user, call, reply or Reply(model=model), admitted.links, ms)
        if reply is None:
            return Finished(failure="stopped", text=STOPPED)
        if reply.message is not None and not voice.said and reply.message.text:
            await tell(Said(reply.message.text))
        return _finished(reply)

    async def _watch(self, caller: Caller, asking: asyncio.Task[Reply], tell: Tell) -> None:
        """Give a sign of life now and then; end the call when work is stopped or the token revoked."""
        looks = 0
        while not await self._is_over(caller):
            await asyncio.sleep(HALT_LOOK_S)
            looks += 1
            if looks % LOOKS_A_SIGN == 0:
                await tell(Working())
        asking.cancel()

    async def _is_over(self, caller: Caller) -> bool:
        """Whether work was stopped, or the token revoked, meanwhile."""
        async with self.runtime.db.read_transaction(caller.user.id) as repository:
            is_halted = await repository(HaltsRepository).of(caller.user.id) is not None
            return is_halted or caller.token.id not in {one.id for one in await repository(ApiTokensRepository).list()}


def _finished(reply: Reply) -> Finished:
    if reply.message is None:
        return Finished(usage=reply.usage, failure="model", text=reply.failure)
    calls = reply.message.calls
    finish: Literal["stop", "length", "tool_calls"] = "tool_calls" if calls else "stop"
    return Finished(
        finish="length" if reply.finish in ("length", "repeats") else finish, usage=reply.usage, calls=calls
    )


async def _unseen(_text: str) -> None:
    """A program hears of the answer alone."""
