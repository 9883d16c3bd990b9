"""The tool file of a plug-in as a category: checked as one that ships, and kept from what only those that ship may.

Its results are from outside, it stands in for no shipped tool or category, and a fault of its own functions ends
nothing but its call.
"""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from traceback import format_exception
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, get_args

from msgspec.structs import replace
from pydantic import BaseModel, ModelWrapValidatorHandler, ValidationError, model_validator

from cortex.base import scan
from cortex.base.errors import CortexError, ToolFailed
from cortex.base.hidden import holds_hiding
from cortex.ports.loop import Readers
from cortex.ports.mcp import FAMILY
from cortex.toolkit.registry import Registry, ToolSet, category_of
from cortex.toolkit.spec import CallPreview, Category, Effect, Function, Output, Precheck, PreviewOf, ReadBy, Risk, Tool
from cortex.toolkit.words import TITLE_CHARACTERS, cut, fitting, one_line

P = ParamSpec("P")
T = TypeVar("T")

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
RESERVED = frozenset({"all", "meta", FAMILY})
SUMMARY_CHARACTERS = 200
DESCRIPTION_CHARACTERS = 1_024  # of a tool, all of it: OpenAI refuses the whole request for one more
SCHEMA_CHARACTERS = 20_000
UTTERANCES_MOST, UTTERANCE_CHARACTERS = 2_000, 500
RESULT_CHARACTERS = 2_000_000
CUT = "[... the plug-in gave back more; it was left out]"
UNKNOWN_PLACE = "a place that its plug-in does not name"

LAST_WORDS_S = 1.0  # of a call that is stopped; one that goes on all the same is left behind
PREVIEW_CHARACTERS = 100_000

log = logging.getLogger(__name__)


class PluginBrokeOff(ToolFailed):
    """Stands in for what a plug-in raised that would end more than its call."""


def attempted(work: Callable[[], T], what: str) -> tuple[T | None, str]:
    """Return what the code of a plug-in gives, else what it raised, in words; the traceback is in the log as `what`."""
    found, error = scan.caught(work)
    if error is None:
        return found, ""
    log_fault(what, error)
    return None, scan.in_words(error)


def log_fault(what: str, error: BaseException | None) -> None:
    """Write down where it was raised; as text, since what it says may hold half a sign, which no log file takes."""
    lines = "".join(format_exception(error)).rstrip()
    log.error("plug-in: %s failed\n%s", what, whole_text(lines))


def whole_text(text: str) -> str:
    """The text as a plain `str`, with U+FFFD for each half of a surrogate pair: no page and no table takes one."""
    return str.encode(text, "utf-16", "surrogatepass").decode("utf-16", "replace")


def plugin_category(module: ModuleType, shipped: ToolSet) -> Category:
    """The category of a plug-in's tool file; TypeError or ValueError says what of it cannot be taken."""
    category = category_of(module)
    names = [tool.name for tool in category.tools]
    for name in (category.name, *names):
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise TypeError(f"{name!r} is no name: up to 64 lower-case letters, digits and _, a letter first")
        if name in RESERVED or name.startswith(f"{FAMILY}_") or name in shipped.tools or name in shipped.categories:
            raise TypeError(f"{name!r} is a name of Cortex itself; choose another one")
    _must_be_words("SUMMARY", category.summary, SUMMARY_CHARACTERS)
    _must_be_names("NEEDS", category.needs)
    for part, roles in (("ROLES", category.roles), ("ADMIN_ROLES", category.admin_roles)):
        _must_be_names(part, [*roles, *(word for words in roles.values() for word in words)])
    if len(category.examples) > UTTERANCES_MOST:
        raise ValueError(f"there are more than {UTTERANCES_MOST:,} utterances")
    for text, wanted in category.examples:
        if len(text) > UTTERANCE_CHARACTERS:
            raise ValueError(f"an utterance has more than {UTTERANCE_CHARACTERS} characters: {text[:60]!r}…")
        if not set(wanted) <= set(names):
            raise ValueError(f"an utterance names tools of others: {sorted(set(wanted) - set(names))}")
    for tool in category.tools:
        _must_be_plain(tool)
    undo = _giving(str, category.undo) if category.undo else None
    made = replace(
        category, tools=tuple(_kept_apart(tool) for tool in category.tools), undo=undo, samples={}, tested=""
    )
    Registry([*shipped.categories.values(), made])  # raises what else of it could not be held
    return made


