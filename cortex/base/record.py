"""Records, the value classes of the house (`msgspec.Struct`), by the names of their fields, as dicts, and veiled.

Called by whoever stores records, compares them or shows them whole; JSON that is read back is `base/portable.py`'s.
"""

import functools
from collections.abc import Mapping
from typing import Any, ClassVar, TypeGuard

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields


def is_record(value: object) -> TypeGuard[Struct]:
    """Tell whether it is a record, and no class of them."""
    return isinstance(value, Struct)


def is_kind(kind: object) -> TypeGuard[type[Struct]]:
    """Tell whether it is a class of records."""
    return isinstance(kind, type) and issubclass(kind, Struct)


def field_names(record: Struct | type[Struct]) -> tuple[str, ...]:
    """The names of its fields in order, a parent's first."""
    return record.__struct_fields__


@functools.lru_cache(maxsize=256)
def defaults(kind: type[Struct]) -> Mapping[str, Any]:
    """The default of each field that has one, but for what a factory makes."""
    return {one.name: one.default for one in fields(kind) if one.default is not NODEFAULT}


def as_dict(record: Struct) -> dict[str, Any]:
    """The record as a dict by field, and so each record in it, in lists, tuples and dicts too."""
    return {name: _plain(getattr(record, name)) for name in record.__struct_fields__}


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return as_dict(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_plain, value))
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return value


class Veiled:
    """Before `Struct` among a record's bases: what is secret in it stands in no log, no traceback and no error.

    `VEILED`: the fields that are not shown; none named hides them all.
    """

    __slots__ = ()
    VEILED: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({told})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The fields that may be seen, as the terminal's tracebacks ask for them."""
        names: tuple[str, ...] = getattr(self, "__struct_fields__", ())
        shown = [name for name in names if name not in self.VEILED] if self.VEILED else []
        return [(name, getattr(self, name)) for name in shown]
