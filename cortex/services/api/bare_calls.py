"""A request that is passed through: one model call within the token's budget, with nothing of Cortex's. It is no turn.

So it is with every request of a pass-through token, and with those of others that bring tools of their own. Nothing of
it is stored but its line in the ledger (`KeptAnswers` is in memory); the program runs its tools itself.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable
from functools import partial
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.ids import new_id
from cortex.base.json_text import parsed
from cortex.base.messages import Message, Opaque, Thinking, ToolCall, Usage, assistant, to_json
from cortex.base.model import page_of
from cortex.base.tokens import count, minified, wire_schema
from cortex.base.turn import Reply
from cortex.ports.loop import Request
from cortex.services.api.answers import WORKING_S, Anew, BrokenOff, Failure, Finished, Said, Tell, Thought, Working
from cortex.services.api.json_answers import refusal, wanted_by
from cortex.services.api.passed_provider import Heard, PassedProvider
from cortex.services.api.passing import choice_of, format_of, passed_on, pictures_in, tools_of, tuning_of
from cortex.services.api.pictures import ProgramPictures
from cortex.services.api.requests import ChatRequest
from cortex.services.api.tokens import STOPPED, ApiTokens, Caller
from cortex.services.models.asking import Link, ask
from cortex.services.runtime import Runtime
from cortex.services.turns.lone_calls import Admitted, LoneCall, LoneCalls
from cortex.storage.api_tokens import ApiTokensRepository
from cortex.storage.halts import HaltsRepository

HALT_LOOK_S = 2.0
LOOKS_A_SIGN = round(WORKING_S / HALT_LOOK_S)
# What of a request a server did not take (`Rejection.what`), with OpenAI's names of the field and of the fault.
REJECTED = {
    "window": ("messages", "context_length_exceeded"),
    "output": ("max_tokens", "invalid_value"),
    "tools": ("tools", "unsupported_value"),
    "schema": ("tools", "invalid_function_parameters"),
    "pictures": ("messages", "unsupported_value"),
    "parameter": ("", "unsupported_parameter"),
    "order": ("messages", "invalid_value"),
    "ids": ("messages", "invalid_value"),
    "filtered": ("messages", "content_filter"),
}


KEPT_MOST = 512
KEPT_CHARACTERS = 8_000_000  # of all of them


class KeptAnswers(Struct, frozen=True):
    """Answers with calls as models gave them: their reasoning goes back with the results, and clients drop it.

    In memory, by token, the ones used longest ago go first; after a restart a model gets what the program sends.
    """

    _kept: OrderedDict[tuple[str, tuple[ToolCall, ...]], tuple[Message, int]] = field(default_factory=OrderedDict)

    def keep(self, token_id: str, answer: Message) -> None:
        """Keep an answer that calls tools, where there is more to it than a client sends back."""
        if not answer.calls or not any(isinstance(part, Opaque | Thinking) for part in answer.parts):
            return
        self._kept[token_id, answer.calls] = answer, len(minified(to_json(answer)))
        held = sum(size for _, size in self._kept.values())
        while len(self._kept) > KEPT_MOST or held > KEPT_CHARACTERS:
            _, (_, size) = self._kept.popitem(last=False)
            held -= size

    def known(self, token_id: str, calls: tuple[ToolCall, ...]) -> Message | None:
        """The answer with these very calls."""
        found = self._kept.get((token_id, calls))
        if found is None:
            return None
        self._kept.move_to_end((token_id, calls))
        return found[0]


class BareCalls(Struct, frozen=True, kw_only=True):
    """Passes requests through."""

    runtime: Runtime
    tokens: ApiTokens
    calls: LoneCalls
    pictures: ProgramPictures
    _kept: KeptAnswers = field(default_factory=KeptAnswers)

    @staticmethod
    def passes(caller: Caller, request: ChatRequest) -> bool:
        """Tell whether this request is passed through: else it is Cortex that answers it, with its own tools."""
        return caller.token.is_pass_through or bool(request.tools) or request.has_tool_history

    async def take(self, caller: Caller, request: ChatRequest) -> tuple[LoneCall, Request]:
        """Note the request; what is sent to the model. BadRequest; NotAllowed, Throttled, Busy."""
        tools, choice = tools_of(request), choice_of(request)
        given = await self.pictures.read(pictures_in(request.messages))
        system, messages = passed_on(request, given.parts, lambda calls: self._kept.known(caller.token.id, calls))
        sent = Request(
            system=system,
            messages=messages,
            tools=tools,
            tool_choice=choice,
            parallel_calls=request.parallel_tool_calls,
            max_output_tokens=request.most_tokens,
            pictures=given.data,
            parameters=(*tuning_of(request), *format_of(request)),
        )
        call = LoneCall(id=f"api:{new_id()}", role=caller.token.role)
        await self.tokens.begin_call(caller, call, request.asked_model)
        return call, sent

    async def answer(self, caller: Caller, call: LoneCall, sent: Request, model: str, tell: Tell) -> Finished:
        """Tell the model's answer as it comes, to its end. A stop of all work ends it, and so does a cancel."""
        admitted = await self.calls.admit(caller.user, call, sent, model)
        if admitted.refusal:
            return Finished(failure="quota", text=admitted.refusal)
        links = _fitting(admitted, sent)
        if not links:
            await self.calls.book(caller.user, call, Reply(model=admitted.links[0].entry.name), admitted.links, 0)
            return await asyncio.to_thread(_unfit, admitted, sent)
        heard, telling, began_s = Heard(), _Telling(tell), self.runtime.ticks_s()
        passed = _passed(links, sent, heard)
        reply: Reply | None = None
        try:
            async with asyncio.TaskGroup() as group:
                learn = partial(self.calls.models.learned.learn, caller.user.id)
                whole = ask(passed, sent, on_delta=telling.delta, on_notice=telling.notice, on_learned=learn)
                asking = group.create_task(_reply_of(whole, heard))
                watching = group.create_task(self._watch(caller, asking, tell))
                asking.add_done_callback(lambda _: watching.cancel())
            reply = None if asking.cancelled() else asking.result()
        finally:
            ms = round((self.runtime.ticks_s() - began_s) * 1000)
            booked = await _booked(reply, heard, admitted.tokens)
            await self.calls.book(caller.user, call, booked, links, ms)
        if reply is None:
            return Finished(failure="stopped", text=STOPPED)
        if reply.message is not None:
            await telling.whole(reply.message.text)
            self._kept.keep(caller.token.id, reply.message)
        return await _finished(replace(reply, usage=booked.usage), sent)

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
        """Tell whether work was stopped, or the token revoked, meanwhile."""
        async with self.runtime.db.read_transaction(caller.user.id) as repository:
            is_halted = await repository(HaltsRepository).of(caller.user.id) is not None
            return is_halted or caller.token.id not in {one.id for one in await repository(ApiTokensRepository).list()}


