"""Asks a chain of models until one gives a whole answer: the retry and fallback rule, and nothing else.

One more try of the same model where that is safe; where its server does not take the request, a try in each shape that
it may take (`second_shape.py`); then the next model. Each step is told in a notice. Never raises for a failing model:
the reply carries the sentence. A try that began to speak is started again with a higher `attempt`.
"""

import asyncio
import logging
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from itertools import count
from typing import Literal, cast

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.errors import ProviderError, Rejection
from cortex.base.model import ModelEntry
from cortex.base.turn import Reply
from cortex.ports.loop import Delta, Provider, Request, StreamEnd
from cortex.services.models.crowd import OVERLOADED, Crowd
from cortex.services.models.learned import ModelFact
from cortex.services.models.second_shape import Shapes, cannot_fit, named, prepared, request_tokens, without_refused

TRIES = 2
COUNTS_APART = 2  # times that a server may count as many tokens as we do, with the answer that it leaves room for
WAIT_CAP_S = 30.0
PATIENT_TRIES = 6  # of background work, where an endpoint is overloaded: nobody sits before it
PATIENT_WAIT_CAP_S = 600.0
_FIRST_WAIT_S = 1.0
# Between the tries while a server says that it still loads the model: about two minutes in all, the first five waits
# where another model may answer instead.
LOADING_WAITS_S, LOADING_BRIEFLY = (1.0, 2.0, 3.0, 5.0, 6.0, *[10.0] * 10), 5
# llama.cpp: "Loading model"; Hugging Face: "Model x is currently loading"; not "error loading model".
_LOADING = re.compile(
    r"(?<!error )(?<!failed )\bloading (?:the )?model\b"
    r"|\bmodel\b.{0,80}\bis (?:currently |still )?(?:loading|being loaded)\b",
    re.IGNORECASE,
)
_MEND = {
    "auth": "Check its key on the Models page.",
    "request": "Check its settings on the Models page.",
    "connection": "Check that its server runs and the address on the Models page is right.",
}

_SHARED = {  # what an endpoint says, its address and its model id are its owner's matter
    "auth": "its key was refused",
    "connection": "it could not be reached",
    "unknown_host": "its server could not be looked up",
    "timeout": "it did not answer in time",
    "rate_limit": "it accepts no more requests for now",
    "cut": "the answer was cut off",
    "empty": "the answer was empty",
    "refused": "the provider's content filter stopped the answer",
    "repeats": "it repeated itself without end and was stopped",
}

_SHARED_REFUSALS = {
    "window": "the request is longer than it takes",
    "tools": "it takes no tools",
    "pictures": "it does not take these pictures",
    "credit": "its account has too little credit",
    "model": "its server has no such model",
    "filtered": "the provider's content filter refused the request",
}
_OWN_MENDS = {
    "window": "Send less at once, or choose a model that takes more.",
    "filtered": "Put it in other words, or choose another model.",
}

log = logging.getLogger(__name__)

OnDelta = Callable[[Literal["text", "thinking"], str, int], Awaitable[None]]
OnNotice = Callable[[str], Awaitable[None]]


async def unheard(*_: object) -> None:
    """Nobody watches while it is written."""


OnLearned = Callable[[str, Sequence[ModelFact]], Awaitable[None]]
WindowOf = Callable[[ModelEntry], Awaitable[int | None]]


class Link(Struct, frozen=True, kw_only=True):
    """One model of a chain, ready to be asked."""

    entry: ModelEntry
    provider: Provider


def _jitter() -> float:
    return random.uniform(0.0, 0.25)  # noqa: S311 - spreads retries, guards nothing


