"""A conversation can be archived, and is found by the words of its title whatever their accents.

Reversible: `downgrade` puts archived conversations back into the list.
"""

import sqlalchemy as sa
from alembic import op

from cortex.storage.words import title_words

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Nothing is archived; the titles' words are written down."""
    op.add_column("conversations", sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("conversations", sa.Column("title_words", sa.Text(), nullable=False, server_default=""))
    table = sa.table("conversations", sa.column("id"), sa.column("title"), sa.column("title_words"))
    connection = op.get_bind()
    titles = connection.execute(sa.select(table.c.id, table.c.title)).all()
    change = table.update().where(table.c.id == sa.bindparam("of")).values(title_words=sa.bindparam("words"))
    if titles:
        connection.execute(change, [{"of": id, "words": title_words(title)} for id, title in titles])


def downgrade() -> None:
    """Forget both."""
    op.drop_column("conversations", "title_words")
    op.drop_column("conversations", "archived_at")
