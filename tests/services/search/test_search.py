"""One search over chats and notes: what it finds, what it never shows, and where its hits lead."""

import io
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.base.messages import assistant
from cortex.base.messages import user as asks
from cortex.base.user import User
from cortex.ports.documents import Extracted, PageText
from cortex.services.search import search
from cortex.services.search.search import MOST, Hit, Piece
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.documents import DocumentsRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from cortex.storage.versions import VersionsRepository
from tests.databases import house_settings
from tests.plain_world import PLAIN_TURN


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Cortex]:
    async with Cortex.at_rest(house_settings(tmp_path / "home")) as cortex:
        yield cortex


@pytest.fixture
async def ann(house: Cortex) -> User:
    return (await house.accounts.add_user("Ann", "member", None)).user


async def talk(house: Cortex, user: User, key: str, asked: str, answered: str, title: str = "") -> str:
    """A chat with one turn; its id."""
    db = house.runtime.db
    made = await db.repository(ConversationsRepository, user.id).create(
        "orchestrator", "auto", title, is_title_tainted=False
    )
    await db.repository(TurnsRepository, user.id).create(NewTurn(f"turn:{key}", made.id, asked, **PLAIN_TURN))
    await db.repository(MessagesRepository, user.id).add(f"turn:{key}", 0, asks(asked), False)
    await db.repository(MessagesRepository, user.id).add(f"turn:{key}", 1, assistant(answered), False)
    return made.id


async def found(house: Cortex, user: User, query: str) -> dict[str, list[Hit]]:
    return {group.kind: list(group.hits) for group in await house.search.find(user, query)}


def shown(hit: Hit) -> str:
    """Its snippet, the marked words in brackets."""
    return "".join(f"[{words}]" if is_hit else words for words, is_hit in hit.snippet)


async def test_of_very_many_tasks_no_more_are_read_than_are_shown(
    house: Cortex, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MOST + 5):
        await house.tasks.create(ann, f"Prune rose {number}")
    marked = list[str]()

    def mark(text: str, _: str) -> Sequence[Piece]:
        marked.append(text)
        return ((text, False),)

    monkeypatch.setattr(search, "marked", mark)
    assert len((await found(house, ann, "prune"))["tasks"]) == MOST
    assert len(marked) == MOST


async def test_a_hit_is_plain_text_with_its_words_marked_and_leads_to_its_turn(house: Cortex, ann: User) -> None:
    cid = await talk(
        house,
        ann,
        "a",
        "When do I prune?",
        "## Pruning\n\n- [x] **Gärten**: see [the guide](http://x.example) for `rosa`\n- is 01jd8zk3m5q7r9t2v4w6x8yabc",
        "Roses",
    )
    (hit,) = (await found(house, ann, "garten rosa"))["messages"]
    assert shown(hit) == "Pruning [Gärten]: see the guide for [rosa] is …"
    assert (hit.path, hit.title) == (f"/c/{cid}/at/a", (("Roses", False),))


async def test_a_turn_is_shown_once_however_often_it_fits(house: Cortex, ann: User) -> None:
    await talk(house, ann, "a", "plums?", "Plums are ripe in September.")
    await talk(house, ann, "b", "more plums?", "No.")
    hits = (await found(house, ann, "plum"))["messages"]
    assert [hit.path.rpartition("/")[2] for hit in hits] == ["b", "a"]


async def test_titles_and_notes_are_found_by_beginnings_without_accents(house: Cortex, ann: User) -> None:
    cid = await talk(house, ann, "a", "hello", "hi", "Crème brûlée for Zoë")
    name = await house.notes.create(ann, "Desserts")
    text = "# Desserts\n\nfirst\n\n- **crème** caramel\n"
    await house.notes.write(ann, name, text, (await house.notes.read(ann, name)).version)
    groups = await found(house, ann, "CREM")
    assert [hit.path for hit in groups["titles"]] == [f"/c/{cid}"]
    assert groups["titles"][0].title[0] == ("Crème", True)
    (note,) = groups["notes"]
    assert (note.path, note.where, shown(note)) == ("/notes/Desserts?line=5", "line 5", "[crème] caramel")
    assert [hit.path for hit in (await found(house, ann, "dessert"))["notes"]] == ["/notes/Desserts"]
    assert await found(house, ann, "rème") == {}
    assert await found(house, ann, "—") == {}


async def test_files_are_found_by_name_and_at_the_page_of_their_text(house: Cortex, ann: User) -> None:
    row = await house.documents.give(ann, "Rental contract.pdf", io.BytesIO(b"%PDF-1.7"), 8)
    pages = (PageText(number=1, text="Who rents."), PageText(number=2, text="Dogs are allowed, cats too."))
    await house.runtime.db.repository(DocumentsRepository, ann.id).keep_text(row.id, Extracted(pages=pages))
    (named, *_) = (await found(house, ann, "contract"))["files"]
    assert (named.path, named.title[1]) == (f"/files/{row.id}", ("contract", True))
    (text,) = (await found(house, ann, "dogs"))["files"]
    assert (text.path, text.where, shown(text)) == (
        f"/files/{row.id}?page=2#page-2",
        "page 2",
        "[Dogs] are allowed, cats too.",
    )
    await house.documents.delete(ann, row.id)
    assert await found(house, ann, "dogs") == {}


async def test_what_is_out_of_view_is_never_found(house: Cortex, ann: User) -> None:
    ben = (await house.accounts.add_user("Ben", "member", None)).user
    deleted = await talk(house, ann, "a", "walnuts one", "yes", "Walnuts")
    dropped = await talk(house, ann, "b", "walnuts two", "yes", "Hazel")
    await house.conversations.delete(ann, deleted)
    await house.runtime.db.repository(VersionsRepository, ann.id).drop_from(dropped, 1)
    await house.notes.create(ben, "Walnuts")
    assert await found(house, ann, "walnut") == {}
    assert list(await found(house, ben, "walnut")) == ["notes"]


async def test_an_archived_chat_is_found_with_a_mark(house: Cortex, ann: User) -> None:
    cid = await talk(house, ann, "a", "medlars", "yes", "Medlars")
    await house.several_chats.archive(ann, [cid])
    groups = await found(house, ann, "medlar")
    assert [hit.is_archived for hit in (*groups["titles"], *groups["messages"])] == [True, True]