class _Telling(Struct):
    """An answer told as it comes. `has_told`: some of it is out."""

    tell: Tell
    has_told: bool = False
    has_said: bool = False

    async def delta(self, kind: Literal["text", "thinking"], text: str, _attempt: int) -> None:
        self.has_told = True
        self.has_said = self.has_said or kind == "text"
        await self.tell(Said(text) if kind == "text" else Thought(text))

    async def notice(self, text: str) -> None:
        """A model failed, and the same or the next one is asked: what is out cannot go on in another answer."""
        if self.has_told:
            try:
                await self.tell(Anew())
            except BrokenOff:
                raise BrokenOff(text.partition(" Trying again")[0].partition(" Going on with")[0]) from None
        self.has_told = self.has_said = False

    async def whole(self, text: str) -> None:
        """Tell the answer of a model that gave no pieces."""
        if not self.has_said and text:
            await self.tell(Said(text))


def _fitting(admitted: Admitted, sent: Request) -> tuple[Link, ...]:
    """The models of the chain that can take the request in."""
    return tuple(
        link
        for link in admitted.links
        if admitted.tokens <= link.entry.context_tokens and (not sent.pictures or link.entry.takes_pictures)
    )


def _unfit(admitted: Admitted, sent: Request) -> Finished:
    """Why no model of the chain can take it."""
    entry = max((link.entry for link in admitted.links), key=lambda entry: entry.context_tokens)
    page = "" if entry.owner_id else f" If that is wrong, change it in Cortex ({page_of(entry.name)})."
    if admitted.tokens > entry.context_tokens:
        parts = {
            "system prompt": count(sent.system),
            "list of tools": count(minified([wire_schema(tool) for tool in sent.tools])),
        }
        largest = next((name for name, tokens in parts.items() if tokens > admitted.tokens / 2), "conversation")
        words = (
            f"The request has about {admitted.tokens:,} tokens; {entry.name} takes in {entry.context_tokens:,}. "
            f"Most of it is the {largest}.{page}"
        )
        return Finished(failure="request", text=words, param="messages", code="context_length_exceeded")
    words = f"{entry.name} does not take pictures.{page}"
    return Finished(failure="request", text=words, param="messages", code="unsupported_value")


