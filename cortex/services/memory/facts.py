"""A person's memory for its page: see, search, add, edit, forget with a way back, answer proposals, take it along.

What a person writes or changes by hand is theirs, so the mark of outside goes; a proposal that is accepted keeps it.
"""

import json
from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.fact import FACT_CHARS_MAX, Certainty
from cortex.base.ids import new_id
from cortex.base.user import User
from cortex.base.zone import midnight
from cortex.services.memory.distill import ROLE
from cortex.services.memory.recall import FACTS_MAX, MemoryChoices, MemoryPreferences
from cortex.services.memory.user_memory import FULL, near, restored
from cortex.services.models.models import Models
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.storage.distill_marks import DistillMarkRow, DistillMarksRepository
from cortex.storage.facts import STANDING, FactsRepository, FactValues
from cortex.storage.facts import FactRow as FactRow
from cortex.storage.facts import FactVersionRow as FactVersionRow
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import TurnsRepository

BY = "you"
CERTAINTIES: tuple[Certainty, ...] = ("stated", "inferred", "uncertain")


class FactView(Struct, frozen=True, kw_only=True):
    """A fact with the conversation in which it was said, "" where that is gone; `replaces`: what a proposal renews."""

    fact: FactRow
    conversation_id: str = ""
    replaces: str = ""


class MemoryView(Struct, frozen=True, kw_only=True):
    """All of one person's memory, as the page shows it. `fresh`: kept lately and not seen yet.

    `learns_with`: the model that reads for new facts, "" where there is none; `learned_tokens`: what that took today.
    """

    kept: Sequence[FactView]
    fresh: Sequence[FactView]
    proposed: Sequence[FactView]
    total: int
    choices: MemoryChoices
    learns_with: str
    learned_tokens: int
    daily_tokens: int
    last_look: DistillMarkRow | None


