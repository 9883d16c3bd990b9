"""The first tables: accounts, conversations with their log, calls, approvals, tasks, the audit chain, the search index.

Reversible: `downgrade` removes everything.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables, then what only one of the two databases can say: triggers and the search index."""
    _accounts()
    _conversations()
    _turns()
    _calls()
    _own_things()
    if op.get_bind().dialect.name == "postgresql":
        _postgresql()
    else:
        _sqlite()


def downgrade() -> None:
    """Remove everything, the audit chain included."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION audit_refuse_change() CASCADE")
    else:
        op.execute("DROP TABLE message_index")
    for name in (
        *("secrets", "preferences", "tasks"),
        *("undos", "grants", "approvals", "calls"),
        *("summaries", "plans", "messages", "turns", "events", "conversations"),
        *("audit", "attempts", "setup_links", "logins", "accounts"),
    ):
        op.drop_table(name)


def _accounts() -> None:
    op.create_table(
        "accounts",
        _key("id"),
        _text("name"),
        _text("name_key", unique=True),
        _text("rank"),
        _text("password_hash", nullable=True),
        _text("time_zone"),
        _flag("is_active"),
        _time("created_at"),
    )
    op.create_table(
        "logins",
        _key("id"),
        _ref("owner_id", "accounts", index=True),
        _text("token_hash", unique=True),
        _text("address"),
        _text("agent"),
        _time("created_at"),
        _time("seen_at"),
        _time("expires_at"),
        _time("confirmed_until", nullable=True),
    )
    op.create_table(
        "setup_links",
        _key("token_hash"),
        _ref("account_id", "accounts", nullable=True),
        _time("expires_at"),
        _time("used_at", nullable=True),
    )
    op.create_table("attempts", _key("key"), _number("count"), _time("last_at"), _time("not_before"))
    op.create_table(
        "audit",
        sa.Column("number", _serial(), primary_key=True, autoincrement=False),
        _time("at"),
        *(_text(name) for name in ("actor", "action", "subject", "detail", "previous_hash", "hash")),
    )


def _conversations() -> None:
    op.create_table(
        "conversations",
        _key("id"),
        _ref("owner_id", "accounts"),
        _text("title"),
        _flag("is_title_auto"),
        _text("role"),
        _text("mode"),
        _number("max_rounds", nullable=True),
        _flag("is_pinned"),
        _text("source"),
        _text("parent_id", nullable=True),
        _number("seq"),
        _number("turn_count"),
        _json("selection_state"),
        _time("created_at"),
        _time("updated_at"),
        _time("deleted_at", nullable=True),
        sa.Index("ix_conversations_owner_id_updated_at", "owner_id", "updated_at"),
    )
    op.create_table(
        "events",
        _ref("conversation_id", "conversations", primary_key=True),
        _number("seq", primary_key=True, autoincrement=False),
        _ref("owner_id", "accounts"),
        _text("kind"),
        _json("payload"),
        _text("turn_id", nullable=True),
        _time("at"),
        sa.Index("ix_events_conversation_id_turn_id", "conversation_id", "turn_id"),
    )
    op.create_table(
        "summaries",
        _key("id"),
        _ref("owner_id", "accounts"),
        _ref("conversation_id", "conversations"),
        _number("upto_ordinal"),
        _text("text"),
        _flag("is_tainted"),
        _time("created_at"),
        _time("undone_at", nullable=True),
        sa.Index("ix_summaries_conversation_id", "conversation_id"),
    )


def _turns() -> None:
    op.create_table(
        "turns",
        _key("id"),
        _ref("owner_id", "accounts"),
        _ref("conversation_id", "conversations"),
        _number("ordinal"),
        _text("state"),
        _text("text"),
        _text("mode"),
        _number("max_rounds", nullable=True),
        _text("role"),
        _text("channel"),
        _json("models"),
        _time("created_at"),
        _time("started_at", nullable=True),
        _time("ended_at", nullable=True),
        _number("rounds"),
        _text("error"),
        _flag("is_dropped"),
        _text("taken_by", nullable=True),
        _number("taken_round", nullable=True),
        _flag("is_tainted"),
        sa.UniqueConstraint("conversation_id", "ordinal"),
        sa.Index("ix_turns_state", "state"),
        sa.Index("ix_turns_conversation_id_state", "conversation_id", "state"),
    )
    op.create_table(
        "messages",
        sa.Column("position", _serial(), primary_key=True, autoincrement=True),
        _text("id", unique=True),
        _ref("owner_id", "accounts"),
        _ref("conversation_id", "conversations"),
        _ref("turn_id", "turns", index=True),
        _number("round"),
        _text("speaker"),
        _json("body"),
        _text("words"),
        _flag("is_tainted"),
        _time("created_at"),
        sa.Index("ix_messages_conversation_id_position", "conversation_id", "position"),
    )
    op.create_table(
        "plans",
        _ref("turn_id", "turns", primary_key=True),
        _number("round", primary_key=True, autoincrement=False),
        _ref("owner_id", "accounts"),
        _json("receipt"),
        _number("request_tokens"),
        _text("model"),
        *(_number(name) for name in ("input_tokens", "output_tokens", "cached_tokens", "written_tokens")),
        sa.Column("cost_usd", sa.Double()),
        _time("created_at"),
        sa.Index("ix_plans_owner_id_created_at", "owner_id", "created_at"),
    )


def _calls() -> None:
    op.create_table(
        "calls",
        _key("id"),
        _ref("owner_id", "accounts"),
        _ref("conversation_id", "conversations", index=True),
        _ref("turn_id", "turns", index=True),
        _number("round"),
        *(_text(name) for name in ("name", "arguments", "arguments_hash", "risk", "state", "text")),
        _flag("is_error"),
        _flag("is_tainted"),
        _number("ms", nullable=True),
        _text("spill", nullable=True),
        _time("created_at"),
    )
    op.create_table(
        "approvals",
        _key("id"),
        _ref("owner_id", "accounts"),
        _text("call_id", unique=True),
        _ref("turn_id", "turns"),
        *(_text(name) for name in ("tool", "arguments_hash", "destination", "verb", "detail", "why", "risk", "state")),
        _time("created_at"),
        _time("expires_at"),
        _time("answered_at", nullable=True),
        _text("answered_by", nullable=True),
        _time("used_at", nullable=True),
        sa.Index("ix_approvals_owner_id_state", "owner_id", "state"),
    )
    op.create_table(
        "grants",
        _key("id"),
        _ref("owner_id", "accounts"),
        _text("tool"),
        _text("destination"),
        _ref("conversation_id", "conversations", nullable=True),
        _time("created_at"),
        _time("expires_at"),
        _time("revoked_at", nullable=True),
        sa.Index("ix_grants_owner_id_tool", "owner_id", "tool"),
    )
    op.create_table(
        "undos",
        _key("id"),
        _ref("owner_id", "accounts"),
        _ref("call_id", "calls", index=True),
        _text("category"),
        _text("target"),
        _json("before", nullable=True),
        _text("expected"),
        _text("label"),
        _time("created_at"),
        _time("expires_at"),
        _time("used_at", nullable=True),
        sa.Index("ix_undos_owner_id_expires_at", "owner_id", "expires_at"),
    )


def _own_things() -> None:
    op.create_table(
        "tasks",
        _key("id"),
        _ref("owner_id", "accounts"),
        _text("list_name"),
        _text("title"),
        _text("notes"),
        sa.Column("due", sa.Date()),
        _number("priority"),
        _number("position"),
        _flag("is_done"),
        _time("done_at", nullable=True),
        _flag("is_tainted"),
        _number("version"),
        _time("created_at"),
        _time("updated_at"),
        sa.Index("ix_tasks_owner_id_list_name", "owner_id", "list_name"),
    )
    op.create_table(
        "preferences", _ref("owner_id", "accounts", primary_key=True), _key("key"), _json("value"), _time("updated_at")
    )
    op.create_table(
        "secrets",
        _ref("owner_id", "accounts", primary_key=True),
        _key("name"),
        sa.Column("ciphertext", sa.LargeBinary(), nullable=False),
        _time("updated_at"),
    )


def _sqlite() -> None:
    for change in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER audit_no_{change.lower()} BEFORE {change} ON audit "
            "BEGIN SELECT RAISE(ABORT, 'audit rows are never changed or deleted'); END"
        )
    op.execute(
        "CREATE VIRTUAL TABLE message_index USING fts5(words, content='messages', content_rowid='position', "
        "prefix='2 3', tokenize='unicode61 remove_diacritics 0')"
    )
    add = "INSERT INTO message_index(rowid, words) VALUES (new.position, new.words);"
    take = "INSERT INTO message_index(message_index, rowid, words) VALUES ('delete', old.position, old.words);"
    for when, what in (("INSERT", add), ("DELETE", take), ("UPDATE OF words", take + add)):
        name = f"message_index_{when.split()[0].lower()}"
        op.execute(f"CREATE TRIGGER {name} AFTER {when} ON messages BEGIN {what} END")


def _postgresql() -> None:
    op.execute(
        "CREATE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'audit rows are never changed or deleted'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse_change()"
    )
    op.execute("CREATE INDEX message_index ON messages USING gin (array_to_tsvector(string_to_array(words, ' ')))")


def _serial() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _key(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), primary_key=True)


def _text(name: str, **rest: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), **{"nullable": False, **rest})


def _number(name: str, **rest: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), **{"nullable": False, **rest})


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _time(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _json(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON(none_as_null=True), nullable=nullable)


def _ref(name: str, table: str, **rest: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), sa.ForeignKey(f"{table}.id", ondelete="CASCADE"), **{"nullable": False, **rest})
