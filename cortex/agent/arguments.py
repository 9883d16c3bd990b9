"""Reads a call: which tool is meant (also behind the bridge), whether the arguments hold, how they are shown.

Pure. Called by `agent/execute.py` alone.
"""

import hashlib
import json
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic import BaseModel, ValidationError

from cortex.base.form_words import what_is_wrong
from cortex.base.hidden import show_hidden
from cortex.base.json_text import parsed
from cortex.base.messages import ToolCall
from cortex.toolkit import words
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Risk, Tool
from cortex.toolkit.words import TITLE_CHARACTERS, cut, facts, listed

BRIDGE = "tool_call"
SPILLED = "read on with file_read"  # behind a result that was cut
FAULTS_MOST = 20  # of a list of ten thousand wrong values the model needs no more


class CheckedCall(Struct, frozen=True, kw_only=True):
    """A call that names a permitted tool with valid arguments.

    `canonical`: all its arguments as sorted, minified JSON; `said`: those that differ from their defaults.
    """

    asked_name: str
    tool: Tool
    arguments: BaseModel
    canonical: str
    said: dict[str, Any]

    @property
    def risk(self) -> Risk:
        """The risk of exactly this call."""
        risk_of = self.tool.risk_of
        return risk_of(self.arguments.model_dump()) if risk_of else self.tool.risk

    @property
    def sends_out(self) -> bool:
        """Tell whether exactly this call carries data to a place outside."""
        return bool(destination(self)) if self.tool.sends_to else self.tool.sends_out


def check(registry: Registry, permitted: frozenset[str], call: ToolCall) -> CheckedCall | str:
    """The checked call, or the words from which the model learns what is wrong with it.

    A tool that is not permitted answers exactly as an unknown one.
    """
    values = _parse(call.arguments)
    if isinstance(values, str):
        tool = registry.get(call.name) if call.name in permitted else None
        return f"{values} Expected: {tool.line}" if tool else values
    name = call.name
    if name == BRIDGE and name in permitted:
        unwrapped = _unwrap(values)
        if isinstance(unwrapped, str):
            return unwrapped
        name, values = unwrapped
    tool = registry.get(name) if name in permitted else None
    if tool is None:
        return unknown_tool(name, _near(name, permitted))
    try:
        arguments = tool.arguments.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {what_is_wrong(item)}"
            for item in error.errors()[:FAULTS_MOST]
        )
        return f"Wrong arguments, nothing ran: {faults}. Expected: {tool.line} {json.dumps(tool.full.parameters)}"
    text = json.dumps(arguments.model_dump(mode="json"), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    said = arguments.model_dump(mode="json", exclude_defaults=True)
    return CheckedCall(asked_name=call.name, tool=tool, arguments=arguments, canonical=text, said=said)


def unknown_tool(name: str, near: str = "") -> str:
    """The one answer for a tool that is not there and for one that is not permitted."""
    hint = f" Did you mean {near}?" if near else ""
    return f"There is no tool named {name[:80]!r} here.{hint}"


def digest(tool: str, canonical: str) -> str:
    """SHA-256 over tool and canonical arguments: what an approval is bound to."""
    return hashlib.sha256(f"{tool}\n{canonical}".encode()).hexdigest()


def destination(checked: CheckedCall) -> str:
    """Where a call sends to, lower case: as its tool says, the host of its `url`, its `to`; "" when it stays here."""
    if checked.tool.sends_to:
        return checked.tool.sends_to(checked.arguments.model_dump()).lower()
    url = getattr(checked.arguments, "url", None)
    if url:
        return host_of(str(url))
    to = getattr(checked.arguments, "to", None) if checked.tool.sends_out else None
    return " ".join(str(to or "").lower().split())


def host_of(url: str) -> str:
    """The host of an address, lower case; "" for what is none, such as `http://[x`."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def visible(checked: CheckedCall) -> str:
    """The whole of what would run: a command as it is, else each argument with its name, with nothing hidden."""
    values = dict(checked.said)
    command = str(values.pop("command", ""))
    return show_hidden("\n".join(text for text in (command, facts(values)) if text))


def title(checked: CheckedCall) -> str:
    """The call in a line, in the tool's own words, with nothing hidden."""
    tool = checked.tool
    if tool.words is None:
        summary = tool.summary.rstrip(".")
        return show_hidden(cut(f"{summary}: {listed(checked.said)}" if checked.said else summary, TITLE_CHARACTERS))
    return show_hidden(words.title(tool.words, checked.arguments.model_dump(), checked.said))


def title_of(registry: Registry, name: str, arguments: str) -> str:
    """The same of a call as it is kept; its tool's name where it is none that can be read."""
    checked = check(registry, frozenset({name}), ToolCall(id="", name=name, arguments=arguments))
    return show_hidden(name) if isinstance(checked, str) else title(checked)


def behind_bridge(call: ToolCall) -> tuple[str, dict[str, Any]]:
    """The tool that is really meant and what it is given; the call as it stands where that cannot be read."""
    values = _parse(call.arguments)
    if isinstance(values, str):
        return call.name, {}
    unwrapped = _unwrap(values) if call.name == BRIDGE else (call.name, values)
    return (call.name, values) if isinstance(unwrapped, str) else unwrapped


def _parse(arguments: str) -> dict[str, Any] | str:
    """The argument object; no text at all means no arguments."""
    try:
        values = parsed(arguments or "{}")
    except ValueError as error:
        return f"The arguments are not valid JSON ({error}); nothing ran."
    if not isinstance(values, dict):
        return "The arguments must be a JSON object; nothing ran."
    return values


def _unwrap(values: dict[str, Any]) -> tuple[str, dict[str, Any]] | str:
    """Return what stands behind the bridge `tool_call(name, arguments)`."""
    name, inner = values.get("name"), values.get("arguments", {})
    if isinstance(inner, str):
        inner = _parse(inner)
        if isinstance(inner, str):
            return inner
    if not isinstance(name, str) or not isinstance(inner, dict) or name == BRIDGE:
        return "tool_call needs a name and an object of arguments; nothing ran."
    return name, inner


def _near(name: str, permitted: frozenset[str]) -> str:
    """One permitted name that is close, or ""."""
    return next(iter(get_close_matches(name, sorted(permitted), n=1, cutoff=0.8)), "")