class MemoryService(Struct, frozen=True, kw_only=True):
    """One person's facts at a time; every method takes whose."""

    runtime: Runtime
    roles: Roles
    models: Models

    async def view(self, user: User, query: str = "") -> MemoryView:
        """Everything, or what has to do with the query."""
        repository = self._facts(user)
        standing = await repository.list(*STANDING, limit=2 * FACTS_MAX)
        kept = [row for row in standing if row.state == "kept"]
        found = await near(query, kept) if query.strip() else kept
        by_id = {row.id: row for row in standing}
        places = await self.runtime.db.repository(TurnsRepository, user.id).places(
            [row.turn_id for row in standing if row.turn_id]
        )

        def shown(row: FactRow) -> FactView:
            old = by_id.get(row.replaces)
            return FactView(
                fact=row, conversation_id=places.get(row.turn_id, ""), replaces=old.text if old is not None else ""
            )

        settings, now = self.runtime.settings, self.runtime.clock()
        spent = await self.runtime.db.repository(RoundsRepository, user.id).spent(
            midnight(now, user.time_zone), role=ROLE
        )
        return MemoryView(
            kept=[shown(row) for row in found if row.is_seen or query.strip()],
            fresh=[] if query.strip() else [shown(row) for row in kept if not row.is_seen],
            proposed=[shown(row) for row in standing if row.state == "proposed"],
            total=len(kept),
            choices=await self.preferences.of(user.id),
            learns_with=await self._learns_with(user) if settings.memory_learns else "",
            learned_tokens=spent.tokens,
            daily_tokens=settings.memory_daily_tokens,
            last_look=await self.runtime.db.repository(DistillMarksRepository, user.id).latest(),
        )

    async def get(self, user: User, id: str) -> FactRow:
        """One fact that stands; NotFound."""
        row = await self._facts(user).get(id)
        if row.state == "forgotten":
            raise NotFound("This fact does not exist.")
        return row

    async def history(self, user: User, id: str) -> Sequence[FactVersionRow]:
        """Return what it was before, the latest first."""
        return await self._facts(user).history(id)

    async def add(self, user: User, text: str) -> FactRow:
        """Keep a fact that the person writes; the standing one that says the same is theirs from now on."""
        words, facts = _checked(text), self._facts(user)
        if await facts.count() >= FACTS_MAX:
            raise UserError(FULL, field="text")
        values = FactValues(text=words, source="you, on this page", is_tainted=False, changed_by=BY)
        made = await facts.add(new_id(self.runtime.clock), values)
        if made.state == "proposed" or made.is_tainted:
            return await facts.change(made.id, BY, state="kept", is_tainted=False, is_seen=True)
        return made

    async def edit(self, user: User, id: str, version: int, text: str, certainty: str) -> FactRow:
        """Save it in the person's own words. Conflict when it was changed in between or is remembered already."""
        words = _checked(text)
        if certainty not in CERTAINTIES:
            raise UserError(f"Choose one of {', '.join(CERTAINTIES)}.", field="certainty")
        row = await self.get(user, id)
        return await self._facts(user).change(
            id,
            BY,
            version,
            text=words,
            certainty=next(one for one in CERTAINTIES if one == certainty),
            state="kept",
            is_tainted=row.is_tainted and words == row.text,
            is_seen=True,
        )

    async def revert(self, user: User, id: str, version: int) -> FactRow:
        """Bring the words of an earlier version back; NotFound when that is not kept."""
        facts = self._facts(user)
        old = next((one for one in await facts.history(id) if one.version == version), None)
        if old is None:
            raise NotFound("This version no longer exists.")
        return await facts.change(
            id, BY, text=old.text, certainty=old.certainty, state=old.state, is_tainted=old.is_tainted, is_seen=True
        )

    async def forget(self, user: User, id: str) -> FactRow:
        """Forget it, or dismiss what is proposed; `restore` brings it back for a day."""
        await self.get(user, id)
        return await self._facts(user).change(id, BY, state="forgotten", is_seen=True)

    async def restore(self, user: User, id: str) -> FactRow:
        """Return what was forgotten within a day, as it was; NotFound when it is gone for good."""
        return await restored(self._facts(user), id, BY)

    async def accept(self, user: User, id: str) -> FactRow:
        """Keep what was proposed; what it renews gets its words and keeps its history."""
        async with self.runtime.db.transaction(user.id) as repository:
            facts = repository(FactsRepository)
            row = await facts.get(id)
            if row.state != "proposed":
                raise Conflict("This was already answered.")
            old = next((one for one in await facts.list("kept") if one.id == row.replaces), None)
            if old is None:
                return await facts.change(id, BY, state="kept", is_seen=True)
            await facts.change(id, BY, state="forgotten")
            return await facts.change(
                old.id,
                BY,
                text=row.text,
                certainty=row.certainty,
                quote=row.quote,
                source=row.source,
                turn_id=row.turn_id,
                is_tainted=row.is_tainted,
                is_seen=True,
            )

    async def forget_all(self, user: User) -> int:
        """Forget everything, also what is proposed; each can be brought back for a day. How many they were."""
        async with self.runtime.db.transaction(user.id) as repository:
            facts = repository(FactsRepository)
            rows = await facts.list(*STANDING)
            for row in rows:
                await facts.change(row.id, BY, state="forgotten", is_seen=True)
        return len(rows)

    async def restore_all(self, user: User) -> int:
        """Bring back what was forgotten within the last minutes of forgetting, all at once; how many came."""
        facts = self._facts(user)
        gone = [row for row in await facts.list("forgotten") if row.changed_by == BY and row.forgotten_at is not None]
        last = max((row.forgotten_at for row in gone if row.forgotten_at), default=None)
        came = 0
        for row in gone:
            if last is not None and row.forgotten_at is not None and last - row.forgotten_at <= timedelta(seconds=5):
                came += (await restored(facts, row.id, BY)).id == row.id
        return came

    async def see(self, user: User) -> None:
        """The person has seen what is new."""
        await self._facts(user).see()

    async def export_markdown(self, user: User) -> str:
        """The kept facts as a Markdown list."""
        rows = await self._facts(user).list("kept")
        lines = [
            f"- {row.text} ({row.at:%Y-%m-%d}, {row.certainty}, from {row.source}{', from outside' * row.is_tainted})"
            for row in rows
        ]
        return "\n".join(["# What Cortex remembers", "", *lines, ""])

    async def export_json(self, user: User) -> str:
        """The kept facts with all that is known of each."""
        rows = await self._facts(user).list("kept")
        kept = [
            {
                "text": row.text,
                "source": row.source,
                "quote": row.quote,
                "said_at": row.at.isoformat(),
                "certainty": row.certainty,
                "is_from_outside": row.is_tainted,
                "changed_at": row.updated_at.isoformat(),
                "changed_by": row.changed_by,
            }
            for row in rows
        ]
        return json.dumps({"facts": kept}, ensure_ascii=False, indent=2) + "\n"

    @property
    def preferences(self) -> MemoryPreferences:
        """Return what the person chose."""
        return MemoryPreferences(db=self.runtime.db)

    async def _learns_with(self, user: User) -> str:
        try:
            role = await self.roles.role(user, ROLE)
        except UserError:  # its file has a slip, which the head of every page says
            return ""
        return next((entry.name for entry in (await self.models.registry(user)).real_chain(role)), "")

    def _facts(self, user: User) -> FactsRepository:
        return self.runtime.db.repository(FactsRepository, user.id)


def _checked(text: str) -> str:
    words = " ".join(text.split())
    if not words:
        raise UserError("Enter what to remember.", field="text")
    if len(words) > FACT_CHARS_MAX:
        raise UserError(f"A fact can have at most {FACT_CHARS_MAX} characters. Add one fact at a time.", field="text")
    return words
