"""What a turn has read stands with the turn, and what a job's prompt was written from with the job.

Of turns that are there already it is worked out from their calls and messages; where that leaves a doubt (a branch
has no calls) private data counts as read. Answers that were given over outside words are marked, for who finds them
again. Reversible: `downgrade` forgets it; calls and messages still say it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

# what put nothing of the user's own before a model, as of this version
HARMLESS = (
    *("web_search", "web_read", "http_fetch", "http_post", "tools_discover", "tool_call", "task_create", "cron_add"),
    *("reminders_add", "skill_list", "skill_read", "spawn_agent", "web_push", "email_send"),
)


def upgrade() -> None:
    """Turns as their calls and messages tell; jobs that were made from outside words hold private ones too."""
    op.add_column("turns", sa.Column("has_read_outside", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("turns", sa.Column("has_read_private", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("jobs", sa.Column("is_private", sa.Boolean(), nullable=False, server_default=sa.false()))
    turns, calls, messages = _turns(), _calls(), _messages()
    its_calls, its_messages = calls.c.turn_id == turns.c.id, messages.c.turn_id == turns.c.id
    outside = sa.exists().where(its_calls, calls.c.is_tainted) | sa.exists().where(its_messages, messages.c.is_tainted)
    read = sa.exists().where(its_calls, calls.c.state.in_(("done", "failed")), calls.c.name.not_in(HARMLESS))
    copied = sa.exists().where(its_messages, messages.c.speaker == "tool") & ~sa.exists().where(its_calls)
    handed_over = turns.c.channel.in_(("agent", "result"))
    op.execute(turns.update().where(outside).values(has_read_outside=True))
    op.execute(turns.update().where(read | copied | handed_over).values(has_read_private=True))
    first = sa.select(turns.c.conversation_id, sa.func.min(turns.c.ordinal).label("ordinal"))
    begin = first.where(turns.c.has_read_outside | turns.c.is_tainted).group_by(turns.c.conversation_id).subquery()
    since = (turns.c.conversation_id == begin.c.conversation_id) & (turns.c.ordinal >= begin.c.ordinal)
    over = messages.c.turn_id.in_(sa.select(turns.c.id).join_from(turns, begin, since))
    op.execute(messages.update().where(messages.c.speaker == "assistant", over).values(is_tainted=True))
    jobs = sa.table("jobs", sa.column("is_tainted", sa.Boolean()), sa.column("is_private", sa.Boolean()))
    op.execute(jobs.update().where(jobs.c.is_tainted).values(is_private=True))


def downgrade() -> None:
    """Take it all away again."""
    op.drop_column("jobs", "is_private")
    op.drop_column("turns", "has_read_private")
    op.drop_column("turns", "has_read_outside")


def _turns() -> sa.TableClause:
    flags = (sa.column(name, sa.Boolean()) for name in ("is_tainted", "has_read_outside", "has_read_private"))
    return sa.table("turns", *map(sa.column, ("id", "conversation_id", "ordinal", "channel")), *flags)


def _calls() -> sa.TableClause:
    return sa.table("calls", *map(sa.column, ("turn_id", "name", "state")), sa.column("is_tainted", sa.Boolean()))


def _messages() -> sa.TableClause:
    return sa.table("messages", *map(sa.column, ("turn_id", "speaker")), sa.column("is_tainted", sa.Boolean()))
