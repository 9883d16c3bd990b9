"""Jobs with the ledger of their slots, reminders, notices with their deliveries, devices, and links of buttons.

Reversible: `downgrade` forgets all of it; turns that jobs began stay.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the tables."""
    _jobs()
    _slots()
    _reminders()
    _notices()
    _deliveries()
    _devices()


def downgrade() -> None:
    """Take them all away again."""
    for name in ("action_links", "push_devices", "deliveries", "notices", "reminders", "slots", "jobs"):
        op.drop_table(name)


def _jobs() -> None:
    op.create_table(
        "jobs",
        _text("id", primary_key=True),
        _ref("owner_id", "accounts"),
        *(_text(name) for name in ("name", "kind", "prompt", "tool")),
        sa.Column("arguments", sa.JSON()),
        *(_text(name) for name in ("timing_kind", "expression", "time_zone", "words", "role", "model")),
        sa.Column("tools", sa.JSON()),
        _text("mode"),
        _number("max_rounds", nullable=True),
        _number("budget_tokens", nullable=True),
        sa.Column("budget_usd", sa.Double()),
        _text("conversation_id", nullable=True),
        sa.Column("deliver_to", sa.JSON(), nullable=False),
        _text("notify_on"),
        _text("on_miss"),
        _number("fire_within_s"),
        _text("overlap"),
        _number("retries"),
        _number("timeout_s"),
        _flag("keeps_quiet_hours"),
        _number("pause_after"),
        *(_flag(name) for name in ("may_make_jobs", "is_tainted", "is_enabled")),
        _text("paused_because"),
        _number("failures"),
        _number("version"),
        _time("next_at", nullable=True),
        _time("created_at"),
        _time("updated_at"),
        _time("removed_at", nullable=True),
    )
    op.create_index("ix_jobs_owner_id", "jobs", ["owner_id"])
    op.create_index("ix_jobs_next_at", "jobs", ["next_at"])


def _slots() -> None:
    op.create_table(
        "slots",
        _text("id", primary_key=True),
        _ref("job_id", "jobs"),
        _ref("owner_id", "accounts"),
        _time("due_at"),
        _text("state"),
        _text("why"),
        _flag("is_by_hand"),
        _number("attempt"),
        _time("ready_at", nullable=True),
        _text("turn_id", nullable=True),
        _time("started_at", nullable=True),
        _time("ended_at", nullable=True),
        _text("result"),
        _text("result_hash"),
        sa.Column("cost_usd", sa.Double()),
        _number("tokens"),
        sa.UniqueConstraint("job_id", "due_at"),
    )
    op.create_index("ix_slots_state_due_at", "slots", ["state", "due_at"])


def _reminders() -> None:
    op.create_table(
        "reminders",
        _text("id", primary_key=True),
        _ref("owner_id", "accounts"),
        *(_text(name) for name in ("text", "timing_kind", "expression", "time_zone", "words", "state")),
        *(_time(name, nullable=True) for name in ("next_at", "due_at", "again_at", "told_at")),
        _number("told_count"),
        _number("repeat_s", nullable=True),
        _flag("is_tainted"),
        _number("version"),
        _time("created_at"),
        _time("updated_at"),
        _time("removed_at", nullable=True),
    )
    op.create_index("ix_reminders_owner_id_state", "reminders", ["owner_id", "state"])
    op.create_index("ix_reminders_next_at", "reminders", ["next_at"])
    op.create_index("ix_reminders_again_at", "reminders", ["again_at"])


def _notices() -> None:
    op.create_table(
        "notices",
        _text("id", primary_key=True),
        _ref("owner_id", "accounts"),
        *(_text(name) for name in ("kind", "title", "text", "path", "tag", "urgency")),
        sa.Column("actions", sa.JSON(), nullable=False),
        _text("subject_id"),
        _flag("is_tainted"),
        _flag("is_replaced"),
        _time("created_at"),
        *(_time(name, nullable=True) for name in ("read_at", "acknowledged_at", "expires_at")),
    )
    op.create_index("ix_notices_owner_id_created_at", "notices", ["owner_id", "created_at"])
    op.create_index("ix_notices_owner_id_read_at", "notices", ["owner_id", "read_at"])
    op.create_index("ix_notices_owner_id_tag", "notices", ["owner_id", "tag"])
    op.create_index("ix_notices_subject_id", "notices", ["subject_id"])


def _deliveries() -> None:
    op.create_table(
        "deliveries",
        _text("id", primary_key=True),
        _ref("notice_id", "notices"),
        _ref("owner_id", "accounts"),
        *(_text(name) for name in ("channel", "device_id", "state")),
        _number("attempt"),
        _time("next_at", nullable=True),
        _text("error"),
        _time("created_at"),
        _time("ended_at", nullable=True),
        sa.UniqueConstraint("notice_id", "channel", "device_id"),
    )
    op.create_index("ix_deliveries_next_at", "deliveries", ["next_at"])
    op.create_index("ix_deliveries_owner_id_created_at", "deliveries", ["owner_id", "created_at"])


def _devices() -> None:
    op.create_table(
        "push_devices",
        _text("id", primary_key=True),
        _ref("owner_id", "accounts"),
        sa.Column("login_id", sa.Text(), sa.ForeignKey("logins.id", ondelete="SET NULL")),
        *(_text(name) for name in ("name", "agent", "endpoint", "p256dh", "auth", "signed_for", "error")),
        _time("created_at"),
        _time("pushed_at", nullable=True),
        _time("shown_at", nullable=True),
    )
    op.create_index("ix_push_devices_owner_id", "push_devices", ["owner_id"])
    op.create_index("ix_push_devices_login_id", "push_devices", ["login_id"])
    op.create_table(
        "action_links",
        _text("token_hash", primary_key=True),
        _ref("owner_id", "accounts"),
        _ref("notice_id", "notices"),
        _text("action"),
        _time("expires_at"),
        _time("used_at", nullable=True),
    )
    op.create_index("ix_action_links_notice_id", "action_links", ["notice_id"])
    op.create_index("ix_action_links_expires_at", "action_links", ["expires_at"])


def _text(name: str, **rest: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), **{"nullable": False, **rest})


def _number(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), nullable=nullable)


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _time(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _ref(name: str, table: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), sa.ForeignKey(f"{table}.id", ondelete="CASCADE"), nullable=False)
