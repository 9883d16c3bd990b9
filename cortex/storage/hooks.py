"""Web addresses that start jobs: one a job, and what came by it, each with the slot that it began."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import func, select

from cortex.base.errors import NotFound
from cortex.storage.repository import Repository, SharedRepository, reading, selected
from cortex.storage.schema import AccountTable, HookDeliveryTable, HookTable, JobTable, SlotTable


class HookRow(Struct, frozen=True, kw_only=True):
    """The address of a job, and how it fared. `because`: why the last one that was refused was."""

    job_id: str
    owner_id: str
    address: str
    needs_secret: bool
    made_at: datetime
    taken: int
    taken_at: datetime | None
    refused: int
    refused_at: datetime | None
    because: str


class HookDelivery(Struct, frozen=True, kw_only=True):
    """A delivery as it came, and the slot that it began."""

    slot_id: str
    text: str


class NamedHook(Struct, frozen=True, kw_only=True):
    """The address of a job, by the job's name."""

    job_id: str
    name: str


class HooksRepository(Repository):
    """The addresses of one user's jobs."""

    @reading
    async def get(self, job_id: str) -> HookRow | None:
        """The job's address; None where it has none."""
        return await self._first(HookRow, self._mine(HookRow, HookTable).where(HookTable.job_id == job_id))

    @reading
    async def of(self, job_ids: Sequence[str]) -> frozenset[str]:
        """Those of these jobs that have an address."""
        statement = select(HookTable.job_id).where(HookTable.owner_id == self.owner_id, HookTable.job_id.in_(job_ids))
        return frozenset((await self.session.execute(statement)).scalars())

    async def put(self, job_id: str, address: str, *, needs_secret: bool) -> None:
        """Give the job this address in place of another; its counts begin anew. NotFound for a foreign job."""
        standing = select(JobTable.id).where(
            JobTable.owner_id == self.owner_id, JobTable.id == job_id, JobTable.removed_at.is_(None)
        )
        if (await self.session.execute(standing)).first() is None:
            raise NotFound("This job does not exist.")
        values = {
            "address": address,
            "needs_secret": needs_secret,
            "made_at": self.clock(),
            "taken": 0,
            "taken_at": None,
            "refused": 0,
            "refused_at": None,
            "because": "",
        }
        statement = self._insert(HookTable, {"job_id": job_id, **values})
        await self.session.execute(statement.on_conflict_do_update(index_elements=["job_id"], set_=values))

    async def remove(self, job_id: str) -> bool:
        """Take the address away; whether there was one."""
        gone = self._remove(HookTable).where(HookTable.job_id == job_id)
        return bool(await self._touched(gone, HookTable.job_id))

    @reading
    async def all(self) -> Sequence[NamedHook]:
        """The addresses of the user's jobs, by the jobs' names."""
        statement = self._mine(NamedHook, HookTable, JobTable.name).join(JobTable, JobTable.id == HookTable.job_id)
        return await self._all(NamedHook, statement.order_by(JobTable.name, HookTable.job_id))

    @reading
    async def waiting(self, job_id: str) -> Sequence[str]:
        """Slots that something from outside planned for this job, and that have not begun."""
        statement = (
            select(HookDeliveryTable.slot_id)
            .join(SlotTable, SlotTable.id == HookDeliveryTable.slot_id)
            .where(HookDeliveryTable.owner_id == self.owner_id, HookDeliveryTable.job_id == job_id)
        )
        return (await self.session.execute(statement.where(SlotTable.state == "planned"))).scalars().all()

    async def note_refusal(self, job_id: str, because: str) -> None:
        """Count one more that was refused."""
        change = self._change(HookTable).where(HookTable.job_id == job_id)
        values = {"refused": HookTable.refused + 1, "refused_at": self.clock(), "because": because}
        await self.session.execute(change.values(**values))

    async def hold(self, job_id: str) -> None:
        """Let requests to this address be looked at one after the other, to the end of the transaction."""
        held = select(HookTable.job_id).where(HookTable.owner_id == self.owner_id, HookTable.job_id == job_id)
        await self.session.execute(held.with_for_update())  # SQLite has one writer anyway

    async def take(self, id: str, job_id: str, slot_id: str, text: str) -> None:
        """Keep what came, with the slot that it begins, and count it."""
        at = self.clock()
        row = {"id": id, "job_id": job_id, "slot_id": slot_id, "text": text, "at": at}
        await self.session.execute(self._insert(HookDeliveryTable, row))
        change = self._change(HookTable).where(HookTable.job_id == job_id)
        await self.session.execute(change.values(taken=HookTable.taken + 1, taken_at=at))

    @reading
    async def delivery(self, id: str) -> HookDelivery | None:
        """Return what came under this id; None when nothing did."""
        statement = self._mine(HookDelivery, HookDeliveryTable).where(HookDeliveryTable.id == id)
        return await self._first(HookDelivery, statement)

    @reading
    async def of_slot(self, slot_id: str) -> HookDelivery | None:
        """Return what began this slot; None for one that nothing from outside began."""
        statement = self._mine(HookDelivery, HookDeliveryTable).where(HookDeliveryTable.slot_id == slot_id)
        return await self._first(HookDelivery, statement)

    @reading
    async def begun(self, slot_ids: Sequence[str]) -> frozenset[str]:
        """Those of these slots that something from outside began."""
        columns = select(HookDeliveryTable.slot_id).where(HookDeliveryTable.owner_id == self.owner_id)
        return frozenset((await self.session.execute(columns.where(HookDeliveryTable.slot_id.in_(slot_ids)))).scalars())

    @reading
    async def counted(self, job_id: str, since: datetime) -> tuple[int, int]:
        """Return how many came for the job since then, and how many of all that came still wait to begin."""
        own = (HookDeliveryTable.owner_id == self.owner_id, HookDeliveryTable.job_id == job_id)
        lately = select(func.count()).select_from(HookDeliveryTable).where(*own, HookDeliveryTable.at > since)
        waiting = (
            select(func.count())
            .select_from(HookDeliveryTable)
            .join(SlotTable, SlotTable.id == HookDeliveryTable.slot_id)
        )
        counts = [
            (await self.session.execute(statement)).scalar_one()
            for statement in (lately, waiting.where(*own, SlotTable.state == "planned"))
        ]
        return counts[0], counts[1]


class AllHooksRepository(SharedRepository):
    """The addresses of everybody's jobs."""

    @reading
    async def at(self, address: str) -> HookRow | None:
        """The one of this address, of a job that stands and of an account that is open; else None."""
        statement = (
            selected(HookRow, HookTable)
            .join(JobTable, JobTable.id == HookTable.job_id)
            .join(AccountTable, AccountTable.id == HookTable.owner_id)
            .where(HookTable.address == address, JobTable.removed_at.is_(None), AccountTable.is_active)
        )
        return await self._first(HookRow, statement)
