"""Whoever writes a text says whether it holds words from outside or private data: no default says it for them."""

import inspect
import pkgutil
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import cortex.storage
from cortex.base import scan
from cortex.storage.repository import Repository
from cortex.storage.table import Table

MARKS = {"is_tainted", "is_title_tainted", "is_private", "has_read_outside", "has_read_private", "reads"}
UNWRITTEN = {"CallRow"}  # a call that has not ended holds no text; `finish` says it
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


def test_no_query_that_writes_takes_a_text_for_clean_unasked() -> None:
    found = [
        (f"{kind.__name__}.{name}", parameter)
        for kind in of_storage(Repository)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        for parameter in inspect.signature(method).parameters.values()
        if parameter.name in MARKS
    ]
    assert {"TurnsRepository.create", "TasksRepository.create", "CallsRepository.finish"} <= {name for name, _ in found}
    assert [name for name, parameter in found if parameter.default is not parameter.empty] == []


def test_no_row_that_is_written_is_clean_unasked() -> None:
    rows = [kind for kind in of_storage(object) if is_dataclass(kind) and kind.__name__ not in UNWRITTEN]
    marked = [(kind.__name__, field) for kind in rows for field in fields(kind) if field.name in MARKS]
    assert {"NoticeValues", "JobValues", "ReminderValues"} <= {name for name, _ in marked}
    assert [name for name, field in marked if field.default is not MISSING] == ["TaskListRow"], "what is only read"
