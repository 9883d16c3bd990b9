"""Jobs that a mail begins: which mails, and what is done with one that came.

A mail begins a job at most once, also one that is moved on: its slot is committed under its Message-ID. A job that
takes no more holds up its own mails alone. What a mail says is from outside: the run is marked from its first round
on, as one that a web address began.
"""

import json
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from cortex.base.errors import NotFound, Throttled, UserError
from cortex.base.ids import derived_id, digest
from cortex.base.rates import MINUTE
from cortex.base.user import User
from cortex.services.jobs.hooks import TAKEN_A_MINUTE, WAITING_MOST, free_slot
from cortex.services.runtime import Runtime
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Opener
from cortex.storage.halts import HaltsRepository
from cortex.storage.hooks import HooksRepository
from cortex.storage.jobs import JobsRepository
from cortex.storage.mail import MailAccountsRepository
from cortex.storage.mail_news import MailNews, MailNewsRepository
from cortex.storage.mail_news import MailTriggerRow as MailTriggerRow
from cortex.storage.slots import SlotsRepository
from cortex.storage.words import fold, pieces

AT_ONCE = 200
CHARACTERS = 200
SKEW = timedelta(minutes=15)  # by which a mail server's clock may be behind ours
UNKNOWN = datetime(1970, 1, 2, tzinfo=UTC)  # a server that does not say when it came
OLD = timedelta(days=30)  # what came so long ago is moved about, not new
NOTHING_SAID = "Say which mails: from whom, or words of the subject."
FULL = "Too many runs of this job wait."
NO_JOB = "No mail begins this job."


class MailTriggers(Struct, frozen=True, kw_only=True):
    """The jobs of everybody that mails begin. The runner sees by itself what was noted."""

    runtime: Runtime

    async def get(self, user: User, job_id: str) -> MailTriggerRow | None:
        """The mails that begin a job; None where none do. NotFound for a foreign job."""
        await self.runtime.db.repository(JobsRepository, user.id).get(job_id)
        return await self.runtime.db.repository(MailNewsRepository, user.id).trigger(job_id)

    async def put(
        self, user: User, job_id: str, *, sender: str = "", subject: str = "", words: str = "", account_id: str = ""
    ) -> None:
        """Have mails that come from now on, and say all of this, begin a job. UserError where nothing is said."""
        said = [" ".join(text.split())[:CHARACTERS] for text in (sender, subject, words)]
        if not any(said):
            raise UserError(NOTHING_SAID, field="sender")
        job = await self.runtime.db.repository(JobsRepository, user.id).get(job_id)
        if account_id:
            await self.runtime.db.repository(MailAccountsRepository, user.id).account(account_id)
        trigger = MailTriggerRow(
            job_id=job_id,
            account_id=account_id,
            sender=said[0],
            subject=said[1],
            words=said[2],
            since=self.runtime.clock(),
        )
        async with self.runtime.db.transaction(user.id) as repository:
            await repository(MailNewsRepository).put(trigger)
            await repository(AuditRepository).add(user.id, "job.mail_set", job.name, {"job": job_id})

    async def remove(self, user: User, job_id: str) -> None:
        """Have no mail begin a job any more; NotFound where none did."""
        job = await self.runtime.db.repository(JobsRepository, user.id).get(job_id)
        async with self.runtime.db.transaction(user.id) as repository:
            if not await repository(MailNewsRepository).remove(job_id):
                raise NotFound(NO_JOB)
            await repository(AuditRepository).add(user.id, "job.mail_removed", job.name, {"job": job_id})

    async def arrived(self, owner_id: str) -> None:
        """Look at a person's mails that came, and note a run for each that begins a job.

        One that cannot be taken now, because work is stopped or too many wait, is looked at again with the next ones.
        """
        repository = self.runtime.db.repository(MailNewsRepository, owner_id)
        news = await repository.news(AT_ONCE)
        triggers = await repository.triggers() if news else ()
        full = set[str]()  # jobs that take no more now: their mails wait, and nobody else's
        while news:
            for mail in news:
                fitting = [one.job_id for one in triggers if _fits(one, mail, self.runtime.clock())]
                await self._taken(owner_id, mail, fitting, full)
            news = await repository.news(AT_ONCE, news[-1]) if len(news) == AT_ONCE else ()

    async def _taken(self, owner_id: str, mail: MailNews, job_ids: list[str], full: set[str]) -> None:
        """Note the runs that a mail begins, each once; that it was looked at, once all of them are noted."""
        now, is_whole = self.runtime.clock(), True
        for job_id in job_ids:
            try:
                if job_id in full:
                    raise Throttled(FULL, wait_s=MINUTE.total_seconds())
                async with self.runtime.db.transaction(owner_id) as repository:
                    if await repository(HaltsRepository).of(owner_id):
                        raise Throttled("Work is stopped.", wait_s=MINUTE.total_seconds())
                    await repository(MailNewsRepository).hold(job_id)
                    await _begun(repository, job_id, derived_id("mail", job_id, _key(mail)), _told(mail), now)
            except Throttled:
                full.add(job_id)
                is_whole = False
        if is_whole:
            await self.runtime.db.repository(MailNewsRepository, owner_id).looked_at(mail.id)


def _key(mail: MailNews) -> str:
    """Return by which a mail is the same one, wherever it lies."""
    return mail.message_id or digest("\n".join((mail.sender, mail.at.isoformat(), mail.subject)))


async def _begun(repository: Opener, job_id: str, delivery: str, text: str, now: datetime) -> bool:
    """Note one run; whether it is new. Throttled where too many were begun, or wait."""
    hooks = repository(HooksRepository)
    if await hooks.delivery(delivery) is not None:
        return False
    try:
        job = await repository(JobsRepository).get(job_id)
    except NotFound:
        return False
    if not job.is_enabled:
        return False
    lately, waiting = await hooks.counted(job_id, now - MINUTE)
    if lately >= TAKEN_A_MINUTE or waiting >= WAITING_MOST:
        raise Throttled(FULL, wait_s=MINUTE.total_seconds())
    await hooks.take(delivery, job_id, await free_slot(repository(SlotsRepository), job, now), text)
    return True


def _fits(trigger: MailTriggerRow, mail: MailNews, now: datetime) -> bool:
    """Tell whether all that is said of the mails that begin a job holds of this one."""
    sender = f"{mail.sender_name} {mail.sender}"
    people = " ".join(part for pair in json.loads(mail.recipients) for part in pair)
    asked = (
        (trigger.sender, sender),
        (trigger.subject, mail.subject),
        (trigger.words, f"{mail.subject} {sender} {people}"),
    )
    is_new = mail.at <= UNKNOWN or (mail.at >= trigger.since - SKEW and mail.at > now - OLD)
    is_meant = trigger.account_id in ("", mail.account_id) and is_new
    return is_meant and all(piece in fold(text) for said, text in asked for piece in pieces(fold(said)))


def _told(mail: MailNews) -> str:
    """Return what a run hears of the mail: who wrote, about what, and by which id it is read."""
    name = f"{mail.sender_name} <{mail.sender}>" if mail.sender_name else mail.sender
    return f"A mail came.\nFrom: {name}\nSubject: {mail.subject}\nId: {mail.id}"
