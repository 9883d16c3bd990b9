"""Whoever writes a text says whether it holds words from outside or private data: no default says it for them."""

import inspect
import pkgutil
from collections.abc import Callable
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import cortex.storage
from cortex.base import scan
from cortex.base.record import defaults, field_names, is_kind
from cortex.storage.repository import Repository
from cortex.storage.table import Table

MARKS = {"is_tainted", "is_title_tainted", "is_private", "has_read_outside", "has_read_private", "reads"}
CHANGES = {"change", "move", "update"}  # what they leave out stays as it is
UNWRITTEN = {"CallRow", "Turn"}  # a call that has not ended holds no text, `finish` says it; a turn is only read
MODULES = [scan.load(f"cortex.storage.{found.name}") for found in pkgutil.iter_modules(cortex.storage.__path__)]


def of_storage(kind: type[Any]) -> list[type[Any]]:
    """The classes of this kind in all modules of `storage`."""
    found = {value for module in MODULES for value in vars(module).values() if isinstance(value, type)}
    return sorted((one for one in found if issubclass(one, kind)), key=lambda one: one.__name__)


def test_every_mark_is_a_column_that_must_be_given() -> None:
    columns = [column for table in Table.metadata.tables.values() for column in table.columns if column.name in MARKS]
    assert len({column.table.name for column in columns}) >= 9
    lax = [str(column) for column in columns if column.nullable or column.default or column.server_default]
    assert lax == []


def given_to(method: Callable[..., Any]) -> dict[str, bool]:
    """What can be given to it by name, also in a row of keywords or a value of ours: whether it has to be."""
    found: dict[str, bool] = {}
    hints = get_type_hints(method, include_extras=True)
    for parameter in inspect.signature(method).parameters.values():
        kind = hints.get(parameter.name)
        if parameter.kind is parameter.VAR_KEYWORD and get_origin(kind) is Unpack:
            (kind,) = get_args(kind)
            found |= {name: name in kind.__required_keys__ for name in kind.__annotations__}
        elif is_kind(kind) and kind.__name__ not in UNWRITTEN:
            found |= {name: name not in defaults(kind) for name in field_names(kind)}
        else:
            found[parameter.name] = parameter.default is parameter.empty
    return found


def test_no_query_that_writes_takes_a_text_for_clean_unasked() -> None:
    found = [
        (f"{kind.__name__}.{name}", is_required)
        for kind in of_storage(Repository)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and name not in CHANGES
        for mark, is_required in given_to(method).items()
        if mark in MARKS
    ]
    assert {"TurnsRepository.create", "TasksRepository.create", "CallsRepository.finish"} <= {name for name, _ in found}
    assert [name for name, is_required in found if not is_required] == []


def test_no_row_that_is_written_is_clean_unasked() -> None:
    rows = [kind for kind in of_storage(object) if is_kind(kind) and kind.__name__ not in UNWRITTEN]
    marked = [(kind, name) for kind in rows for name in field_names(kind) if name in MARKS]
    assert {"NewTurn", "NoticeValues", "JobValues", "ReminderValues"} <= {kind.__name__ for kind, _ in marked}
    lax = [kind.__name__ for kind, name in marked if name in defaults(kind)]
    assert lax == ["EntryChange", "TaskListRow"], "one can only set the mark, the other is only read"
