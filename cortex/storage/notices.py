"""Notices and the outbox: a notice and its deliveries are written in one transaction, or not at all.

Who is notified by which channel is the services' matter; the way of a delivery stands in `deliveries.py`.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, case, delete, exists, func, or_, select, tuple_

from cortex.base.ids import derived_id, new_id
from cortex.ports.channels import ActionKind, ChannelName, NoticeKind, Urgency
from cortex.storage.repository import Repository, SharedRepository, as_row, reading
from cortex.storage.schema import DeliveryTable, NoticeTable
from cortex.storage.table import moment

KEPT_A_PERSON = 2_000
KEPT_FOR = timedelta(days=90)
_PRUNED_AT_ONCE = 500  # nobody else writes meanwhile


class NoticeValues(Struct, frozen=True, kw_only=True):
    """The content of a notice. `tag`: a later one of the same tag takes its place; `path`: the page it opens.

    `subject_id`: the slot, reminder, approval or turn that it is about.
    """

    kind: NoticeKind
    title: str
    text: str
    path: str = "/"
    tag: str = ""
    urgency: Urgency = "normal"
    actions: tuple[ActionKind, ...] = ()
    subject_id: str = ""
    is_tainted: bool
    expires_at: datetime | None = None


class NoticeRow(NoticeValues, frozen=True, kw_only=True):
    """A notice as it is kept. `is_replaced`: a later one stands in its place, and it is in no list."""

    id: str
    owner_id: str
    is_replaced: bool
    created_at: datetime
    read_at: datetime | None
    acknowledged_at: datetime | None


class Way(Struct, frozen=True, kw_only=True):
    """By what a notice goes out. `device_id`: of a push device; `not_before`: held until then, None goes at once."""

    channel: ChannelName
    device_id: str = ""
    not_before: datetime | None = None


class NoticeFilter(Struct, frozen=True, kw_only=True):
    """The notices that are wanted; what is empty narrows nothing."""

    kinds: Sequence[NoticeKind] = ()
    is_unread: bool = False
    since: datetime | None = None


class NoticesRepository(Repository):
    """The notices of one user."""

    async def forget_of(self, path: str) -> None:
        """Forget those, with their deliveries, that lead to this page or to a place on it."""
        await self.session.execute(self._remove(NoticeTable).where(NoticeTable.path.startswith(path, autoescape=True)))

    async def add(
        self, id: str | None, values: NoticeValues, ways: Sequence[Way] = (), *, is_read: bool = False
    ) -> bool:
        """Write it and send it on its ways; False, with nothing written, when this id was written before.

        Earlier notices of its tag count as read, and what of them was not sent yet is not sent any more. `is_read`:
        it stands in the list and waits for nobody.
        """
        at = self.clock()
        notice_id = id or new_id(self.clock)
        row = as_row(values, NoticeValues)
        row |= {"id": notice_id, "created_at": at, "read_at": at if is_read else None}
        if not await self._is_new(NoticeTable, row):
            return False
        if values.tag:
            await self._replace(values.tag, notice_id)
        if ways:
            await self._send(notice_id, ways, at)
        return True

    async def send_instead(self, id: str, ways: Sequence[Way]) -> bool:
        """Send it on these ways too, unless it arrived by another or may still do so; whether it is.

        Of two that ask at once for the same notice, one is heard after the other.
        """
        # SQLite knows no row locks and needs none: it has one writer at a time.
        await self.session.execute(select(NoticeTable.id).where(NoticeTable.id == id).with_for_update())
        may_arrive = exists().where(
            DeliveryTable.notice_id == id, DeliveryTable.state.in_(("pending", "attempting", "delivered"))
        )
        if not ways or (await self.session.execute(select(may_arrive))).scalar_one():
            return False
        await self._must_own(NoticeTable, id, "notice")
        await self._send(id, ways, self.clock())
        return True

    async def _send(self, id: str, ways: Sequence[Way], at: datetime) -> None:
        rows = [_delivery(id, way, at) for way in dict.fromkeys(ways)]
        await self.session.execute(self._insert(DeliveryTable, *rows).on_conflict_do_nothing())

    @reading
    async def list(
        self, wanted: NoticeFilter | None = None, *, before_id: str = "", limit: int = 50
    ) -> Sequence[NoticeRow]:
        """The newest first; `before_id`: those ahead of this one, the last of the page before."""
        wanted = wanted or NoticeFilter()
        statement = self._mine(NoticeRow, NoticeTable).where(~NoticeTable.is_replaced)
        if wanted.kinds:
            statement = statement.where(NoticeTable.kind.in_(wanted.kinds))
        if wanted.is_unread:
            statement = statement.where(*_unread(self.clock()))
        if wanted.since is not None:
            statement = statement.where(NoticeTable.created_at >= wanted.since)
        if before_id:
            last = await self.get(before_id)
            place = tuple_(NoticeTable.created_at, NoticeTable.id)
            statement = statement.where(place < tuple_(last.created_at, last.id, types=_PLACE))
        order = (NoticeTable.created_at.desc(), NoticeTable.id.desc())
        return await self._all(NoticeRow, statement.order_by(*order).limit(limit))

    @reading
    async def unread(self) -> int:
        """Return how many wait to be read; an approval whose time is up does not."""
        statement = select(func.count()).where(NoticeTable.owner_id == self.owner_id, *_unread(self.clock()))
        return (await self.session.execute(statement)).scalar_one()

    @reading
    async def is_news(self, path: str) -> bool:
        """Tell whether something that waits to be read opens this page, so that `seen` would mark it."""
        statement = self._mine(NoticeRow, NoticeTable).where(NoticeTable.path == path, NoticeTable.kind != "reminder")
        return await self._first(NoticeRow, statement.where(*_unread(self.clock())).limit(1)) is not None

    @reading
    async def get(self, id: str) -> NoticeRow:
        """The notice; NotFound when it is absent or another user's."""
        return await self._get(NoticeRow, NoticeTable, id, "This notice does not exist.")

    @reading
    async def unread_of(self, tag: str) -> NoticeRow | None:
        """The notice of this tag that waits to be read; None when there is none."""
        statement = self._mine(NoticeRow, NoticeTable).where(NoticeTable.tag == tag, *_unread(self.clock()))
        return await self._first(NoticeRow, statement.order_by(NoticeTable.created_at.desc()).limit(1))

    async def read(self, ids: Sequence[str]) -> int:
        """Mark these as read; how many were not before."""
        return await self._mark(NoticeTable.id.in_(ids))

    async def read_all(self, upto: datetime) -> int:
        """Mark as read what was written until then; how many were not before."""
        return await self._mark(NoticeTable.created_at <= upto)

    async def seen(self, path: str | None, id: str = "") -> int:
        """Mark as read this notice and what opens this page; how many were not before.

        No reminder: looking at it is not doing it, so it counts until it is done or put off.
        """
        return await self._mark(or_(NoticeTable.path == path, NoticeTable.id == id), NoticeTable.kind != "reminder")

    async def read_kinds(self, kinds: Sequence[NoticeKind]) -> int:
        """Mark as read all of these kinds; how many were not before."""
        return await self._mark(NoticeTable.kind.in_(kinds))

    async def acknowledge(self, id: str) -> NoticeRow:
        """Mark it as answered and read, and send no more of it; a second time changes nothing."""
        await self.get(id)
        await self._settle(NoticeTable.id == id)
        return await self.get(id)

    async def settle(self, subject_id: str) -> Sequence[str]:
        """Acknowledge every notice of this subject, and send no more of it; the ids of what waited for it."""
        return await self._settle(NoticeTable.subject_id == subject_id)

    async def unsettle(self, subject_id: str) -> None:
        """The last notice of this subject waits for an answer again; nothing of it is sent anew.

        It is unread again if the answer was what read it: neither a muted one nor one that was read before.
        """
        change = self._change(NoticeTable).where(NoticeTable.subject_id == subject_id, ~NoticeTable.is_replaced)
        read_before = case((NoticeTable.read_at != NoticeTable.acknowledged_at, NoticeTable.read_at), else_=None)
        await self.session.execute(change.values(acknowledged_at=None, read_at=read_before))

    async def _settle(self, which: ColumnElement[bool]) -> Sequence[str]:
        at = self.clock()
        change = self._change(NoticeTable).where(which, NoticeTable.acknowledged_at.is_(None))
        values = {"acknowledged_at": at, "read_at": func.coalesce(NoticeTable.read_at, moment(at))}
        ids = await self._touched(change.values(**values), NoticeTable.id)
        await self._drop(ids, "answered before it was sent")
        return ids

    async def _replace(self, tag: str, by_id: str) -> None:
        change = self._change(NoticeTable).where(
            NoticeTable.tag == tag, NoticeTable.id != by_id, ~NoticeTable.is_replaced
        )
        values = {"is_replaced": True, "read_at": func.coalesce(NoticeTable.read_at, moment(self.clock()))}
        ids = await self._touched(change.values(**values), NoticeTable.id)
        await self._drop(ids, "a later notice took its place")

    async def _drop(self, notice_ids: Sequence[str], why: str) -> None:
        if notice_ids:  # one that is on the wire is left to its sender, who books what became of it
            change = self._change(DeliveryTable).where(
                DeliveryTable.notice_id.in_(notice_ids), DeliveryTable.state == "pending"
            )
            values = {"state": "dropped", "error": why, "next_at": None, "ended_at": self.clock()}
            await self.session.execute(change.values(**values))

    async def _mark(self, *which: ColumnElement[bool]) -> int:
        change = self._change(NoticeTable).where(*which, NoticeTable.read_at.is_(None))
        return len(await self._touched(change.values(read_at=self.clock()), NoticeTable.id))


