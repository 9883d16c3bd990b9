"""Jobs that are due at the same moment, written beside a house: what they take until each was run, once."""

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, func, insert, select

from cortex.base.job import JobKind
from cortex.storage.job_rows import JobValues
from cortex.storage.repository import as_row
from cortex.storage.schema import AccountTable, JobTable, SlotTable, TurnTable
from tests.bench.figure import Figure
from tests.bench.houses import House, MostMemory, Onlooker
from tests.e2e.caller import Caller
from tests.e2e.crew import until
from tests.storage.made_time import NEWS

WAIT_S = 3_600.0
LOOK_S = 0.25


def job_rows(owner_ids: Iterable[str], values: JobValues, next_at: datetime) -> list[dict[str, Any]]:
    """A job of this kind for each of these people, one after the other; ids are in that order."""
    at = datetime.now(UTC)
    shared = {**as_row(values), "is_enabled": True, "next_at": next_at, "created_at": at, "updated_at": at}
    return [
        {**shared, "id": f"{values.kind}{number:05}", "owner_id": owner_id, "name": f"Job {number:04}"}
        for number, owner_id in enumerate(owner_ids)
    ]


def people(connection: Connection) -> Sequence[str]:
    """The ids of all accounts, the first one first."""
    return connection.execute(select(AccountTable.id).order_by(AccountTable.created_at)).scalars().all()


def due_at_once(house: House, person: Caller, kind: JobKind, count: int) -> list[Figure]:
    """Let so many be due: plain messages of one person ahead of another's prompt, or prompts of everybody by turns.

    RuntimeError when one was not run, or run twice: something else was measured.
    """
    began_at, began_s, used_s = datetime.now(UTC), time.perf_counter(), house.cpu_s()
    with Onlooker(house, person) as onlooker, MostMemory(house) as most:
        house.fill(lambda connection: _make_due(connection, kind, count))
        until(lambda: _is_over(house), WAIT_S, LOOK_S)
        took_s, used_s = time.perf_counter() - began_s, house.cpu_s() - used_s
    _check(house)
    how, what = f"{house.name}, {count:,} due at once", f"backlog of {kind}s"
    figures = [
        Figure(what=f"{what}, all told", value=took_s, unit="s", how=how),
        Figure(what=f"{what}, CPU of each", value=used_s / count * 1000, unit="ms", how=f"{how}; pages included"),
        Figure(what=f"{what}, memory at its most", value=most.mb, unit="MB", how=how),
    ]
    if kind == "message":
        waited_s = (_begun(house) - began_at).total_seconds()
        figures.append(Figure(what=f"{what}, another's prompt begun", value=waited_s, unit="s", how="the last in line"))
    return [*figures, *onlooker.figures(what, how)]


def _make_due(connection: Connection, kind: JobKind, count: int) -> None:
    """Due since this minute began."""
    at = datetime.now(UTC).replace(second=0, microsecond=0)
    daily = replace(NEWS, prompt="hello", expression=f"{at.minute} {at.hour} * * *", time_zone="UTC", notify_on="never")
    owners = people(connection)
    if kind == "message":
        rows = job_rows([owners[0]] * count, replace(daily, kind=kind), at)
        rows += job_rows([owners[1]], daily, at)
    else:
        rows = job_rows([owners[number % len(owners)] for number in range(count)], daily, at)
    connection.execute(insert(JobTable), rows)


def _is_over(house: House) -> bool:
    with house.rows() as connection:
        ended = select(SlotTable.id).where(SlotTable.job_id == JobTable.id, SlotTable.ended_at.is_not(None))
        left = select(func.count()).select_from(JobTable).where(~ended.exists())
        return connection.execute(left).scalar_one() == 0


def _begun(house: House) -> datetime:
    with house.rows() as connection:
        begun = select(func.min(SlotTable.started_at)).where(SlotTable.turn_id.is_not(None))
        at = connection.execute(begun).scalar_one()
    assert at is not None
    return at


def _check(house: House) -> None:
    with house.rows() as connection:
        told = select(JobTable.id, SlotTable.state, TurnTable.id).outerjoin(SlotTable, SlotTable.job_id == JobTable.id)
        rows = connection.execute(told.outerjoin(TurnTable, TurnTable.job_id == JobTable.id)).all()
    if any(state != "done" for _, state, _ in rows) or len({id for id, _, _ in rows}) != len(rows):
        raise RuntimeError("a job was not run, or was run twice: another thing was measured")
