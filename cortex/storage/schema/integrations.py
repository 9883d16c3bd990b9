"""The outside systems that admins set up. Columns, keys and indexes only; their secrets are sealed rows elsewhere."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table


class IntegrationTable(Table):
    """One system: its kind, and its name where there may be several of a kind ("" = the only one).

    `roles`, `people`: who may use it, () = every role, everybody. `version` grows with each change of what is set.
    """

    __tablename__ = "integrations"
    kind: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    settings: Mapped[dict[str, Any]]
    is_on: Mapped[bool]
    roles: Mapped[tuple[str, ...]]
    people: Mapped[tuple[str, ...]]
    version: Mapped[int]
    changed_by: Mapped[str]
    changed_at: Mapped[datetime]
    worked_at: Mapped[datetime | None]
    failed_at: Mapped[datetime | None]
    failure: Mapped[str]
