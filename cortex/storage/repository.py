"""What every repository is: queries bound to one session and one user. Knows no table.

A query that forgets the user cannot be written: `_mine`, `_change`, `_remove` and `_insert` put the owner in.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Protocol, TypeVar, cast

from sqlalchemy import (
    CTE,
    ColumnElement,
    Delete,
    Executable,
    Result,
    Select,
    Update,
    delete,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession

from cortex.base.clock import Clock, now
from cortex.base.errors import NotFound
from cortex.base.record import field_names
from cortex.storage import kept
from cortex.storage.table import Table

V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


class Scopes(Protocol):
    """Opens a session for one call."""

    def session_scope(self, *, reading: bool = False) -> AbstractAsyncContextManager[AsyncSession]:
        """A session that commits when the block ends well and rolls back when it does not."""
        ...


def reading(method: F) -> F:
    """Mark a repository method that only reads: it is served by the read engine, beside any writer."""
    method.__dict__["is_reading"] = True
    return method


@functools.cache
def selected(kind: type[Any], table: type[Table]) -> Select[Any]:
    """The rows of `table`, of everybody, as the columns that the record `kind` asks for and the table has."""
    return select(*(getattr(table, name) for name in field_names(kind) if hasattr(table, name)))


def _matching(kind: type[Any], table: type[Table], names: tuple[str, ...], order: tuple[str, ...] = ()) -> Select[Any]:
    return kept.matching(kind, table, names, order)  # type: ignore[arg-type]  # mypy takes no class for hashable


def as_row(value: Any, kind: type[Any] | None = None) -> dict[str, Any]:  # Any: a record
    """The fields of a value by name, of one that adds to `kind` those of that alone."""
    return {name: getattr(value, name) for name in field_names(kind or value)}


def _in_a_scope(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The method, in a session of its own where its repository has none."""
    is_reading = getattr(method, "is_reading", False)

    @functools.wraps(method)
    async def call(self: "Repository", *args: Any, **kwargs: Any) -> Any:
        if self._scopes is None:
            return await method(self, *args, **kwargs)
        async with self._scopes.session_scope(reading=is_reading) as session:
            return await method(type(self)(session, self.owner_id, self.clock), *args, **kwargs)

    return call


