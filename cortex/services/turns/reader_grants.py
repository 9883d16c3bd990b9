"""Keeps what a chat or a job may write where others read it: allowed by a settled approval, or on the job's page.

Such a grant is for a list with exactly the people who read it then: another reader, and it is asked about anew.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta

from msgspec import Struct

from cortex.base.errors import NotFound
from cortex.base.turn import Turn
from cortex.base.user import User
from cortex.ports.loop import ApprovalRequest
from cortex.storage.approvals import ApprovalRow, GrantsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database, Opener
from cortex.storage.jobs import JobsRepository
from cortex.storage.shared_lists import SharedListsRepository
from cortex.storage.turns import TurnsRepository

GRANT_HOURS = 12
JOB_GRANT = timedelta(days=365)
LIST = "list:"


class ListChoice(Struct, frozen=True, kw_only=True):
    """A shared list on a job's page. `is_allowed`: the job may write there without asking."""

    id: str
    words: str
    is_allowed: bool


class ReaderGrants(Struct, frozen=True, kw_only=True):
    """The grants of one person at a time."""

    db: Database

    async def cover(self, turn: Turn, readers: Collection[str]) -> bool:
        """Tell whether the turn's conversation, or for a job's run its job, may write for all of these."""
        held = await self.db.repository(GrantsRepository, turn.user_id).readers(turn.conversation_id, turn.job_id)
        return held.issuperset(readers)

    async def settle(self, repository: Opener, row: ApprovalRow) -> None:
        """In the transaction of the answer: allow what was asked for, to the job whose run asked, or in this chat."""
        job_id = (await repository(TurnsRepository).get(row.turn_id)).job_id or None
        grants = repository(GrantsRepository)
        for key in row.readers.split():
            await grants.add(
                "",
                row.destination,
                None if job_id else row.conversation_id,
                grants.clock() + (JOB_GRANT if job_id else timedelta(hours=GRANT_HOURS)),
                readers=key,
                job_id=job_id,
            )

    async def of_job(self, user: User, job_id: str) -> Sequence[ListChoice]:
        """The person's shared lists, and which of them the job may write to; NotFound for a foreign job."""
        async with self.db.read_transaction(user.id) as repository:
            await repository(JobsRepository).get(job_id)
            held = {one.readers for one in await repository(GrantsRepository).of_job(job_id)}
            lists = [one for one in await repository(SharedListsRepository).list() if one.readers]
        return [ListChoice(id=one.id, words=one.read_by, is_allowed=one.readers in held) for one in lists]

    async def allow(self, user: User, job_id: str, list_ids: Collection[str]) -> None:
        """Let the job write to exactly these of the person's shared lists without asking. NotFound."""
        async with self.db.transaction(user.id) as repository:
            job = await repository(JobsRepository).get(job_id)
            grants = repository(GrantsRepository)
            lists = {one.id: one for one in await repository(SharedListsRepository).list() if one.readers}
            if not lists.keys() >= set(list_ids):
                raise NotFound("This list is not shared any more. Open the page again.")
            wanted = {lists[id].readers: lists[id].read_by for id in list_ids}
            for grant in await grants.of_job(job_id):  # those of places that are no list are on the account page
                if grant.readers.startswith(LIST):
                    await grants.revoke(grant.id)
            until = grants.clock() + JOB_GRANT
            for key, words in wanted.items():
                await grants.add("", words, None, until, readers=key, job_id=job_id)
            detail = {"job": job_id, "lists": sorted(list_ids)}
            await repository(AuditRepository).add(user.id, "job.lists", job.name, detail)


def keys_of(request: ApprovalRequest) -> str:
    """The keys of its readers, as they are kept."""
    return " ".join(one.key for one in request.readers)
