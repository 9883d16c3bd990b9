"""Statements that are made once and kept, compiled once: whatever differs from call to call is a parameter of theirs.

Made of the table's own columns (`columns`): those of the mapped class go through the ORM on each run. Kept under types
and names that stand in the code, never under what a person or a row says. `Repository._run` says whose rows are meant.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Insert, Select, Update, bindparam, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from cortex.base.record import field_names
from cortex.storage.table import Table

OWNER = "owner"


def columns(table: type[Table]) -> Any:  # Any: a collection whose attributes are the columns
    """The columns of the table itself, by name."""
    return table.__table__.c


def given(name: str) -> BindParameter[Any]:
    """A parameter that each run gives under this name."""
    return bindparam(f"{name}_")


def several(name: str) -> BindParameter[Any]:
    """A parameter that each run gives as a list, behind `in_`."""
    return bindparam(f"{name}_", expanding=True)


def parameters(owner_id: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values of a run as the statement's parameters are called; whose rows are meant is said here and last."""
    return {**{f"{name}_": value for name, value in values.items()}, f"{OWNER}_": owner_id}


def is_own(table: type[Table]) -> ColumnElement[bool]:
    """The condition that a row is of the user for whom the statement runs."""
    condition: ColumnElement[bool] = columns(table).owner_id == given(OWNER)
    return condition


def whole(kind: type[Any], table: type[Table], *more: Any) -> Select[Any]:
    """The rows of everybody, as the columns that `kind` asks for and the table has, then the columns `more`."""
    has = columns(table)
    return select(*(has[name] for name in field_names(kind) if name in has), *more)


def owned(kind: type[Any], table: type[Table], *more: Any) -> Select[Any]:
    """As `whole`, of the user for whom it runs."""
    return whole(kind, table, *more).where(is_own(table))


@lru_cache(maxsize=256)
def matching(kind: type[Any], table: type[Table], names: tuple[str, ...], order: tuple[str, ...] = ()) -> Select[Any]:
    """The user's rows in which each column of `names` is as given, in the order of these columns."""
    has = columns(table)
    equal = (has[name] == given(name) for name in names)
    return owned(kind, table).where(*equal).order_by(*(has[name] for name in order))


@lru_cache(maxsize=256)
def key_of(table: type[Table]) -> Select[Any]:
    """The id of the user's row of this id."""
    has = columns(table)
    return select(has.id).where(is_own(table), has.id == given("id"))


@lru_cache(maxsize=256)
def setting(table: type[Table], names: tuple[str, ...]) -> Update:
    """Set these columns in the user's row of this id; the id, when there is one. The new values are given by name."""
    has = columns(table)
    change = update(table.__table__).where(is_own(table), has.id == given("id"))  # type: ignore[arg-type]
    return change.values({name: given(name) for name in names}).returning(has.id)


@lru_cache(maxsize=256)
def adding(table: type[Table]) -> Insert:
    """Insert the rows that it is run with."""
    return insert(table.__table__)  # type: ignore[arg-type]  # it is typed as what it may be, and is a table


@lru_cache(maxsize=256)
def adding_new(table: type[Table], is_postgresql: bool, *, tells: bool) -> Insert:
    """Insert the rows that it is run with, unless their key stands already; `tells`: the key of one that did not."""
    statement: Insert = _dialect(is_postgresql).insert(table.__table__).on_conflict_do_nothing()
    return statement.returning(next(iter(table.__table__.primary_key))) if tells else statement


@lru_cache(maxsize=256)
def putting(table: type[Table], is_postgresql: bool, keys: tuple[str, ...], names: tuple[str, ...]) -> Insert:
    """Insert the user's row, or set these columns in the one of this key where that is the user's too."""
    statement = _dialect(is_postgresql).insert(table.__table__)
    new = statement.excluded
    mine = columns(table).owner_id == new.owner_id
    changed: Insert = statement.on_conflict_do_update(
        index_elements=list(keys), set_={name: new[name] for name in names}, where=mine
    )
    return changed


def _dialect(is_postgresql: bool) -> Any:  # Any: two modules that know the same
    return postgresql if is_postgresql else sqlite


def named(names: Sequence[str], row: Any) -> dict[str, Any]:
    """A row by the names of its columns."""
    return dict(zip(names, row, strict=True))