async def ask(
    chain: Sequence[Link],
    request: Request,
    *,
    on_delta: OnDelta = unheard,
    on_notice: OnNotice = unheard,
    crowd: Crowd | None = None,
    is_background: bool = False,
    turn_from: int | None = None,
    on_learned: OnLearned | None = None,
    window_of: WindowOf | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    jitter: Callable[[], float] = _jitter,
) -> Reply:
    """The first whole answer of the chain, or a reply whose `failure` is a sentence for the person.

    crowd: says when background work may ask. is_background: it may wait for minutes where an endpoint is overloaded.
    turn_from: the place in the messages where what is asked now begins: what is ahead of it may be shortened, and
    tools left out, for a model that does not take all of it; None where nothing may. on_learned: told of what a model
    was seen not to take, by its name. window_of: asks a server how much it takes, where its refusal does not say it.

    `attempt` of `on_delta` grows, from 1, over all models; with a higher one everything of the lower is void.
    """
    asking = _Asking(
        on_delta=on_delta, on_notice=on_notice, on_learned=on_learned, crowd=crowd, is_background=is_background,
        sleep=sleep, jitter=jitter, turn_from=turn_from, window_of=window_of,
    )  # fmt: skip
    failures: list[ProviderError] = []
    for position, link in enumerate(chain):
        if position:
            await on_notice(f"{failures[-1].message} Going on with {link.entry.name}.")
        if crowd is not None and not is_background and crowd.is_full(link.entry):
            await on_notice(f"{link.entry.name} is busy with other requests and answers this one after them.")
        if position:
            ready = await asyncio.to_thread(prepared, link.entry, request, turn_from)
        else:
            ready = without_refused(link.entry, request) if turn_from is not None else request
        waits = LOADING_WAITS_S if position + 1 == len(chain) else LOADING_WAITS_S[:LOADING_BRIEFLY]
        answered = await asking.one(link, ready, iter(waits))
        if not isinstance(answered, ProviderError):
            return Reply(message=answered.message, usage=answered.usage, model=link.entry.name, finish=answered.finish)
        failures.append(answered)
    return Reply(
        model=chain[-1].entry.name if chain else "",
        failure=_sentence(failures, is_shared=bool(chain) and bool(chain[-1].entry.owner_id)),
        failure_kind=failures[-1].kind if failures else "request",
        rejected=failures[-1].rejection.what if failures and failures[-1].rejection else "",
    )


class _Asking(Struct, kw_only=True):
    """One call to a chain. `attempts`: the numbers of the tries, over all models."""

    on_delta: OnDelta
    on_notice: OnNotice
    on_learned: OnLearned | None
    crowd: Crowd | None
    is_background: bool
    sleep: Callable[[float], Awaitable[None]]
    jitter: Callable[[], float]
    turn_from: int | None
    window_of: WindowOf | None
    attempts: Iterator[int] = field(default_factory=lambda: count(1))

    async def one(self, link: Link, request: Request, loading_waits: Iterator[float]) -> StreamEnd | ProviderError:
        """The answer of this model, tried again and in other shapes as far as that may help; else its failure.

        loading_waits: how long to wait, try after try, for a server that still loads the model.
        """
        shapes = Shapes(entry=link.entry, turn_from=self.turn_from)
        tries = count(1)
        while True:
            try:
                async with _at(self.crowd, link.entry, is_background=self.is_background):
                    finished = await _once(link, request, self.on_delta, self.attempts)
            except ProviderError as raised:
                if await self._has_waited(link, raised, loading_waits):
                    continue
                again = await self._again(link, request, raised, shapes, tries)
                if isinstance(again, ProviderError):
                    return again
                request = again
            else:
                await self._learned(link, shapes.pending)
                return finished

    async def _has_waited(self, link: Link, raised: ProviderError, waits: Iterator[float]) -> bool:
        """Tell whether its server only still loads the model, and was waited for; said once."""
        wait_s = next(waits, None) if raised.is_retryable and _LOADING.search(raised.message) else None
        if wait_s is None:
            return False
        if wait_s == LOADING_WAITS_S[0]:
            await self.on_notice(f"{link.entry.name}: its server still loads the model. Waiting for it.")
        await self.sleep(wait_s)
        return True

    async def _again(
        self, link: Link, request: Request, raised: ProviderError, shapes: Shapes, tries: Iterator[int]
    ) -> Request | ProviderError:
        """Return what to ask next, once it is time; the failure where nothing is."""
        if raised.rejection is not None:
            found = await self._measured(link, request, raised.rejection)
            shape = await asyncio.to_thread(shapes.next, request, found)
            if shape is not None:
                log.info("models: %s", raised.message)
                await self.on_notice(shape.text)
            await self._learned(link, named(found))
            if shape is not None:
                return shape.request
        error = _for_others(link.entry, raised) if link.entry.owner_id else await self._worded(link, request, raised)
        is_patient = self.is_background and error.kind in OVERLOADED
        wait_s = _wait_s(error, next(tries), self.jitter, is_patient=is_patient)
        if wait_s is None:
            return error
        await self.on_notice(f"{error.message} Trying again{f' in {wait_s:.0f} s' if wait_s >= 2 else ''}.")
        await self.sleep(wait_s)
        return request

    async def _measured(self, link: Link, request: Request, found: Rejection) -> Rejection:
        """Return what was refused, with the context that the server says it gives where it did not say it there."""
        if found.what != "window" or found.window_tokens or self.window_of is None or self.turn_from is None:
            return found
        window = await self.window_of(link.entry)
        if window is None or window > await asyncio.to_thread(request_tokens, request) * COUNTS_APART:
            return found  # it is no reason for what was refused
        return replace(found, window_tokens=window)

    async def _worded(self, link: Link, request: Request, raised: ProviderError) -> ProviderError:
        """The failure, in Cortex's words where not even the message alone goes in."""
        is_window = raised.rejection is not None and raised.rejection.what == "window"
        if raised.rejection is None or not is_window or self.turn_from is None or request.purpose == "summary":
            return raised
        told = await asyncio.to_thread(cannot_fit, link.entry, request, self.turn_from, raised.rejection)
        return ProviderError(told, kind="too_long", rejection=raised.rejection)

    async def _learned(self, link: Link, facts: Sequence[ModelFact]) -> None:
        if facts and self.on_learned is not None:
            await self.on_learned(link.entry.name, tuple(facts))


