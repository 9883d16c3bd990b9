"""An admin gives a model to everybody or to named people, with what each may take in a day; and what they took.

Only admins share, and only what is their own: it is their key and their money. The key stays where it is.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.clock import Clock
from cortex.base.errors import CortexError, NotAllowed, UserError
from cortex.base.model import ModelEntry
from cortex.base.numbers import in_words, typed_dollars, typed_tokens
from cortex.base.user import User
from cortex.services.models.models import Models
from cortex.services.models.registry import shared_name
from cortex.storage.accounts import AccountRow, AccountsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.round_rows import Borrowed
from cortex.storage.rounds import AllRoundsRepository
from cortex.storage.shared_models import AllSharesRepository, ShareRow, SharesRepository

OFFERED_USD = "1.00"  # what the form offers for each person's day; nobody has it before the admin saves
DAYS = 28


class PersonShare(Struct, frozen=True, kw_only=True):
    """A person as the form shows or sends them: whether they are chosen, and limits in place of everybody's."""

    id: str
    name: str = ""
    is_chosen: bool = False
    limit_tokens: str = ""
    limit_usd: str = ""


class ShareForm(Struct, frozen=True, kw_only=True):
    """The users of a model, as text: nobody else (""), everybody, or chosen people; what each may take in a day."""

    audience: str = ""
    limit_tokens: str = ""
    limit_usd: str = ""
    people: tuple[PersonShare, ...] = ()


class BorrowedModel(Struct, frozen=True, kw_only=True):
    """One person's use of a model of the reader's."""

    person: str
    taken: Borrowed


class ModelSharing(Struct, frozen=True, kw_only=True):
    """The pages' door to sharing."""

    db: Database
    models: Models
    clock: Clock

    async def form(self, by: User, model: str = "", typed: ShareForm | None = None) -> ShareForm:
        """The form of a model of theirs, of a new one for ""; with what was `typed` in place of what is stored."""
        others = [one for one in await self._accounts() if one.is_active and one.id != by.id]
        rows = [row for row in await self._shares(by) if row.model == model]
        shown = typed or _shown(rows)
        lines = {line.id: line for line in shown.people}
        people = [lines.get(one.id, PersonShare(id=one.id)) for one in others]
        named = [replace(line, name=one.name) for line, one in zip(people, others, strict=True)]
        return ShareForm(
            audience=shown.audience,
            limit_tokens=shown.limit_tokens,
            limit_usd=shown.limit_usd,
            people=tuple(named),
        )

    async def save(self, by: User, values: Mapping[str, Any], previous: str, wanted: ShareForm) -> ModelEntry:
        """Add or change a model (`Models.save`) and who may use it. NotAllowed for a member who would share."""
        if wanted.audience and not by.is_admin:
            raise NotAllowed("Only an admin can share a model.")
        rows = _rows(wanted, {one.id for one in await self._accounts()} - {by.id})
        entry = await self.models.save(by, values, previous)
        if by.is_admin:
            await self._put(by, previous, entry.name, rows)
        return entry

    async def remove(self, by: User, name: str) -> None:
        """Give a model to nobody any more and forget it; NotFound when there is none. One that stays stays shared."""
        await self.models.entry(by, name)  # what is not there, or cannot be read, ends no share
        rows = [row for row in await self._shares(by) if row.model == name]
        # The share first: cut off between the two, nobody is left with a share of what is gone.
        await self._put(by, name, name, ())
        try:
            await self.models.remove(by, name)
        except (CortexError, OSError):
            if (await self.models.registry(by)).get(name) is not None:
                await self._put(by, name, name, rows)
            raise

    async def unguarded(self, by: User, model: str) -> str:
        """A sentence where a limit in dollars holds nothing back, for nobody knows what the model costs, else ""."""
        rows = [row for row in await self._shares(by) if row.model == model]
        has_gap = any(row.limit_usd is not None and row.limit_tokens is None for row in rows)
        if not has_gap or not await self.is_unpriced(by, model):
            return ""
        return (
            f"The price of {model} is not known, so its limit in dollars cannot hold: set a price or a limit in tokens."
        )

    async def is_unpriced(self, by: User, model: str) -> bool:
        """Tell whether nobody knows what this model of theirs costs: a limit in dollars holds nothing back."""
        return (await self.models.price(by, model)).input_usd is None

    async def words(self, by: User) -> Mapping[str, str]:
        """With whom each model of theirs is shared, in words, by its name; none that is not."""
        names = {one.id: one.name for one in await self._accounts()}
        found: dict[str, str] = {}
        for row in await self._shares(by):
            who = names.get(row.person_id, row.person_id) if row.person_id else "everybody"
            told = f"{who} ({in_words(row.limit_tokens, row.limit_usd)})"
            found[row.model] = f"{found[row.model]}, {told}" if row.model in found else told
        return found

    async def limits(self, user: User) -> Mapping[str, str]:
        """Return what the user may take in a day of each model that is shared with them, in words, by its name."""
        given = await self.db.repository(AllSharesRepository).given(user.id)
        return {shared_name(one.model, one.owner): in_words(one.limit_tokens, one.limit_usd) for one in given}

    async def for_newcomers(self) -> Mapping[str, str]:
        """The models that whoever is invited may use at once, and what they may take in a day."""
        nobody = User(id="", name="", rank="member")
        there = {entry.name for entry in (await self.models.shared_with(nobody)).shared}
        return {name: words for name, words in (await self.limits(nobody)).items() if name in there}

    async def borrowed(self, by: User, days: int = DAYS, model: str = "") -> Sequence[BorrowedModel]:
        """Return what others took in the last `days` days with the reader's models, or with one of them."""
        names = {one.id: one.name for one in await self._accounts()}
        since = self.clock() - timedelta(days=days)
        found = await self.db.repository(AllRoundsRepository).borrowed_from(by.id, since)
        wanted = shared_name(model, by.name) if model else ""
        return [
            BorrowedModel(person=names.get(one.person_id, one.person_id), taken=one)
            for one in found
            if wanted in ("", one.model)
        ]

    async def _put(self, by: User, previous: str, name: str, rows: Sequence[ShareRow]) -> None:
        """Give the model so and not otherwise; a change is audited, and running turns hear of it."""
        async with self.db.transaction(by.id) as repository:
            shares = repository(SharesRepository)
            before = {row for row in await shares.list() if row.model in (previous, name)}
            wanted = [replace(row, model=name) for row in rows]
            if before == set(wanted):
                return
            for old in {previous, name} - {""}:
                await shares.put(old, wanted if old == name else ())
            detail = {"people": [row.person_id or "everybody" for row in wanted]}
            await repository(AuditRepository).add(by.id, "model.shared" if wanted else "model.unshared", name, detail)
        self.models.sharing_changed()

    async def _accounts(self) -> Sequence[AccountRow]:
        return await self.db.repository(AccountsRepository).list()

    async def _shares(self, by: User) -> Sequence[ShareRow]:
        return await self.db.repository(SharesRepository, by.id).list()