def _passed(links: tuple[Link, ...], sent: Request, heard: Heard) -> tuple[Link, ...]:
    """The same models, each as a program's request is passed to it."""
    stops = tuple(parsed(dict(sent.parameters).get("stop", "[]")))
    wanted = wanted_by(sent.parameters)
    return tuple(
        Link(
            entry=link.entry,
            provider=PassedProvider(entry=link.entry, inner=link.provider, stops=stops, wanted=wanted, heard=heard),
        )
        for link in links
    )


async def _reply_of(whole: Awaitable[Reply], heard: Heard) -> Reply:
    """The reply; one that broke off behind its first words is a failure like others."""
    try:
        return await whole
    except BrokenOff as error:
        heard.is_broken = True
        return Reply(failure=error.message, failure_kind="cut")


async def _booked(reply: Reply | None, heard: Heard, tokens: int) -> Reply:
    """Return what is booked. Of a call that ended early its server told no figures: what came is counted here."""
    if reply is not None and (reply.message is None or reply.usage.input_tokens) and not heard.is_broken:
        return reply
    if reply is None and not (heard.text or heard.thought):
        return Reply(model=heard.model)
    came = await asyncio.to_thread(count, heard.thought + heard.text)
    usage = Usage(input_tokens=tokens, output_tokens=came)
    return Reply(message=assistant(heard.text), model=heard.model, usage=usage)


def _failed(reply: Reply) -> Finished:
    """Why no model answered: the request itself, an overload, or anything else."""
    rejected = "filtered" if reply.failure_kind == "refused" else reply.rejected
    failure: Failure = "busy" if reply.failure_kind == "rate_limit" else "model"
    param, code = ("", "rate_limit_exceeded") if failure == "busy" else ("", "")
    if rejected in REJECTED:
        failure, (param, code) = "request", REJECTED[rejected]
    return Finished(usage=reply.usage, failure=failure, text=reply.failure, param=param, code=code)


async def _finished(reply: Reply, sent: Request) -> Finished:
    if reply.message is None:
        return _failed(reply)
    calls = reply.message.calls
    finish: Literal["stop", "length", "tool_calls"] = "tool_calls" if calls else "stop"
    finish = "length" if reply.finish in ("length", "repeats") else finish
    wanted = wanted_by(sent.parameters)
    answer = ""
    if wanted is not None and finish == "stop":
        try:
            answer = await asyncio.to_thread(wanted.taken_from, reply.message.text)
        except ValueError as wrong:
            return Finished(usage=reply.usage, failure="model", text=refusal(wrong), param="response_format")
    return Finished(finish=finish, usage=reply.usage, calls=calls, answer=answer)
