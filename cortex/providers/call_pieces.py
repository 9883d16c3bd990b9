"""Puts the streamed pieces of tool calls together, also where a server numbers them carelessly.

A piece without a name always goes on with a call. One with a name begins a new call, unless it repeats the name of a
call that is not whole yet: some servers send the name, or a new id, with each piece. Pure.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cortex.base.json_text import parsed
from cortex.base.messages import ToolCall


@dataclass(slots=True, kw_only=True)
class _Call:
    index: Any
    id: str
    name: str
    arguments: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        try:
            return isinstance(parsed(self.arguments), dict)
        except ValueError:
            return False


class CallPieces:
    """The calls of one answer."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take in one piece of `tool_calls`."""
        function = piece.get("function")
        function = function if isinstance(function, Mapping) else {}
        name, arguments = _text(function.get("name")), _arguments(function.get("arguments"))
        call = self._going_on(piece, name, _text(piece.get("id")), arguments)
        if call is None:
            call = _Call(index=piece.get("index"), id=_text(piece.get("id")), name=name)
            self._calls.append(call)
        call.arguments += arguments
        call.id = call.id or _text(piece.get("id"))
        call.name = call.name or name
        # What else stands in a call is its maker's own, such as Google's signatures, and goes back with it.
        call.extra |= {key: value for key, value in piece.items() if key not in _KNOWN and value is not None}

    def calls(self) -> list[tuple[ToolCall, dict[str, Any]]]:
        """The calls that have a name, each with what else its server said of it."""
        return [
            (ToolCall(id=call.id, name=call.name, arguments=call.arguments), call.extra)
            for call in self._calls
            if call.name
        ]

    def _going_on(self, piece: Mapping[str, Any], name: str, call_id: str, arguments: str) -> _Call | None:
        """The call that this piece goes on with; None where it begins one."""
        if not self._calls:
            return None
        index = piece.get("index")
        at_index = next((call for call in reversed(self._calls) if index is not None and call.index == index), None)
        by_id = next((call for call in reversed(self._calls) if call_id and call.id == call_id), None)
        last = self._calls[-1]
        if not name:
            return at_index or by_id or last
        if at_index is None and by_id is None:
            is_repeated = index is None and not call_id and name == last.name and not last.is_whole
            return last if is_repeated else None
        call = at_index or by_id or last
        if call.id not in ("", call_id) and call_id and not (arguments or call.arguments):
            return None  # two calls without arguments
        return None if call.is_whole or (call.name and call.name != name) else call


_KNOWN = ("index", "id", "type", "function")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: object) -> str:
    """The arguments as text: some servers send the object itself."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else ""
