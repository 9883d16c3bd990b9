"""Calendars of people, and the local copy of what is in them.

Reversible: `downgrade` forgets them; what stands on their servers stays there.
"""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    """Begin with none."""
    op.create_table(
        "calendar_accounts",
        sa.Column("id", sa.Text(), primary_key=True),
        _owner(),
        *(_text(name) for name in ("kind", "title", "url", "username", "addresses")),
        sa.Column("schedules", sa.Boolean(), nullable=False),
        _moment("created_at", nullable=False),
        _moment("next_at", nullable=False),
        _moment("worked_at"),
        _text("failure"),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Index("ix_calendar_accounts_next_at", "next_at"),
    )
    op.create_table(
        "calendars",
        sa.Column("id", sa.Text(), primary_key=True),
        _owner(),
        _of("account_id", "calendar_accounts.id"),
        *(_text(name) for name in ("url", "name", "color")),
        sa.Column("can_write", sa.Boolean(), nullable=False),
        *(_text(name) for name in ("access", "shared_as", "token", "zone")),
        _moment("unfolded_until"),
        _moment("worked_at"),
        sa.UniqueConstraint("account_id", "url", name="uq_calendars_account_id_url"),
        sa.Index("ix_calendars_shared_as", "shared_as"),
    )
    op.create_table(
        "appointments",
        sa.Column("id", sa.Text(), primary_key=True),
        _owner(),
        _of("calendar_id", "calendars.id"),
        *(_text(name) for name in ("href", "etag", "uid", "title", "place", "rule")),
        sa.Column("is_free", sa.Boolean(), nullable=False),
        _text("rest"),
        sa.UniqueConstraint("calendar_id", "href", "uid", name="uq_appointments_calendar_id_href_uid"),
    )
    op.create_table(
        "appointment_dates",
        sa.Column("appointment_id", sa.Text(), sa.ForeignKey("appointments.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("key", sa.Text(), primary_key=True),
        _owner(),
        _of("calendar_id", "calendars.id"),
        _moment("starts_at", nullable=False),
        _moment("ends_at", nullable=False),
        *(_text(name) for name in ("day", "last_day")),
        *(sa.Column(name, sa.Text()) for name in ("title", "place")),
        sa.Index("ix_appointment_dates_calendar_id_starts_at", "calendar_id", "starts_at"),
    )


def downgrade() -> None:
    """Forget them."""
    for name in ("appointment_dates", "appointments", "calendars", "calendar_accounts"):
        op.drop_table(name)


def _owner() -> sa.Column[str]:
    return _of("owner_id", "accounts.id")


def _of(name: str, target: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), sa.ForeignKey(target, ondelete="CASCADE"), nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _moment(name: str, *, nullable: bool = True) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)
