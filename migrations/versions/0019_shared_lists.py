"""Task lists are shared with people of the household; a task says who added it, ticked it and wrote its words.

Reversible: `downgrade` ends all sharing and forgets who did what; each task stays with the owner of its list. One whose
words are not all that owner's is marked as holding words from outside: an older version knows no other people's.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """No list is shared yet: what is there was added and written by its owner."""
    for name in ("added_by", "done_by", "worded_by"):
        op.add_column("tasks", sa.Column(name, sa.Text(), nullable=True))
    op.execute("UPDATE tasks SET added_by = owner_id, worded_by = owner_id")
    op.execute("UPDATE tasks SET done_by = owner_id WHERE done_at IS NOT NULL")
    op.create_table(
        "task_lists",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_task_lists"),
        sa.ForeignKeyConstraint(["owner_id"], ["accounts.id"], name="fk_task_lists_owner_id", ondelete="CASCADE"),
        sa.UniqueConstraint("owner_id", "name", name="uq_task_lists_owner_id_name"),
    )
    op.create_table(
        "task_list_members",
        sa.Column("list_id", sa.Text(), nullable=False),
        sa.Column("member_id", sa.Text(), nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("list_id", "member_id", name="pk_task_list_members"),
        sa.ForeignKeyConstraint(
            ["list_id"], ["task_lists.id"], name="fk_task_list_members_list_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["member_id"], ["accounts.id"], name="fk_task_list_members_member_id", ondelete="CASCADE"
        ),
        sa.Index("ix_task_list_members_member_id", "member_id"),
    )


def downgrade() -> None:
    """End all sharing; the mark of words by others stays."""
    op.execute(
        sa.text("UPDATE tasks SET is_tainted = :yes WHERE worded_by IS NULL OR worded_by <> owner_id").bindparams(
            yes=True
        )
    )
    op.drop_table("task_list_members")
    op.drop_table("task_lists")
    for name in ("worded_by", "done_by", "added_by"):
        op.drop_column("tasks", name)
