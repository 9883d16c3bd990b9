"""Puts the streamed pieces of tool calls together, also where a server numbers them carelessly.

A piece without a name always goes on with a call. One with a name begins a new call, unless it repeats the name of a
call that is not whole yet: some servers send the name, or a new id, with each piece. Pure.
"""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from cortex.base.json_text import parsed
from cortex.base.messages import ToolCall

_READ_MOST = 10_000_000  # characters, over all looks whether a call is whole


class _Call(Struct, kw_only=True):
    id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    may_be_whole: bool = False  # its last sign closes an object
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class CallPieces:
    """The calls of one answer. Each piece costs the same, however many came."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._at_index: dict[Any, _Call] = {}  # the newest of each
        self._by_id: dict[str, _Call] = {}
        self._read = 0

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take in one piece of `tool_calls`."""
        function = piece.get("function")
        function = function if isinstance(function, Mapping) else {}
        name, arguments = _text(function.get("name")), _arguments(function.get("arguments"))
        index, call_id = _index(piece.get("index")), _text(piece.get("id"))
        call = self._going_on(index, name, call_id, arguments)
        if call is None:
            call = _Call(id=call_id, name=name)
            self._calls.append(call)
            self._at_index[index] = self._by_id[call_id] = call
        if arguments:
            call.pieces.append(arguments)
            call.may_be_whole = arguments.rstrip()[-1:] == "}" or (call.may_be_whole and not arguments.strip())
        if call_id and not call.id:
            call.id = call_id
            self._by_id.setdefault(call_id, call)
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

    def _going_on(self, index: object, name: str, call_id: str, arguments: str) -> _Call | None:
        """The call that this piece goes on with; None where it begins one."""
        if not self._calls:
            return None
        at_index = None if index is None else self._at_index.get(index)
        by_id = self._by_id.get(call_id) if call_id else None
        last = self._calls[-1]
        if not name:
            return at_index or by_id or last
        if at_index is None and by_id is None:
            is_repeated = index is None and not call_id and name == last.name and not self._is_whole(last)
            return last if is_repeated else None
        call = at_index or by_id or last
        if call.id not in ("", call_id) and call_id and not (arguments or call.pieces):
            return None  # two calls without arguments
        return None if (call.name and call.name != name) or self._is_whole(call) else call

    def _is_whole(self, call: _Call) -> bool:
        """Tell whether its arguments are a whole object; read only where they may end, and not without end."""
        if not call.may_be_whole or self._read > _READ_MOST:
            return False
        text = call.arguments
        self._read += len(text)
        try:
            return isinstance(parsed(text), dict)
        except ValueError:
            return False


_KNOWN = ("index", "id", "type", "function")


def _index(value: object) -> object:
    return value if isinstance(value, int | float | str) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: object) -> str:
    """The arguments as text: some servers send the object itself."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else ""
