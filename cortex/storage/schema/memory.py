"""What Cortex remembers of people: facts, what each was before, how far conversations were read for them."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner

_STANDS = text("state <> 'forgotten'")


class FactTable(Table):
    """A fact. `key`: equal for those that say the same, of which one stands. Its turn may be gone before it is."""

    __tablename__ = "facts"
    __table_args__ = (
        Index("ix_facts_owner_id_state", "owner_id", "state"),
        Index("uq_facts_owner_id_key", "owner_id", "key", unique=True, sqlite_where=_STANDS, postgresql_where=_STANDS),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    text: Mapped[str]
    key: Mapped[str]
    source: Mapped[str]
    quote: Mapped[str]
    turn_id: Mapped[str]
    certainty: Mapped[str]
    state: Mapped[str]
    replaces: Mapped[str]
    is_tainted: Mapped[bool]
    is_seen: Mapped[bool]
    version: Mapped[int]
    changed_by: Mapped[str]
    at: Mapped[datetime]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    forgotten_at: Mapped[datetime | None]


class FactVersionTable(Table):
    """A fact as it stood at one of its earlier versions; `changed_by` had made it so."""

    __tablename__ = "fact_versions"
    fact_id: Mapped[str] = mapped_column(ForeignKey("facts.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner_id: Mapped[str] = owner()
    text: Mapped[str]
    certainty: Mapped[str]
    state: Mapped[str]
    is_tainted: Mapped[bool]
    changed_by: Mapped[str]
    updated_at: Mapped[datetime]


class DistillMarkTable(Table):
    """How far a conversation was read for facts; until `claimed_until` somebody is at it."""

    __tablename__ = "distill_marks"
    conversation_id: Mapped[str] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True)
    owner_id: Mapped[str] = owner()
    upto_ordinal: Mapped[int]
    tries: Mapped[int]
    outcome: Mapped[str]
    claimed_until: Mapped[datetime | None]
    at: Mapped[datetime]
