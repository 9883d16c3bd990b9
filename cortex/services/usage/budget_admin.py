"""Budgets as the pages show and change them: how far each one is used today, and an admin's changes, audited.

What they do to a model call is the matter of `services/budgets/budgets.py`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from cortex.base.errors import NotFound, UserError
from cortex.base.ids import short
from cortex.base.numbers import typed_dollars, typed_tokens
from cortex.base.user import User
from cortex.base.zone import midnight
from cortex.services.accounts.accounts import Accounts
from cortex.services.budgets.budgets import (
    WARN_SHARE,
    Limit,
    is_limited,
    limit_of,
    limit_of_share,
)
from cortex.services.runtime import Runtime
from cortex.storage.audit import AuditRepository
from cortex.storage.budgets import AtLimit, BudgetRow, Kind
from cortex.storage.budgets import BudgetsRepository as BudgetRows
from cortex.storage.jobs import AllJobsRepository
from cortex.storage.round_rows import Spent, SpentBy
from cortex.storage.rounds import AllRoundsRepository
from cortex.storage.shared_models import AllSharesRepository

KINDS: tuple[Kind, ...] = ("user", "role", "job", "house")
NEVER = datetime.min.replace(tzinfo=UTC)
AT_LIMIT: tuple[AtLimit, ...] = ("stop", "model", "chat")


class BudgetStanding(Struct, frozen=True, kw_only=True):
    """A budget and one person's day under it; `subject`: what the person, role or job is called, "" for all.

    `who` is "" where it counts everybody together.
    """

    budget: BudgetRow
    subject: str
    who: str
    spent: Spent
    share: float

    @property
    def state(self) -> str:
        """In one word."""
        return "reached" if self.share >= 1.0 else "near" if self.share >= WARN_SHARE else "open"


class SpentToday(Struct, frozen=True, kw_only=True):
    """Holds what people took in their day, by account id; `together`: everybody in the server's day."""

    by_person: Mapping[str, Sequence[SpentBy]]
    together: Spent

    def of(self, person_id: str, limit: Limit) -> Spent:
        """Return what counts against this limit for this person."""
        if limit.kind == "house":
            return self.together
        found = self.by_person.get(person_id, ())
        match limit.kind:
            case "role":
                found = [one for one in found if one.role == limit.subject]
            case "job":
                found = [one for one in found if one.job_id == limit.subject]
            case "model":
                found = [one for one in found if one.model == limit.subject]
        return sum((one.spent for one in found), Spent())