def _must_be_plain(tool: Tool) -> None:
    """Refuse what would fail, or pass for less than it is, wherever a plan, a page or the gate reads it."""
    if tool.risk not in get_args(Risk) or tool.effect not in get_args(Effect):
        raise ValueError(f"{tool.name}: risk is one of {get_args(Risk)}, effect one of {get_args(Effect)}")
    if {tool.full.name, tool.stub.name} != {tool.name}:
        raise ValueError(f"{tool.name}: its schema has another name")
    _must_be_words(f"the docstring of {tool.name}", tool.full.description, DESCRIPTION_CHARACTERS)
    _must_be_words(f"the docstring of {tool.name}", tool.stub.description, DESCRIPTION_CHARACTERS)
    _must_be_words(f"the docstring of {tool.name}", f"{tool.summary} {tool.line}", DESCRIPTION_CHARACTERS)
    schema = json.dumps([tool.full.parameters, tool.stub.parameters], ensure_ascii=False, allow_nan=False)
    _must_be_words(f"the arguments of {tool.name}", schema, SCHEMA_CHARACTERS)
    _must_be_names(f"needs of {tool.name}", tool.needs)
    if not (isinstance(tool.arguments, type) and issubclass(tool.arguments, BaseModel)):
        raise TypeError(f"{tool.name}: its arguments are no model")
    if not (tool.words is None or callable(tool.words) or isinstance(tool.words, str)):
        raise TypeError(f"{tool.name}: words is a text or a function")
    fitting(tool.words, tool.arguments.model_fields)


def _must_be_words(what: str, text: object, most: int) -> None:
    if not isinstance(text, str) or not text.strip() or len(text) > most:
        raise ValueError(f"{what}: it must be a text of 1 to {most:,} characters")
    if holds_hiding(text):
        raise ValueError(f"{what}: it holds characters that cannot be seen")


def _must_be_names(what: str, names: Iterable[object]) -> None:
    odd = [name for name in names if not isinstance(name, str) or len(name) > 64]
    if odd:
        raise TypeError(f"{what}: these are no names: {odd!r:.100}")


def _kept_apart(tool: Tool) -> Tool:
    """The tool as the gate is to see it, whatever its file says of it."""
    return replace(
        tool,
        function=_calling(tool),
        policy="deferred",
        ambient=False,
        free=False,
        reads_untrusted=True,
        is_plugin=True,
        risk_of=partial(_risk, tool) if tool.risk_of else None,
        sends_to=partial(_place, tool) if tool.sends_to else None,
        words=partial(_words, tool) if callable(tool.words) else tool.words,
        aim=_giving(str, tool.aim) if tool.aim else None,
        check=_checking_first(tool.check) if tool.check else None,
        read_by=_reading(tool.read_by) if tool.read_by else None,
        preview=_previewing(tool.preview) if tool.preview else None,
        arguments=_checking(tool.arguments),
    )


async def answer(
    function: Callable[..., Awaitable[T]],
    *given: Any,
    **named: Any,  # Any: as it takes them
) -> tuple[T | None, Exception | None]:
    """Return what the function gives back, or what it raised; one that takes no cancelling is left behind.

    It is awaited in a task of its own. `PluginBrokeOff` stands for what would end more than the call.
    """
    task = asyncio.ensure_future(_heard(function, given, named))  # noqa: TID251 - ended right below, or left behind
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=LAST_WORDS_S)
        raise
    result, error = task.result()
    if isinstance(error, CortexError):
        error.message = whole_text(str(error.message))
    if error is None or isinstance(error, Exception):
        return result, error
    broken_off = PluginBrokeOff(
        "The plug-in tried to end Cortex; that was not done."
        if isinstance(error, SystemExit | KeyboardInterrupt)
        else "The plug-in broke off its own work. It may be done in part."
    )
    broken_off.__cause__ = error
    return None, broken_off


async def outcome(function: Callable[..., Awaitable[T]], *given: Any, **named: Any) -> T:
    """The same; what was raised is raised."""
    result, error = await answer(function, *given, **named)
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # it is one where nothing was raised


