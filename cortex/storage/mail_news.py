"""Which mails begin which jobs, and the mails that came and that nobody has looked at yet for that."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import and_, delete, or_, select

from cortex.base.errors import NotFound
from cortex.storage.repository import Repository, as_row, reading
from cortex.storage.schema import JobTable, MailFolderTable, MailNewsTable, MailTable, MailTriggerTable


class MailTriggerRow(Struct, frozen=True, kw_only=True):
    """The mails that begin a job: all that is said must hold, "" says nothing. `since`: earlier ones begin nothing."""

    job_id: str
    account_id: str
    sender: str
    subject: str
    words: str
    since: datetime


class MailNews(Struct, frozen=True, kw_only=True):
    """A mail that came. `recipients`: as JSON, pairs of address and name."""

    id: str
    account_id: str
    at: datetime
    sender: str
    sender_name: str
    recipients: str
    subject: str
    message_id: str


class MailNewsRepository(Repository):
    """The jobs of one person that mails begin, and their mails that came."""

    @reading
    async def trigger(self, job_id: str) -> MailTriggerRow | None:
        """The mails that begin a job; None where none do."""
        statement = self._mine(MailTriggerRow, MailTriggerTable).where(MailTriggerTable.job_id == job_id)
        return await self._first(MailTriggerRow, statement)

    @reading
    async def triggers(self) -> Sequence[MailTriggerRow]:
        """Those of all jobs that stand."""
        statement = self._mine(MailTriggerRow, MailTriggerTable).join(JobTable, JobTable.id == MailTriggerTable.job_id)
        standing = statement.where(JobTable.removed_at.is_(None)).order_by(MailTriggerTable.job_id)
        return await self._all(MailTriggerRow, standing)

    async def put(self, trigger: MailTriggerRow) -> None:
        """Have these mails begin a job. NotFound for a foreign job."""
        mine = select(JobTable.id).where(
            JobTable.owner_id == self.owner_id, JobTable.id == trigger.job_id, JobTable.removed_at.is_(None)
        )
        if (await self.session.execute(mine)).first() is None:
            raise NotFound("This job does not exist.")
        values = as_row(trigger)
        statement = self._insert(MailTriggerTable, values)
        kept = {name: value for name, value in values.items() if name != "job_id"}
        await self.session.execute(statement.on_conflict_do_update(index_elements=["job_id"], set_=kept))

    async def remove(self, job_id: str) -> bool:
        """Have no mail begin a job any more; whether some did."""
        gone = self._remove(MailTriggerTable).where(MailTriggerTable.job_id == job_id)
        return bool(await self._touched(gone, MailTriggerTable.job_id))

    async def hold(self, job_id: str) -> None:
        """Let mails be looked at for this job one after the other, to the end of the transaction."""
        held = select(MailTriggerTable.job_id).where(
            MailTriggerTable.owner_id == self.owner_id, MailTriggerTable.job_id == job_id
        )
        await self.session.execute(held.with_for_update())  # SQLite has one writer anyway

    @reading
    async def news(self, most: int, after: MailNews | None = None) -> Sequence[MailNews]:
        """Mails that came, the oldest first. `after`: those behind this one."""
        statement = (
            self._mine(MailNews, MailTable, MailFolderTable.account_id)
            .join(MailNewsTable, MailNewsTable.mail_id == MailTable.id)
            .join(MailFolderTable, MailFolderTable.id == MailTable.folder_id)
            .order_by(MailTable.at, MailTable.id)
        )
        if after is not None:
            behind = and_(MailTable.at == after.at, MailTable.id > after.id)
            statement = statement.where(or_(MailTable.at > after.at, behind))
        return await self._all(MailNews, statement.limit(most))

    async def looked_at(self, id: str) -> None:
        """Let a mail be news no more."""
        gone = delete(MailNewsTable).where(MailNewsTable.owner_id == self.owner_id, MailNewsTable.mail_id == id)
        await self.session.execute(gone)
