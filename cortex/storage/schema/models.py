"""Which models their admins give to others. Columns and keys only; a model itself lives in its owner's home."""

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table


class SharedModelTable(Table):
    """One model of an admin's, by its name there, given to one person, or to everybody with `person_id` "".

    The limits are for a day: of that person, or of each person who has no row of their own.
    """

    __tablename__ = "shared_models"
    owner_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[str] = mapped_column(primary_key=True)
    limit_tokens: Mapped[int | None]
    limit_usd: Mapped[float | None]
    changed_at: Mapped[datetime]
