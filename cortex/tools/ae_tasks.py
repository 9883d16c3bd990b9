"""The Aether board: the user's tasks by column. Cortex's own tasks unless an Aether server is configured."""

from datetime import date
from typing import Annotated

from pydantic import Field

from cortex.base.ids import short
from cortex.base.zone import day, local
from cortex.ports.aether import Board, BoardColumn, Card
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import Output

SUMMARY = "the kanban board"
PREFIXES = ("ae_task_",)
NEEDS = ("Board",)
ROLES = {"orchestrator": ("ae_tasks",)}
TESTED = "its tables, on SQLite and PostgreSQL"


@tool(words="Look at the board[: {column}][, for {query}]", effect="read", reads_private=True)
async def ae_task_list(
    ctx: Ctx, column: str = "", query: str = "", count: Annotated[int, Field(ge=1, le=30)] = 12
) -> Output:
    """Show the Aether task board: tasks by column.

    Args:
        column: Only this column.
        query: Words in the task.
        count: How many a column.
    """
    columns = await ctx.use(Board).columns(query, count)
    if not columns:
        return Output(text="There is nothing on the board yet. task_create adds a task; its list is its column.")
    wanted = column.strip().casefold()
    shown = [one for one in columns if wanted in one.name.casefold()]
    names, tainted = ", ".join(one.name for one in columns), any(one.is_tainted for one in columns)
    if not shown:
        return Output(text=f"The board has no column {column!r}. Columns: {names}.", is_tainted=tainted)
    if not any(one.cards for one in shown):
        told = f"No task on the board{' fits' if query or column else ''}. Columns: {names}."
        return Output(text=told, is_tainted=tainted)
    tainted = any(one.is_tainted or any(card.is_tainted for card in one.cards) for one in shown)
    today = local(ctx.now, ctx.user.time_zone).date()
    return Output(text="\n".join(_column_text(one, today) for one in shown if one.cards), is_tainted=tainted)


def _column_text(column: BoardColumn, today: date) -> str:
    """A column with its cards, a line each."""
    rest = column.total - len(column.cards)
    more = [f"  ... and {rest} more"] if rest > 0 else []
    return "\n".join([f"{column.name} ({column.total})", *(_line(card, today) for card in column.cards), *more])


def _line(card: Card, today: date) -> str:
    facts = [f"id {short(card.id)}"]
    facts += [f"due {day(card.due, today)}"] if card.due else []
    facts += [f"priority {card.priority}"] if card.priority else []
    return f"  - {card.title} ({', '.join(facts)})"
