"""Which turns are in view: new versions, going back and forth, and what old tables are made into."""

from typing import Any

import pytest
from sqlalchemy import text

from cortex.base.errors import NotFound
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.messages import MessagesRepository
from cortex.storage.summaries import SummariesRepository
from cortex.storage.turns import TurnsRepository
from cortex.storage.versions import VersionsRepository


class Tree:
    """A conversation whose turns are named by letters, in the order in which they were made."""

    def __init__(self, db: Database, owner_id: str, talk: Any) -> None:
        self.talk = talk
        self.turns = db.repository(TurnsRepository, owner_id)
        self.versions = db.repository(VersionsRepository, owner_id)
        self.log = db.repository(ConversationsRepository, owner_id)

    async def say(self, names: str) -> None:
        for name in names:
            await self.talk.turn(name)
            await self.log.append(self.talk.id, [("message", {"turn": name}, name)])

    async def replace(self, name: str, by: str) -> None:
        row = await self.turns.get(name)
        dropped = await self.versions.drop_from(self.talk.id, row.ordinal)
        await self.log.append(self.talk.id, [("turn.drop", {"turns": [*dropped]}, None)])
        await self.say(by)

    async def show(self, name: str) -> str:
        """What is in view once this version is; and that the answer says what was changed."""
        before = await self.view()
        hidden, shown = await self.versions.choose(await self.turns.get(name))
        view = await self.view()
        assert set(view) == set(before) - set(hidden) | set(shown)
        return view

    async def view(self) -> str:
        return "".join(turn.id for turn in await self.turns.list(self.talk.id))


@pytest.fixture
async def tree(db: Database, ann: str, talk: Any) -> Tree:
    """a b c, then d e in b's place, then f in e's."""
    tree = Tree(db, ann, talk)
    await tree.say("abc")
    await tree.replace("b", by="de")
    await tree.replace("e", by="f")
    return tree


async def test_what_followed_a_version_comes_back_with_it(tree: Tree) -> None:
    assert await tree.view() == "adf"
    assert await tree.show("b") == "abc"
    await tree.say("g")
    assert await tree.view() == "abcg"
    assert await tree.show("d") == "adf"
    assert await tree.show("b") == "abcg"
    assert await tree.show("e") == "ade"  # deep in a branch out of view: the way there is chosen with it
    assert await tree.show("b") == "abcg"
    assert await tree.show("d") == "ade"
    assert await tree.show("d") == "ade"


async def test_a_place_with_several_versions_knows_all_of_them(tree: Tree, ann: str, db: Database) -> None:
    await tree.replace("a", by="h")
    known = await tree.versions.of_conversation(tree.talk.id)
    assert known == {name: tuple(place) for place in ("bd", "ef", "ah") for name in place}
    assert [row.id for row in await tree.versions.of(await tree.turns.get("d"))] == ["b", "d"]
    stored = await db.repository(MessagesRepository, ann).of_conversation(tree.talk.id)
    assert [row.turn_id for row in stored] == ["h"]


async def test_a_summary_is_in_force_where_its_last_turn_is_in_view(tree: Tree, db: Database, ann: str) -> None:
    summaries = db.repository(SummariesRepository, ann)
    made = await summaries.add(tree.talk.id, (await tree.turns.get("d")).ordinal, "They spoke of d.", False)
    assert await summaries.latest(tree.talk.id) == made
    await tree.show("b")
    assert await summaries.latest(tree.talk.id) is None
    await tree.show("f")
    assert await summaries.latest(tree.talk.id) == made


async def test_nobody_elses_versions_are_seen_or_chosen(tree: Tree, db: Database, ben: str) -> None:
    theirs = db.repository(VersionsRepository, ben)
    assert await theirs.of_conversation(tree.talk.id) == {}
    with pytest.raises(NotFound):
        await theirs.hold(tree.talk.id)
    assert await theirs.next_in_view(tree.talk.id, 1) is None


async def test_old_turns_become_versions_as_their_log_tells(tree: Tree, db: Database) -> None:
    columns = "id, parent_id, is_chosen, is_dropped"
    tables = text(f"SELECT {columns} FROM turns WHERE id <> 'x' ORDER BY ordinal")  # noqa: S608 - ours
    async with db.connection() as connection:
        made = (await connection.execute(tables)).all()
    await tree.say("x")
    await db.move_to("0029")
    async with db.connection() as connection:  # hidden by a version that wrote no log
        await connection.execute(text("UPDATE turns SET is_dropped = :yes WHERE id = 'x'"), {"yes": True})
        await connection.commit()
    await db.move_to("head")
    async with db.connection() as connection:
        assert (await connection.execute(tables)).all() == made
    assert await tree.view() == "adf"
    await tree.say("y")
    assert await tree.show("b") == "abc"
    assert await tree.show("f") == "adfy"