async def _once(link: Link, request: Request, on_delta: OnDelta, attempts: Iterator[int]) -> StreamEnd:
    attempt = next(attempts)
    # Every provider's stream is an async generator; closing it closes the connection at once, not when it is collected.
    stream = cast("AsyncGenerator[Delta | StreamEnd, None]", link.provider.stream(request))
    async with aclosing(stream) as items:
        async for item in items:
            if isinstance(item, StreamEnd):
                return item
            if item.kind == "void":
                attempt = next(attempts)
            else:
                await on_delta(item.kind, item.text, attempt)
    raise ProviderError(f"{link.entry.name}: the answer was cut off.", kind="cut", is_retryable=True)


def _for_others(entry: ModelEntry, error: ProviderError) -> ProviderError:
    """The failure of a shared model as whoever borrows it reads it; the log has all of it."""
    log.warning("models: %s", error.message)
    what = error.rejection.what if error.rejection else ""
    why = _SHARED_REFUSALS.get(what) or _SHARED.get(error.kind, "the request failed")
    if what in ("window", "filtered"):  # which nobody but who asks can mend
        told = f"{entry.name}: {why}. {_OWN_MENDS[what]}"
    else:
        told = f"{entry.name}: {why}. Ask {entry.owner} to look at it."
    return ProviderError(told, kind=error.kind, is_retryable=error.is_retryable, retry_after_s=error.retry_after_s)


def _wait_s(error: ProviderError, tries: int, jitter: Callable[[], float], *, is_patient: bool) -> float | None:
    """Seconds until the same model is tried again after so many tries; None when it should not be."""
    most, cap_s = (PATIENT_TRIES, PATIENT_WAIT_CAP_S) if is_patient else (TRIES, WAIT_CAP_S)
    if not error.is_retryable or tries >= most:
        return None
    if error.retry_after_s is not None and error.retry_after_s > cap_s:
        return None
    growing_s = _FIRST_WAIT_S * 2 ** (tries - 1)
    return (growing_s if error.retry_after_s is None else max(0.0, error.retry_after_s)) * (1.0 + jitter())


def _at(crowd: Crowd | None, entry: ModelEntry, *, is_background: bool) -> AbstractAsyncContextManager[None]:
    return nullcontext() if crowd is None else crowd.request(entry, is_background=is_background)


def _sentence(failures: Sequence[ProviderError], *, is_shared: bool) -> str:
    """Return what the person reads when no model answered."""
    if not failures:
        return "No model is configured. Add one on the Models page."
    last = failures[-1]
    is_told = last.rejection is not None and last.rejection.what != "other"  # its own sentence says what to do
    mend = "" if is_shared or is_told else _MEND.get(last.kind, "")
    if last.retry_after_s is not None and last.retry_after_s > WAIT_CAP_S:
        mend = f"It asks to wait {last.retry_after_s:.0f} seconds."
    told = " ".join(dict.fromkeys(error.message for error in failures))
    start = "No model answered. " if len(failures) > 1 else ""
    again = " You can try again." if any(error.is_retryable for error in failures) else ""
    return f"{start}{told}{' ' + mend if mend else ''}{again}"
