"""Values to JSON and back, by their types: messages, plans and rows are stored and read again so, byte for byte.

Knows records, tuples, dicts, literals, dates, times and plain values. What a run's steps keep says its
class itself, since its reader cannot know it: that is `engine/durable.py`.
"""

import json
import types
import typing
from collections.abc import Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any, TypeVar

from cortex.base.record import is_kind, is_record

T = TypeVar("T")
_AS_IT_IS = (str, int, float, bool, types.NoneType)  # by far the most: they are looked at first


def dumps(value: Any) -> str:
    """The value as canonical JSON: sorted keys, no blanks; equal values give equal bytes."""
    return canonical(plain(value))


def canonical(data: Any) -> str:
    """Write what `plain` gave as canonical JSON."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def plain(value: Any) -> Any:
    """The value as dicts, lists and plain values."""
    if isinstance(value, _AS_IT_IS):
        return value
    if is_record(value):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value.isoformat() if isinstance(value, date) else value


def read(kind: type[T], data: Any) -> T:
    """The value of this type that `plain` wrote; keys that the type no longer has are passed over."""
    made: T = _read(kind, data)
    return made


def _read(kind: Any, data: Any) -> Any:
    if kind in _AS_IT_IS and kind is not float:
        return data
    if is_kind(kind):
        hints = _hints(kind)
        return kind(**{name: _read(hints[name], item) for name, item in data.items() if name in hints})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (tuple, Sequence):
        arguments = arguments if origin is tuple else (*arguments, Ellipsis)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_read(arguments[0], item) for item in data)
        return tuple(_read(each, item) for each, item in zip(arguments, data, strict=True))
    if origin in (typing.Union, types.UnionType) and data is not None:
        return _read(next(each for each in arguments if each is not type(None)), data)
    if kind in (date, datetime):
        return kind.fromisoformat(data)
    return float(data) if kind is float else data


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
