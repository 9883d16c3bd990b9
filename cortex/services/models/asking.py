"""Asks a chain of models until one gives a whole answer: the retry and fallback rule, and nothing else.

One more try of the same model where that is safe, then the next model, each step told in a notice. Never raises for a
failing model: the reply carries the sentence. A try that began to speak is started again with a higher `attempt`.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Literal, cast

from cortex.base.errors import ProviderError
from cortex.base.model import ModelEntry
from cortex.base.turn import Reply
from cortex.ports.loop import Delta, Provider, Request, StreamEnd
from cortex.services.models.crowd import OVERLOADED, Crowd

TRIES = 2
WAIT_CAP_S = 30.0
PATIENT_TRIES = 6  # of background work, where an endpoint is overloaded: nobody sits before it
PATIENT_WAIT_CAP_S = 600.0
_FIRST_WAIT_S = 1.0
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

log = logging.getLogger(__name__)

OnDelta = Callable[[Literal["text", "thinking"], str, int], Awaitable[None]]
OnNotice = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One model of a chain, ready to be asked."""

    entry: ModelEntry
    provider: Provider


def _jitter() -> float:
    return random.uniform(0.0, 0.25)  # noqa: S311 - spreads retries, guards nothing


async def ask(
    chain: Sequence[Link],
    request: Request,
    *,
    on_delta: OnDelta,
    on_notice: OnNotice,
    crowd: Crowd | None = None,
    is_background: bool = False,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    jitter: Callable[[], float] = _jitter,
) -> Reply:
    """The first whole answer of the chain, or a reply whose `failure` is a sentence for the person.

    crowd: says when background work may ask. is_background: it may wait for minutes where an endpoint is overloaded.

    `attempt` of `on_delta` grows, from 1, over all models; with a higher one everything of the lower is void.
    """
    failures: list[ProviderError] = []
    attempts = count(1)
    for position, link in enumerate(chain):
        has_next = position + 1 < len(chain)
        for tries in count(1):
            try:
                async with _at(crowd, link.entry, is_background=is_background):
                    finished = await _once(link, request, on_delta, attempts)
            except ProviderError as raised:
                error = _for_others(link.entry, raised) if link.entry.owner_id else raised
                wait_s = _wait_s(error, tries, jitter, is_patient=is_background and error.kind in OVERLOADED)
                if wait_s is None:
                    failures.append(error)
                    break
                await on_notice(f"{error.message} Trying again{f' in {wait_s:.0f} s' if wait_s >= 2 else ''}.")
                await sleep(wait_s)
            else:
                return Reply(
                    message=finished.message, usage=finished.usage, model=link.entry.name, finish=finished.finish
                )
        if has_next:
            await on_notice(f"{failures[-1].message} Going on with {chain[position + 1].entry.name}.")
    return Reply(
        model=chain[-1].entry.name if chain else "",
        failure=_sentence(failures, is_shared=bool(chain) and bool(chain[-1].entry.owner_id)),
        failure_kind=failures[-1].kind if failures else "request",
    )


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
    told = f"{entry.name}: {_SHARED.get(error.kind, 'the request failed')}. Ask {entry.owner} to look at it."
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
    """What the person reads when no model answered."""
    if not failures:
        return "No model is configured. Add one on the Models page."
    last = failures[-1]
    mend = "" if is_shared else _MEND.get(last.kind, "")
    if last.retry_after_s is not None and last.retry_after_s > WAIT_CAP_S:
        mend = f"It asks to wait {last.retry_after_s:.0f} seconds."
    told = " ".join(dict.fromkeys(error.message for error in failures))
    start = "No model answered. " if len(failures) > 1 else ""
    again = " You can try again." if any(error.is_retryable for error in failures) else ""
    return f"{start}{told}{' ' + mend if mend else ''}{again}"