def _rows(wanted: ShareForm, others: set[str]) -> Sequence[ShareRow]:
    """The form's rows, for a model still without a name. UserError names the field that is wrong."""
    tokens = typed_tokens(wanted.limit_tokens, "share_tokens")
    usd = typed_dollars(wanted.limit_usd, "share_usd")
    own = {
        line.id: (typed_tokens(line.limit_tokens, "share_people"), typed_dollars(line.limit_usd, "share_people"))
        for line in wanted.people
        if line.id in others
    }
    if not wanted.audience:
        return ()
    if wanted.audience == "everybody":
        apart = [(id, limits) for id, limits in own.items() if limits != (None, None)]
        return [_row("", (tokens, usd)), *(_row(id, limits) for id, limits in apart)]
    if wanted.audience != "people":
        raise UserError("Choose who may use it.", field="share")
    chosen = [line.id for line in wanted.people if line.is_chosen and line.id in others]
    if not chosen:
        raise UserError("Choose at least one person.", field="share_people")
    return [_row(id, own[id] if own[id] != (None, None) else (tokens, usd)) for id in chosen]


def _row(person_id: str, limits: tuple[int | None, float | None]) -> ShareRow:
    return ShareRow(model="", person_id=person_id, limit_tokens=limits[0], limit_usd=limits[1])


def _shown(rows: Sequence[ShareRow]) -> ShareForm:
    """Stored rows as the form shows them: the limits that most have above, others beside their person."""
    if not rows:
        return ShareForm(limit_usd=OFFERED_USD)
    limits = {row.person_id: (_text(row.limit_tokens), _text(row.limit_usd)) for row in rows}
    general = limits.get("") or Counter(limits.values()).most_common(1)[0][0]
    return ShareForm(
        audience="everybody" if "" in limits else "people",
        limit_tokens=general[0],
        limit_usd=general[1],
        people=tuple(
            PersonShare(
                id=id,
                is_chosen=True,
                limit_tokens=own[0] if own != general else "",
                limit_usd=own[1] if own != general else "",
            )
            for id, own in limits.items()
            if id
        ),
    )


def _text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) and round(value, 2) == value else str(value)
