"""The text of documents can be searched, and files are known that nobody gave: made by tools, or copied there.

Reversible: `downgrade` forgets the index and which files were only found; their rows stay.
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

WORDS = "array_to_tsvector(string_to_array(words, ' '))"


def upgrade() -> None:
    """No text was read before."""
    op.add_column("documents", sa.Column("is_paged", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("documents", sa.Column("is_found", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("documents", sa.Column("changed_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("document_pages", sa.Column("title", sa.Text(), nullable=False, server_default=""))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"CREATE INDEX document_index ON document_pages USING gin ({WORDS})")
        return
    op.execute(
        "CREATE VIRTUAL TABLE document_index USING fts5(words, content='document_pages', content_rowid='position', "
        "prefix='3 4', tokenize='unicode61 remove_diacritics 0')"
    )
    op.execute("INSERT INTO document_index(document_index) VALUES ('rebuild')")
    add = "INSERT INTO document_index(rowid, words) VALUES (new.position, new.words);"
    take = "INSERT INTO document_index(document_index, rowid, words) VALUES ('delete', old.position, old.words);"
    for when, what in (("INSERT", add), ("DELETE", take), ("UPDATE OF words", take + add)):
        name = f"document_index_{when.split()[0].lower()}"
        op.execute(f"CREATE TRIGGER {name} AFTER {when} ON document_pages BEGIN {what} END")


def downgrade() -> None:
    """Forget them."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP INDEX document_index")
    else:
        for when in ("insert", "delete", "update"):
            op.execute(f"DROP TRIGGER document_index_{when}")
        op.execute("DROP TABLE document_index")
    op.drop_column("document_pages", "title")
    for name in ("changed_at", "is_found", "is_paged"):
        op.drop_column("documents", name)
