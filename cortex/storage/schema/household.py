"""What people of a household give each other to use or to read. Columns, keys and indexes only."""

from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


class SnippetTable(Table):
    """Words that a person writes often, under a short name; `is_shared`: everybody here may use them."""

    __tablename__ = "snippets"
    __table_args__ = (UniqueConstraint("owner_id", "name"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    name: Mapped[str]
    text: Mapped[str]
    is_shared: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
