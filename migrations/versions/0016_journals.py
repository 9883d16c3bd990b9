"""Journals with entries, what the entries were before, and the index that finds them by their words.

Reversible: `downgrade` drops them with all that was written.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Make the tables, empty."""
    _tables()
    if op.get_bind().dialect.name == "postgresql":
        words = "array_to_tsvector(string_to_array(words, ' '))"
        op.execute(f"CREATE INDEX journal_index ON journal_entries USING gin ({words})")
    else:
        _sqlite_index()


def downgrade() -> None:
    """Take them away again; on SQLite the index is a table of its own, its triggers go with theirs."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TABLE journal_index")
    for table in ("journal_versions", "journal_entries", "journals"):
        op.drop_table(table)


def _tables() -> None:
    in_use = sa.text("disabled_at IS NULL")
    op.create_table(
        "journals",
        sa.Column("id", sa.Text(), primary_key=True),
        _ref("owner_id", "accounts"),
        _text("name"),
        _text("name_key"),
        _flag("is_tainted"),
        sa.Column("version", sa.Integer(), nullable=False),
        _time("created_at"),
        _time("updated_at"),
        _time("disabled_at", nullable=True),
        _text("disabled_by"),
    )
    op.create_index(
        "uq_journals_owner_id_name_key",
        "journals",
        ["owner_id", "name_key"],
        unique=True,
        sqlite_where=in_use,
        postgresql_where=in_use,
    )
    op.create_table(
        "journal_entries",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        _text("id", unique=True),
        _ref("owner_id", "accounts"),
        _ref("journal_id", "journals"),
        *(_text(name) for name in ("title", "text", "words")),
        _flag("is_tainted"),
        sa.Column("version", sa.Integer(), nullable=False),
        _time("written_at"),
        _time("changed_at"),
        _text("changed_by"),
        _time("disabled_at", nullable=True),
        _text("disabled_by"),
        sa.Index("ix_journal_entries_owner_id_written_at", "owner_id", "written_at"),
        sa.Index("ix_journal_entries_journal_id_written_at", "journal_id", "written_at"),
    )
    op.create_table(
        "journal_versions",
        _ref("entry_id", "journal_entries", primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        _ref("owner_id", "accounts"),
        _text("title"),
        _text("text"),
        _flag("is_tainted"),
        _flag("is_enabled"),
        _time("changed_at"),
        _text("changed_by"),
    )


def _sqlite_index() -> None:
    op.execute(
        "CREATE VIRTUAL TABLE journal_index USING fts5(words, content='journal_entries', content_rowid='position', "
        "prefix='2 3', tokenize='unicode61 remove_diacritics 0')"
    )
    add = "INSERT INTO journal_index(rowid, words) VALUES (new.position, new.words);"
    take = "INSERT INTO journal_index(journal_index, rowid, words) VALUES ('delete', old.position, old.words);"
    for when, what in (("INSERT", add), ("DELETE", take), ("UPDATE OF words", take + add)):
        name = f"journal_index_{when.split()[0].lower()}"
        op.execute(f"CREATE TRIGGER {name} AFTER {when} ON journal_entries BEGIN {what} END")


def _text(name: str, **rest: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), **{"nullable": False, **rest})


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _time(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _ref(name: str, table: str, **rest: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), sa.ForeignKey(f"{table}.id", ondelete="CASCADE"), **{"nullable": False, **rest})