class BudgetAdmin(Struct, frozen=True, kw_only=True):
    """The pages' door to budgets."""

    runtime: Runtime
    accounts: Accounts

    async def list(self) -> Sequence[BudgetRow]:
        """Every budget of the server."""
        return await self.runtime.db.repository(BudgetRows).list()

    async def get(self, budget_id: str) -> BudgetRow:
        """One; NotFound when it is gone."""
        return await self.runtime.db.repository(BudgetRows).get(budget_id)

    async def standings(self, people: Sequence[User], roles: Sequence[str] | None = None) -> Sequence[BudgetStanding]:
        """Return how far each budget is used today by each of these people, as far as it holds for them.

        roles: the roles that the reader may know; then jobs of which nothing ran are left out too. None = all.
        """
        rows = await self.list()
        own = {row.subject for row in rows if row.kind == "user" and row.subject}
        jobs = {job.id: job for job in await self.runtime.db.repository(AllJobsRepository).names()}
        names = {one.id: one.name for one in await self.accounts.all_accounts()}
        names |= {id: job.name for id, job in jobs.items()}
        spent = await self._spent_today(rows, people)
        found = []
        for row in rows:
            for person in people[:1] if row.kind == "house" else people:
                is_foreign = row.kind == "user" and (
                    row.subject not in ("", person.id) or (not row.subject and person.id in own)
                )
                job = jobs.get(row.subject) if row.kind == "job" else None
                is_foreign |= job is not None and job.owner_id != person.id
                if is_foreign or (row.kind == "role" and roles is not None and row.subject not in roles):
                    continue
                standing = _standing(row, person, names, spent)
                if row.kind != "job" or roles is None or standing.spent.tokens:
                    found.append(standing)
        return [*found, *await self._shares(people, spent)]

    async def put(self, by: User, values: dict[str, str]) -> BudgetRow:
        """Set a budget from a form's texts. UserError names the field that is wrong."""
        kind, at_limit = values["kind"], values["at_limit"]
        if kind not in KINDS:
            raise UserError("Choose whose budget it is.", field="kind")
        if at_limit not in AT_LIMIT:
            raise UserError("Choose what happens at the limit.", field="at_limit")
        tokens, usd = typed_tokens(values["limit_tokens"]), typed_dollars(values["limit_usd"])
        if tokens is None and usd is None:
            raise UserError("Set a limit in tokens, in dollars, or both.", field="limit_tokens")
        model = values["model"].strip()
        if at_limit == "model" and not model:
            raise UserError("Name the model that takes over.", field="model")
        subject = await self._subject(kind, values["subject"].strip())
        async with self.runtime.db.transaction() as repository:
            made = await repository(BudgetRows).put(
                kind,
                subject,
                limit_tokens=tokens,
                limit_usd=usd,
                at_limit=at_limit,
                model=model if at_limit == "model" else "",
                changed_by=by.id,
            )
            detail = {"tokens": tokens, "usd": usd, "at_limit": at_limit, "model": made.model}
            await repository(AuditRepository).add(
                by.id, "budget.set", f"{kind} {values['subject'].strip()}".strip(), detail
            )
        return made

    async def remove(self, by: User, budget_id: str) -> None:
        """Take a budget away; NotFound when it is gone."""
        async with self.runtime.db.transaction() as repository:
            row = await repository(BudgetRows).get(budget_id)
            await repository(BudgetRows).remove(budget_id)
            await repository(AuditRepository).add(by.id, "budget.removed", f"{row.kind} {row.subject}".strip())

    async def jobs(self) -> Sequence[str]:
        """Every job as it can be chosen: by its name, with whose it is where that is not enough."""
        return list(await self._choices())

    async def _choices(self) -> dict[str, str]:
        """The ids of jobs by what they are chosen by."""
        jobs = await self.runtime.db.repository(AllJobsRepository).names()
        people = {one.id: one.name for one in await self.accounts.all_accounts()}
        often = Counter(job.name for job in jobs)
        whose = Counter((job.name, job.owner_id) for job in jobs)
        found = {}
        for job in jobs:
            more = f" ({people.get(job.owner_id, job.owner_id)})" if often[job.name] > 1 else ""
            more += f" {short(job.id)}" if whose[job.name, job.owner_id] > 1 else ""
            found[job.name + more] = job.id
        return found

    async def _job(self, typed: str) -> str:
        """The job that is meant by its name or id; UserError for none, and for several."""
        choices = await self._choices()
        if typed in choices or typed in choices.values():
            return choices.get(typed, typed)
        key = typed.casefold()
        near = [name for name in choices if name.casefold().startswith(key)]
        if len(near) == 1:
            return choices[near[0]]
        told = f"Choose one of: {'; '.join(near[:5])}." if near else "Choose one of the names that are offered."
        raise UserError(f"There {'are several jobs' if near else 'is no job'} {typed!r}. {told}", field="subject")

    async def _subject(self, kind: Kind, typed: str) -> str:
        """The id behind a person's or a job's name; a role as it is; nothing for the server."""
        if kind == "house":
            return ""
        if kind == "user":
            if not typed:
                return ""
            try:
                return (await self.accounts.named(typed)).id
            except NotFound as unknown:
                raise UserError(unknown.message, field="subject") from unknown
        if not typed or len(typed) > 120 or not typed.isprintable():
            raise UserError(f"Name the {kind}.", field="subject")
        return await self._job(typed) if kind == "job" else typed

    async def _spent_today(self, rows: Sequence[BudgetRow], people: Sequence[User]) -> SpentToday:
        """Read what each of these people took today: one statement for each time zone that they live in."""
        at, by_person = self.runtime.clock(), dict[str, list[SpentBy]]()
        async with self.runtime.db.read_transaction() as repository:
            rounds = repository(AllRoundsRepository)
            for zone in dict.fromkeys(one.time_zone for one in people):
                here = [one.id for one in people if one.time_zone == zone]
                for taken in await rounds.spent_by(midnight(at, zone), here):
                    by_person.setdefault(taken.owner_id, []).append(taken)
            has_all = any(row.kind == "house" for row in rows)
            together = await rounds.spent(midnight(at, self.runtime.settings.time_zone)) if has_all else Spent()
        return SpentToday(by_person=by_person, together=together)

    async def _shares(self, people: Sequence[User], spent: SpentToday) -> Sequence[BudgetStanding]:
        """Return how much of each model that is shared with them, within a limit, each person used today."""
        given = await self.runtime.db.repository(AllSharesRepository).given_each([one.id for one in people])
        return [
            _of_share(limit, spent.of(person.id, limit), person)
            for person in people
            for limit in (limit_of_share(one, person.time_zone) for one in given[person.id] if is_limited(one))
        ]


def _standing(row: BudgetRow, person: User, names: dict[str, str], spent: SpentToday) -> BudgetStanding:
    limit = limit_of(row, person.time_zone)  # its zone says nothing here: what was spent is there
    used = spent.of(person.id, limit)
    subject = names.get(row.subject, row.subject) if row.kind in ("user", "job") else row.subject
    who = "" if row.kind == "house" else person.name
    return BudgetStanding(budget=row, subject=subject, who=who, spent=used, share=limit.share(used))


def _of_share(limit: Limit, spent: Spent, person: User) -> BudgetStanding:
    """The limit of a shared model, which stands with the share and is no budget of its own, as one is shown."""
    row = BudgetRow(
        id="",
        kind="model",
        subject=limit.subject,
        limit_tokens=limit.tokens,
        limit_usd=limit.usd,
        at_limit="stop",
        model="",
        changed_by="",
        changed_at=NEVER,
    )
    return BudgetStanding(budget=row, subject=row.subject, who=person.name, spent=spent, share=limit.share(spent))
