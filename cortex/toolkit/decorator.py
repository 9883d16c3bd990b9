"""`@tool`: turns a typed async function of a category file into a `Tool`. The file's stem is the category's name."""

import inspect
from collections.abc import Callable
from typing import Unpack

from cortex.toolkit.schema import forms
from cortex.toolkit.spec import Function, Tool, ToolFacts
from cortex.toolkit.words import fitting


def tool(*, ends: bool = False, **facts: Unpack[ToolFacts]) -> Callable[[Function], Tool]:
    """A decorator that makes a `Tool` of a function; TypeError at import when the function is not fit to be one.

    Reads are idempotent by nature; what is of high risk or spends always asks: this follows without being said.
    ends: it takes away or ends what somebody made; such a tool is grave, and so is one of high risk or that spends.
    """

    def make(function: Function) -> Tool:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"{function!r}: a tool must be `async def`")
        made = forms(function, function.__name__)
        fitting(facts.get("words"), made.arguments.model_fields)
        is_high = facts.get("risk") == "high"
        follows: ToolFacts = {
            "confirm": is_high or facts.get("spends", False) or facts.get("confirm", False),
            "idempotent": facts.get("effect") == "read" or facts.get("idempotent", False),
        }
        return Tool(
            name=function.__name__,
            category=function.__module__.rpartition(".")[2],
            function=function,
            is_grave=ends or is_high or facts.get("spends", False),
            summary=made.summary,
            arguments=made.arguments,
            full=made.full,
            stub=made.stub,
            line=made.line,
            hash=made.hash,
            **(facts | follows),
        )

    return make
