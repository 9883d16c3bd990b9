"""The board from the chat, over the real task tables: a list is a column."""

from datetime import timedelta

import pytest
from pydantic import ValidationError

from cortex.base.errors import ToolFailed
from cortex.base.user import User
from cortex.ports.aether import Board, BoardColumn, Card
from cortex.services.content.board import TaskBoard
from tests.tool_world import World


class RemoteBoard:
    """A board elsewhere, with columns of its own."""

    async def columns(self, query: str, most: int) -> list[BoardColumn]:
        card = Card(id="card-000001", title="Login", due=None, priority=0, is_tainted=True)
        return [
            BoardColumn(name="In review", cards=(card,), total=1, is_tainted=False),
            BoardColumn(name="Blocked", cards=(), total=0, is_tainted=False),
        ]


class DeadBoard:
    async def columns(self, query: str, most: int) -> list[BoardColumn]:
        raise ToolFailed("The Aether server did not answer within 10 seconds.")


@pytest.fixture
def board(world: World) -> World:
    world.bound[Board] = lambda user_id: TaskBoard(db=world.db, user_id=user_id, clock=world.db.clock)
    return world


async def test_lists_are_columns_and_what_is_finished_stands_last(board: World, ann: User) -> None:
    await board.text(ann, "task_create", title="invoice", list_name="doing", due="2026-11-21", priority=2)
    await board.text(ann, "task_create", title="newsletter", list_name="backlog")
    await board.text(ann, "task_create", title="logo", list_name="doing")
    await board.text(ann, "task_complete", task="logo")
    lines = (await board.text(ann, "ae_task_list")).splitlines()
    assert [line.split(" (id")[0] for line in lines] == [
        "backlog (1)", "  - newsletter", "doing (1)", "  - invoice", "done (1)", "  - logo",
    ]  # fmt: skip
    assert lines[3].endswith("due 2026-11-21 (tomorrow), priority 2)")


async def test_a_card_moves_with_its_task(board: World, ann: User) -> None:
    await board.text(ann, "task_create", title="invoice", list_name="doing")
    await board.text(ann, "task_update", task="invoice", list_name="review")
    assert (await board.text(ann, "ae_task_list", column="Review")).startswith("review (1)")
    told = await board.text(ann, "ae_task_list", column="doing")
    assert ("'doing'" in told, "Columns: review, done" in told) == (True, True)


async def test_columns_are_narrowed_and_cut(board: World, ann: User) -> None:
    assert "nothing on" in await board.text(ann, "ae_task_list")
    for number in range(4):
        await board.text(ann, "task_create", title=f"thing {number}", list_name="backlog")
    assert "... and 2 more" in await board.text(ann, "ae_task_list", count=2)
    assert "thing 3" in await board.text(ann, "ae_task_list", query="thing 3")
    assert "No task" in await board.text(ann, "ae_task_list", query="dog")
    with pytest.raises(ValidationError):
        await board.text(ann, "ae_task_list", count=1_000)


async def test_what_was_finished_long_ago_is_left_out(board: World, ann: User) -> None:
    await board.text(ann, "task_create", title="old one")
    await board.text(ann, "task_complete", task="old one")
    later = TaskBoard(db=board.db, user_id=ann.id, clock=lambda: board.db.clock() + timedelta(days=15))
    assert [column.total for column in await later.columns("", 12)] == [0, 0]


async def test_a_remote_board_keeps_its_columns_and_its_mark(world: World, ann: User) -> None:
    world.wired[Board] = RemoteBoard()
    made = await world.run(world.ctx(ann), "ae_task_list")
    assert [line.strip() for line in made.text.splitlines()] == ["In review (1)", "- Login (id 000001)"]
    assert made.is_tainted
    told = await world.text(ann, "ae_task_list", column="blocked")
    assert ("(id " in told, "Columns: In review, Blocked" in told) == (False, True)


async def test_words_from_outside_stay_marked(board: World, ann: User) -> None:
    await board.text(ann, "task_create", title="my own")
    assert not (await board.run(board.ctx(ann), "ae_task_list")).is_tainted
    await board.run(board.ctx(ann, is_tainted=True), "task_create", title="read on a page")
    assert (await board.run(board.ctx(ann), "ae_task_list")).is_tainted


async def test_another_users_tasks_are_out_of_reach(board: World, ann: User, ben: User) -> None:
    await board.text(ann, "task_create", title="ann's secret", list_name="private")
    text = await board.text(ben, "ae_task_list")
    assert "secret" not in text
    assert "private" not in text


async def test_a_board_that_does_not_answer_is_said(world: World, ann: User) -> None:
    world.wired[Board] = DeadBoard()
    with pytest.raises(ToolFailed, match="did not answer"):
        await world.text(ann, "ae_task_list")
