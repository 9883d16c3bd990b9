"""`@tool`: turns a typed async function of a category file into a `Tool`. The file's stem is the category's name."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from cortex.toolkit.schema import forms
from cortex.toolkit.spec import Aim, Effect, Output, Precheck, PreviewOf, ReadBy, Risk, RiskOf, SendsTo, Tool
from cortex.toolkit.words import Words, fitting

Function = Callable[..., Awaitable[str | Output]]


def tool(
    *,
    words: Words | None = None,
    risk: Risk = "low",
    ends: bool = False,
    effect: Effect = "write",
    confirm: bool = False,
    admin: bool = False,
    idempotent: bool = False,
    needs: tuple[str, ...] = (),
    reads_untrusted: bool = False,
    reads_private: bool = False,
    sends_out: bool = False,
    free: bool = False,
    risk_of: RiskOf | None = None,
    sends_to: SendsTo | None = None,
    aim: Aim | None = None,
    check: Precheck | None = None,
    read_by: ReadBy | None = None,
    preview: PreviewOf | None = None,
) -> Callable[[Function], Tool]:
    """A decorator that makes a `Tool` of a function; TypeError at import when the function is not fit to be one.

    Reads are idempotent by nature; high risk always asks, so both follow without being said. ends: it takes away
    or ends what somebody made; such a tool is grave, and so is one of high risk.
    """

    def make(function: Function) -> Tool:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"{function!r}: a tool must be `async def`")
        name = function.__name__
        made = forms(function, name)
        flags: dict[str, Any] = {"reads_untrusted": reads_untrusted, "reads_private": reads_private}
        flags |= {"risk_of": risk_of, "sends_to": sends_to, "aim": aim, "check": check, "read_by": read_by}
        return Tool(
            name=name,
            category=function.__module__.rpartition(".")[2],
            summary=made.summary,
            function=function,
            arguments=made.arguments,
            full=made.full,
            stub=made.stub,
            line=made.line,
            hash=made.hash,
            risk=risk,
            is_grave=ends or risk == "high",
            effect=effect,
            confirm=confirm or risk == "high",
            admin=admin,
            idempotent=idempotent or effect == "read",
            needs=needs,
            sends_out=sends_out,
            free=free,
            preview=preview,
            words=fitting(words, made.arguments.model_fields),
            **flags,
        )

    return make