async def _heard(
    function: Callable[..., Awaitable[T]], given: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[T | None, BaseException | None]:
    try:
        return await function(*given, **named), None
    except BaseException as error:  # noqa: BLE001 - `outcome` raises what may be raised; some would end the whole loop
        return None, error


def _giving(kind: type[T], function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """The function, which gives back what it should or fails as a tool may: nothing of it ends Cortex or a turn."""

    async def call(*given: P.args, **named: P.kwargs) -> T:
        result: object = await outcome(function, *given, **named)
        if kind is str and isinstance(result, str):
            return whole_text(result[:RESULT_CHARACTERS])  # type: ignore[return-value]  # kind is str
        if not isinstance(result, kind):
            raise ToolFailed(f"The plug-in gave back {type(result).__name__!r} in place of {kind.__name__!r}.")
        return result

    return call


def _checking_first(function: Precheck) -> Precheck:
    async def call(*given: Any, **named: Any) -> None:
        await outcome(function, *given, **named)

    return call


def _reading(function: ReadBy) -> ReadBy:
    async def call(*given: Any, **named: Any) -> Sequence[Readers]:
        found = await outcome(function, *given, **named)
        if not isinstance(found, list | tuple) or not all(isinstance(one, Readers) for one in found):
            raise ToolFailed("The plug-in does not say who will read it.")
        return tuple(Readers(key=whole_text(one.key), words=whole_text(one.words)) for one in found)

    return call


def _previewing(function: PreviewOf) -> PreviewOf:
    async def call(*given: Any, **named: Any) -> CallPreview:
        found = await outcome(function, *given, **named)
        return CallPreview(
            title=whole_text(cut(found.title, TITLE_CHARACTERS)), detail=whole_text(found.detail[:PREVIEW_CHARACTERS])
        )

    return call


def _calling(tool: Tool) -> Function:
    """The tool's function. What it names as found is left out: a plug-in says nothing of tools of others."""

    async def call(*given: Any, **arguments: Any) -> Output:
        result: Any = await outcome(tool.function, *given, **arguments)  # Any: of whatever type it turns out to be
        result = Output(text=result) if isinstance(result, str) else result
        if not (isinstance(result, Output) and isinstance(result.text, str) and isinstance(result.words, str)):
            raise ToolFailed(f"{tool.name} gave back {type(result).__name__!r} in place of text. It may have run.")
        text = result.text
        if len(text) > RESULT_CHARACTERS:
            text = f"{text[:RESULT_CHARACTERS]}\n{CUT}"
        words = whole_text(cut(one_line(result.words), TITLE_CHARACTERS))
        return Output(text=whole_text(text), words=words, is_tainted=True)

    return call


def _checking(arguments: type[BaseModel]) -> type[BaseModel]:
    """The model of a call's arguments; what its own validators raise is a wrong argument and nothing else."""

    class Checked(arguments):  # type: ignore[misc, valid-type]  # pydantic makes models at run time
        @model_validator(mode="wrap")
        @classmethod
        def _checked(cls, values: Any, handler: ModelWrapValidatorHandler["Checked"]) -> "Checked":
            made, error = scan.caught(lambda: handler(values))
            if made is not None:
                _, error = scan.caught(lambda: made.model_dump(mode="json"))
            if isinstance(error, ValidationError):
                raise error
            if error is not None or made is None:
                raise ValueError(f"the plug-in could not read this: {scan.in_words(error)}")
            return made

    Checked.__name__ = Checked.__qualname__ = arguments.__name__
    return Checked


def _risk(tool: Tool, values: Mapping[str, Any]) -> Risk:
    found, _ = attempted(lambda: tool.risk_of(values) if tool.risk_of else tool.risk, f"risk_of of {tool.name}")
    return found if found is not None and found in get_args(Risk) else "high"


def _place(tool: Tool, values: Mapping[str, Any]) -> str:
    found, _ = attempted(lambda: tool.sends_to(values) if tool.sends_to else "", f"sends_to of {tool.name}")
    return whole_text(found) if isinstance(found, str) else UNKNOWN_PLACE


def _words(tool: Tool, values: Mapping[str, Any]) -> str:
    words = tool.words
    found, _ = attempted(lambda: words(values) if callable(words) else "", f"words of {tool.name}")
    return found if isinstance(found, str) and found.strip() else tool.summary