class AllNoticesRepository(SharedRepository):
    """The notices of everybody."""

    @reading
    async def low_since(self, since: datetime) -> frozenset[str]:
        """Return who has an unread one of low urgency from since then, other than a digest."""
        wanted = (NoticeTable.created_at >= since, NoticeTable.read_at.is_(None), NoticeTable.urgency == "low")
        statement = select(NoticeTable.owner_id).where(*wanted, NoticeTable.kind != "digest").distinct()
        return frozenset((await self.session.execute(statement)).scalars())

    async def prune(self, before: datetime | None = None, keep: int = KEPT_A_PERSON) -> int:
        """Forget notices, with deliveries, from before then (90 days ago), and all but a person's newest `keep`.

        What is still on its way stays. How many: at most 500 at once, so call it until there is none.
        """
        rank = func.row_number().over(partition_by=NoticeTable.owner_id, order_by=NoticeTable.created_at.desc())
        ranked = select(NoticeTable.id, NoticeTable.created_at, rank.label("rank")).subquery()
        is_on_its_way = exists().where(DeliveryTable.notice_id == ranked.c.id, DeliveryTable.next_at.is_not(None))
        is_old = ranked.c.created_at < (before or self.clock() - KEPT_FOR)
        found = select(ranked.c.id).where(or_(is_old, ranked.c.rank > keep), ~is_on_its_way).limit(_PRUNED_AT_ONCE)
        return len(await self._touched(delete(NoticeTable).where(NoticeTable.id.in_(found)), NoticeTable.id))


_PLACE = (NoticeTable.created_at.type, NoticeTable.id.type)


def _unread(at: datetime) -> tuple[ColumnElement[bool], ...]:
    is_in_time = or_(NoticeTable.expires_at.is_(None), NoticeTable.expires_at > at)
    return NoticeTable.read_at.is_(None), is_in_time


def _delivery(notice_id: str, way: Way, at: datetime) -> dict[str, Any]:
    return {
        "id": derived_id("delivery", notice_id, way.channel, way.device_id),
        "notice_id": notice_id,
        "channel": way.channel,
        "device_id": way.device_id,
        "next_at": way.not_before or at,
        "created_at": at,
    }
