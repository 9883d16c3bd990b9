"""The ledger of rounds in a narrow table of its own, budgets, the texts that went out, and a turn's job.

Reversible: `downgrade` puts the numbers back beside the receipts; budgets and stored texts go.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

TOOK = ("input_tokens", "output_tokens", "cached_tokens", "written_tokens")
SUMS = ("total_tokens", "sent_tokens", "extra_tokens")
CUTS = ("cut_role", "cut_mode", "cut_choice", "cut_budget", "cut_form")
STAGES = {"gate": "cut_role", "mode": "cut_mode", "budget": "cut_budget", "form": "cut_form", "compact": "cut_form"}


def upgrade() -> None:
    """Make the tables, move what the receipts and their rows know into the ledger."""
    _rounds()
    op.create_table(
        "budgets",
        _text("id", primary_key=True),
        _text("kind"),
        _text("subject"),
        sa.Column("limit_tokens", sa.Integer()),
        sa.Column("limit_usd", sa.Double()),
        _text("at_limit"),
        _text("model"),
        _text("changed_by"),
        _time("changed_at"),
        sa.UniqueConstraint("kind", "subject"),
    )
    op.create_table("texts", _owner(primary_key=True), _text("digest", primary_key=True), _text("text"))
    op.add_column("turns", _text("job_id", server_default=""))
    op.add_column("plans", sa.Column("given", sa.JSON(), nullable=False, server_default="{}"))
    _move_in()
    op.drop_index("ix_plans_owner_id_created_at", "plans")
    for name in ("request_tokens", "model", *TOOK, "cost_usd"):
        op.drop_column("plans", name)


def downgrade() -> None:
    """Put the numbers back beside the receipts."""
    for name in ("request_tokens", *TOOK):
        op.add_column("plans", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    op.add_column("plans", _text("model", server_default=""))
    op.add_column("plans", sa.Column("cost_usd", sa.Double()))
    op.create_index("ix_plans_owner_id_created_at", "plans", ["owner_id", "created_at"])
    here = "rounds.turn_id = plans.turn_id AND rounds.round = plans.round"
    for name in ("request_tokens", "model", *TOOK, "cost_usd"):
        fallback = "NULL" if name == "cost_usd" else "''" if name == "model" else "0"
        found = f"(SELECT rounds.{name} FROM rounds WHERE {here})"  # noqa: S608 - our own column names
        op.execute(f"UPDATE plans SET {name} = COALESCE({found}, {fallback})")  # noqa: S608
    op.drop_column("plans", "given")
    op.drop_column("turns", "job_id")
    for name in ("texts", "budgets", "rounds"):
        op.drop_table(name)


def _rounds() -> None:
    op.create_table(
        "rounds",
        _text("turn_id", primary_key=True),
        sa.Column("round", sa.Integer(), primary_key=True, autoincrement=False),
        _owner(),
        _text("conversation_id"),
        _time("created_at"),
        *(_text(name) for name in ("state", "role", "channel", "job_id", "model", "endpoint")),
        *(_number(name) for name in (*SUMS, *CUTS, "request_tokens", *TOOK)),
        sa.Column("cost_usd", sa.Double()),
        sa.Column("ms", sa.Integer()),
        _text("cache"),
        sa.Column("idle_s", sa.Double()),
        _number("kept_tokens"),
        _number("held_tokens"),
        sa.Column("held_usd", sa.Double(), nullable=False),
        sa.Column("held_until", sa.DateTime(timezone=True)),
        *(_text(name) for name in ("tools_digest", "system_digest", "history")),
        sa.Column("sent", sa.JSON(), nullable=False),
    )
    op.create_index("ix_rounds_owner_id_created_at", "rounds", ["owner_id", "created_at"])
    op.create_index("ix_rounds_created_at", "rounds", ["created_at"])
    op.create_index("ix_rounds_conversation_id_created_at", "rounds", ["conversation_id", "created_at"])
    op.create_index("ix_rounds_owner_id_endpoint_created_at", "rounds", ["owner_id", "endpoint", "created_at"])


def _move_in() -> None:
    """A ledger row for each receipt, a thousand at a time."""
    bind = op.get_bind()
    columns = ("turn_id", "round", "owner_id", "receipt", "request_tokens", "model", *TOOK, "cost_usd", "created_at")
    kinds: dict[str, Any] = {"receipt": sa.JSON(), "created_at": sa.DateTime(timezone=True)}
    plans = sa.table("plans", *(sa.column(name, kinds.get(name)) for name in columns))
    turns = sa.table("turns", *(sa.column(name) for name in ("id", "conversation_id", "role", "channel")))
    kinds |= {"sent": sa.JSON(), "held_until": sa.DateTime(timezone=True)}
    names = [each["name"] for each in sa.inspect(bind).get_columns("rounds")]
    rounds = sa.table("rounds", *(sa.column(name, kinds.get(name)) for name in names))
    found = sa.select(plans, *(turns.c[name] for name in ("conversation_id", "role", "channel")))
    found = found.where(turns.c.id == plans.c.turn_id)
    place: tuple[str, int] = ("", 0)
    while True:
        past = sa.tuple_(plans.c.turn_id, plans.c.round) > sa.tuple_(*(sa.literal(each) for each in place))
        rows = bind.execute(found.where(past).order_by(plans.c.turn_id, plans.c.round).limit(1000)).mappings().all()
        if not rows:
            return
        bind.execute(rounds.insert(), [_row(dict(row)) for row in rows])
        place = (rows[-1]["turn_id"], rows[-1]["round"])


def _row(row: dict[str, Any]) -> dict[str, Any]:
    receipt = row.pop("receipt")
    sent, out = receipt.get("sent", []), [one for one in receipt.get("decisions", []) if not one["is_in"]]
    meta = sum(one["tokens"] for one in sent if one["category"] == "meta")
    tools, late = sum(one["tokens"] for one in sent) - meta, receipt.get("notes_tokens", 0)
    sums = dict.fromkeys((*SUMS, *CUTS), 0)
    if receipt:
        for one in out:
            sums[STAGES.get(one["stage"], "cut_choice")] += one["tokens"]
        sums["cut_role"] = receipt["total_tokens"] - receipt["permitted_tokens"]
        sums["total_tokens"] = receipt["total_tokens"]
        sums["sent_tokens"] = tools + late
        sums["extra_tokens"] = meta + receipt["catalog_tokens"]
    return {
        **row,
        **sums,
        "state": "answered" if row["model"] else "planned",
        **dict.fromkeys(("job_id", "endpoint", "cache", "tools_digest", "system_digest", "history"), ""),
        **dict.fromkeys(("ms", "idle_s", "held_until")),
        **dict.fromkeys(("kept_tokens", "held_tokens"), 0),
        "held_usd": 0.0,
        "sent": {one["name"]: one["tokens"] for one in sent},
    }


def _text(name: str, **rest: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), **{"nullable": False, **rest})


def _number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _time(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def _owner(**rest: Any) -> sa.Column[Any]:
    owner = sa.ForeignKey("accounts.id", ondelete="CASCADE")
    return sa.Column("owner_id", sa.Text(), owner, **{"nullable": False, **rest})