class Repository:
    """Base of the queries of one noun, bound to `owner_id`. Nobody commits here: the session's scope does.

    Made over a session it works in that one's transaction. Made over a database each call of a public method has a
    short transaction of its own, on the read engine for those marked `@reading`.
    """

    is_shared: ClassVar[bool] = False

    def __init__(self, session: AsyncSession | Scopes, owner_id: str, clock: Clock = now) -> None:
        if not owner_id and not self.is_shared:
            raise ValueError(f"{type(self).__name__} needs the user whose rows it may see")
        self._session = session if isinstance(session, AsyncSession) else None
        self._scopes = None if isinstance(session, AsyncSession) else session
        self.owner_id = owner_id
        self.clock = clock

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if not name.startswith("_") and inspect.iscoroutinefunction(method):
                setattr(cls, name, _in_a_scope(method))

    @property
    def session(self) -> AsyncSession:
        """The session of the call that is going on."""
        if self._session is None:
            raise RuntimeError(f"{type(self).__name__} has a session inside its methods only")
        return self._session

    @property
    def _is_postgresql(self) -> bool:
        return str(cast("Any", self.session.bind).dialect.name) == "postgresql"  # Any: an engine of either kind

    def _mine(self, kind: type[Any], table: type[Any], *more: Any) -> Select[Any]:
        """The user's rows of `table`, as the columns that the record `kind` asks for, then the columns `more`."""
        return selected(kind, table).add_columns(*more).where(self._reach(table))  # type: ignore[arg-type]

    def _change(self, table: type[Any]) -> Update:
        # Rows are read as columns here: a session holds no object that would have to follow.
        return update(table).where(self._reach(table)).execution_options(synchronize_session=False)

    def _remove(self, table: type[Any]) -> Delete:
        return delete(table).where(self._reach(table)).execution_options(synchronize_session=False)

    def _reach(self, table: type[Any]) -> ColumnElement[bool]:
        """Say which rows of the table the user may see and change: their own. What is shared joins a membership."""
        return cast("ColumnElement[bool]", table.owner_id == self.owner_id)

    def _checked(self, table: type[Any]) -> ColumnElement[bool]:
        """As `_reach`, for a few rows that another condition finds.

        No index knows it: SQLite keeps no figures of its tables, and would read all rows of the person to find those.
        """
        return cast("ColumnElement[bool]", table.owner_id.concat(literal_column("''")) == self.owner_id)

    def _insert(self, table: type[Any], *rows: dict[str, Any]) -> postgresql.Insert | sqlite.Insert:
        """An insert of the user's rows that can still take an ON CONFLICT clause."""
        return self._upsert(table, *({**row, "owner_id": self.owner_id} for row in rows))

    def _upsert(self, table: type[Any], *rows: dict[str, Any]) -> postgresql.Insert | sqlite.Insert:
        """An insert in the database's own dialect, which knows `on_conflict_do_nothing` and `..._do_update`."""
        statement = postgresql.insert(table) if self._is_postgresql else sqlite.insert(table)
        if not rows:  # they are given with the statement
            return statement
        return statement.values(rows[0] if len(rows) == 1 else list(rows))  # one row: compiled once; more: each time

    async def _run(self, statement: Executable, **given: Any) -> Result[Any]:
        """Run a kept statement (`kept.py`) for this user with these values."""
        return await self.session.execute(statement, kept.parameters(self.owner_id, given))

    async def _rows_of(self, kind: type[V], statement: Select[Any], **given: Any) -> list[V]:
        """The rows of a kept statement."""
        rows = await self._run(statement, **given)
        names = tuple(rows.keys())
        return [kind(**kept.named(names, row)) for row in rows]

    async def _row_of(self, kind: type[V], statement: Select[Any] | Update, **given: Any) -> V | None:
        """The first row of a kept statement; say LIMIT in it where there may be more."""
        rows = await self._run(statement, **given)
        row = rows.first()
        return None if row is None else kind(**kept.named(tuple(rows.keys()), row))

    async def _where(self, kind: type[V], table: type[Table], *order: str, **equal: Any) -> list[V]:
        """The user's rows with these values in columns of these names."""
        return await self._rows_of(kind, _matching(kind, table, tuple(equal), order), **equal)

    async def _add(self, table: type[Table], rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows of the user's, none or several."""
        if rows:
            owned = [{**row, "owner_id": self.owner_id} for row in rows]
            await self.session.execute(kept.adding(table), owned[0] if len(owned) == 1 else owned)

    async def _add_new(self, table: type[Table], rows: Sequence[dict[str, Any]]) -> None:
        """Insert those rows of the user's whose key does not stand yet."""
        if rows:
            owned = [{**row, "owner_id": self.owner_id} for row in rows]
            statement = kept.adding_new(table, self._is_postgresql, tells=False)
            await self.session.execute(statement, owned[0] if len(owned) == 1 else owned)

    async def _put_row(
        self, table: type[Table], row: dict[str, Any], keys: tuple[str, ...], changed: tuple[str, ...]
    ) -> None:
        """Insert the user's row, or set the columns `changed` in the one of this key, if that is theirs."""
        statement = kept.putting(table, self._is_postgresql, keys, changed)
        await self.session.execute(statement, {**row, "owner_id": self.owner_id})

    async def _is_new(self, table: type[Table], values: dict[str, Any]) -> bool:
        """Insert the row unless its key stands already; whether it was inserted."""
        statement = kept.adding_new(table, self._is_postgresql, tells=True)
        return (await self.session.execute(statement, {**values, "owner_id": self.owner_id})).first() is not None

    async def _must_own(self, table: type[Table], id: str, what: str) -> None:
        """NotFound unless the row of this id, which a new row is to hang on, is the user's own."""
        if (await self._run(kept.key_of(table), id=id)).first() is None:
            raise NotFound(f"There is no such {what}.")

    async def _all(self, kind: type[V], statement: Select[Any]) -> list[V]:
        rows = await self.session.execute(statement)
        return [kind(**row) for row in rows.mappings()]

    async def _first(self, kind: type[V], statement: Select[Any]) -> V | None:
        row = (await self.session.execute(statement.limit(1))).mappings().first()
        return None if row is None else kind(**row)

    async def _one(self, kind: type[V], statement: Select[Any], absent: str) -> V:
        """The first row; NotFound, in these words, when there is none."""
        found = await self._first(kind, statement)
        if found is None:
            raise NotFound(absent)
        return found

    async def _get(self, kind: type[V], table: type[Table], id: str, absent: str) -> V:
        """The user's own row of this id, as `kind`; NotFound, in these words, when it is absent or another user's."""
        found = await self._row_of(kind, _matching(kind, table, ("id",)), id=id)
        if found is None:
            raise NotFound(absent)
        return found

    async def _touched(self, statement: Update | Delete, key: Any) -> Sequence[Any]:
        """Run the change; the `key` of each row that it touched."""
        return (await self.session.execute(statement.returning(key))).scalars().all()

    async def _must_touch(self, statement: Update | Delete, key: Any, absent: str) -> None:
        """Run the change; NotFound, in these words, when it touched no row."""
        if not await self._touched(statement, key):
            raise NotFound(absent)


def each(column: Any) -> CTE:  # Any: a mapped column of any type
    """Each value of the column once, as `value`: from one to the next in the index that begins with it.

    SELECT DISTINCT reads all rows there are.
    """
    values = select(func.min(column).label("value")).cte("each_value", recursive=True)
    later = select(func.min(column)).where(column > values.c.value).correlate(values).scalar_subquery()
    return values.union_all(select(later).where(values.c.value.is_not(None)))


class SharedRepository(Repository):
    """For what belongs to the server and not to a user: accounts, the audit log, the engine's start."""

    is_shared: ClassVar[bool] = True

    def __init__(self, session: AsyncSession | Scopes, owner_id: str = "", clock: Clock = now) -> None:
        super().__init__(session, owner_id, clock)
