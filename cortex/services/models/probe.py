"""Tests a connection: does the model answer, does it stream, does it call tools, two at once? Three short requests.

Called by `services/models/models.py` for the Models page.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.clock import ticks_s
from cortex.base.errors import ProviderError
from cortex.base.messages import ToolCall, ToolSchema, user
from cortex.base.model import ModelEntry
from cortex.ports.loop import Delta, Provider, Request, StreamEnd

_HELLO = Request(
    system="You answer with one short sentence.",
    messages=(user("Say hello in one short sentence of at least five words."),),
    max_output_tokens=1_024,
)
_SUM = ToolSchema(
    name="probe_sum",
    description="Add two numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)
_TWO = replace(
    _HELLO,
    system="Use the tools you are given. Call both times in one answer, before you see a result.",
    messages=(user("Use probe_sum twice, side by side: once for 2 and 3, once for 4 and 5."),),
    tools=(_SUM,),
)


class TestReport(Struct, frozen=True, kw_only=True):
    """The findings of the test. None = could not be told. `lines` are the single findings, for the person.

    `model`: the stored model whose tools the test switched off.
    """

    __test__ = False  # the name is no test of ours

    is_ok: bool
    message: str
    streams: bool | None = None
    tools: bool | None = None
    parallel: bool | None = None
    lines: tuple[str, ...] = ()
    model: str = ""


def with_consequence(report: TestReport, name: str, *, was_on: bool, is_by_hand: bool) -> TestReport:
    """The report of a stored model with what follows for its tools, where that is news."""
    if report.tools is None or report.tools == was_on:
        return report
    if is_by_hand:
        told = "tools are sent to it all the same" if was_on else "tools are not sent to it"
        return replace(report, lines=(*report.lines, f"{told}, as you set it"))
    if report.tools:
        return replace(report, lines=(*report.lines, "tools are sent to it from now on"))
    return replace(report, lines=(*report.lines, "tools are not sent to it from now on"), model=name)


def with_window(report: TestReport, told_tokens: int | None, set_tokens: int | None) -> TestReport:
    """The report with the context that the server says it gives, against what is set here."""
    if not told_tokens:
        return report
    less = f", less than the {set_tokens:,} set here" if set_tokens and set_tokens > told_tokens else ""
    return replace(report, lines=(*report.lines, f"takes {told_tokens:,} tokens of context by its server{less}"))


async def probe(entry: ModelEntry, open_provider: Callable[[ModelEntry], Provider]) -> TestReport:
    """The report on this entry; never raises for a failing endpoint."""
    entry = replace(entry, first_s=None)  # a test reads a few words: nobody waits minutes for it
    try:
        latency_ms, streams = await first_answer(entry, open_provider)
    except ProviderError as error:
        return TestReport(is_ok=False, message=error.message)
    tools, parallel, said = await _tools(open_provider(replace(entry, streams=streams)))
    lines = (
        f"answers after {latency_ms} ms",
        "streams its answer" if streams else "sends its answer in one piece",
        said,
    )
    message = f"{entry.name} works: {', '.join(lines)}."
    return TestReport(
        is_ok=True,
        message=message,
        streams=streams,
        tools=tools,
        parallel=parallel,
        lines=lines,
    )


async def first_answer(entry: ModelEntry, open_provider: Callable[[ModelEntry], Provider]) -> tuple[int, bool]:
    """Milliseconds until it answers, and whether it streams; ProviderError where it answers neither way."""
    try:
        latency_ms, pieces, _ = await _read(open_provider(replace(entry, streams=True)), _HELLO)
    except ProviderError as error:
        if error.kind not in ("request", "malformed", "cut", "empty"):
            raise
        try:
            latency_ms, *_ = await _read(open_provider(replace(entry, streams=False)), _HELLO)
        except ProviderError:
            raise error from None
        return latency_ms, False
    return latency_ms, pieces > 1


async def _read(provider: Provider, request: Request) -> tuple[int, int, Sequence[ToolCall]]:
    """Milliseconds until the first piece, the number of pieces, and the calls of the answer."""
    begun, first, pieces = ticks_s(), 0.0, 0
    calls: Sequence[ToolCall] = ()
    try:
        stream = cast("AsyncGenerator[Delta | StreamEnd, None]", provider.stream(request))
        async with aclosing(stream) as items:
            async for item in items:
                first = first or ticks_s()
                pieces += isinstance(item, Delta)
                calls = item.message.calls if isinstance(item, StreamEnd) else calls
    finally:
        await provider.close()
    return round(((first or ticks_s()) - begun) * 1_000), pieces, calls


async def _tools(provider: Provider) -> tuple[bool | None, bool | None, str]:
    """Tell whether it calls tools, two at once, and that in words."""
    try:
        _, _, called = await _read(provider, _TWO)
    except ProviderError as error:
        if error.kind in ("request", "malformed"):
            return False, False, f"can't be given tools ({error.message})"
        return None, None, f"its tools could not be tested ({error.message})"
    calls = sum(call.name == _SUM.name for call in called)
    if calls > 1:
        return True, True, "calls tools, several at once"
    return (
        (True, False, "calls tools, one at a time") if calls else (False, False, "did not call the tool it was given")
    )
