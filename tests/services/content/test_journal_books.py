"""What a person's journals do, the same in Cortex's own tables on both databases and on an Aether server."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.ids import derived_id
from cortex.integrations.cards.aether import AetherForm, AetherServer
from cortex.ports.aether import EntryChange
from cortex.ports.journals import ASSISTANT, PERSON, JournalBook, JournalChange
from cortex.services.content.own_journals import OwnJournals
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from tests.aether_server import TOKEN, AetherDouble
from tests.still_clock import StillClock
from tests.storage.conftest import KINDS


@dataclass(frozen=True)
class Books:
    """The books of two people, and the clock they go by."""

    ann: JournalBook
    ben: JournalBook
    clock: StillClock


@pytest.fixture
def aether(clock: StillClock) -> Iterator[AetherDouble]:
    with AetherDouble(now=clock) as double:
        yield double


@pytest.fixture(params=[*KINDS, "aether"])
async def books(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> AsyncIterator[Books]:
    if request.param == "aether":
        double: AetherDouble = request.getfixturevalue("aether")
        server = AetherServer(AetherForm(address=double.address, token=SecretStr(TOKEN)))
        yield Books(server.journals("ann", "Europe/Berlin", PERSON), server.journals("ben", "UTC", ASSISTANT), clock)
        return
    template: Any = request.getfixturevalue("sqlite_template" if request.param == "sqlite" else "postgres_template")
    url = template.fresh(tmp_path) if request.param == "sqlite" else template.fresh()
    db = Database(url, clock=clock)
    accounts = db.repository(AccountsRepository)
    ann = await accounts.add("ann", "Ann", "admin", None, "Europe/Berlin")
    ben = await accounts.add("ben", "Ben", "member", None, "UTC")
    yield Books(OwnJournals(db=db, user_id=ann.id, by=PERSON), OwnJournals(db=db, user_id=ben.id, by=ASSISTANT), clock)
    await db.close()
    if request.param == "postgresql":
        template.drop(url)


async def test_an_entry_makes_its_journal_and_is_found_again(books: Books) -> None:
    text = "The dahlias are in."
    made = await books.ann.write("e1", "Garden", "First frost", text, False)
    assert (made.journal, made.title, made.text, made.version) == ("Garden", "First frost", text, 1)
    assert (made.written_at, made.changed_by, made.is_tainted) == (books.clock(), PERSON, False)
    assert await books.ann.entry("e1") == made
    (journal,) = await books.ann.list()
    assert (journal.name, journal.entries, journal.id) == ("Garden", 1, made.journal_id)
    assert journal.changed_at == books.clock()


async def test_writing_twice_is_writing_once(books: Books) -> None:
    first = await books.ann.write("e1", "Garden", "Frost", "a", False)
    journal = await books.ann.change_journal(first.journal_id, 1, JournalChange(name="Allotment"))
    again = await books.ann.write("e1", "Garden", "Frost", "b", False)
    assert (again.text, again.journal) == ("a", "Allotment")
    assert [one.id for one in await books.ann.list()] == [journal.id]


@pytest.mark.parametrize("name", ["garden", "GARDEN", "  Garden ", "\uff27ARDEN"])
async def test_a_journal_is_known_in_any_case(books: Books, name: str) -> None:
    first = await books.ann.write("e1", "Garden", "a", "a", False)
    assert (await books.ann.write("e2", name, "b", "b", False)).journal_id == first.journal_id
    with pytest.raises(UserError, match="already"):
        await books.ann.create("j9", name)
    other = await books.ann.create("j2", "Work")
    with pytest.raises(UserError, match="already"):
        await books.ann.change_journal(other.id, 1, JournalChange(name=name))


async def test_entries_are_found_by_words_days_and_journal(books: Books) -> None:
    await books.ann.write("e1", "Garden", "First frost", "The Döner stand, and the dahlias.", False)
    books.clock.forward(minutes=20 * 60)  # in Berlin the next day
    await books.ann.write("e2", "River", "Walk", "An otter. The water's cold.", False)

    async def found(query: str = "", journal: str | None = None, *days: date | None) -> list[str]:
        since, until = days or (None, None)
        return [row.id for row in await books.ann.entries(journal, query, since, until, 10)]

    assert await found() == ["e2", "e1"]
    assert await found("DAHL") == ["e1"]
    assert await found("doner first") == ["e1"]
    assert await found("otter dahlias") == []
    assert await found("the") == ["e2", "e1"]
    assert await found("!?") == []
    assert await found("") == ["e2", "e1"]
    garden = next(one for one in await books.ann.list() if one.name == "Garden")
    assert await found("", garden.id) == ["e1"]
    today = (await books.ann.entry("e1")).written_at.date()
    assert await found("", None, today, today) == ["e1"]
    assert await found("", None, today + timedelta(days=1), None) == ["e2"]
    assert await found("", None, date.min, date.max) == ["e2", "e1"]
    assert [row.id for row in await books.ann.entries(None, "", None, None, 1)] == ["e2"]


async def test_a_change_keeps_what_stood_there(books: Books) -> None:
    await books.ann.write("e1", "Garden", "Frost", "a", False)
    books.clock.forward(minutes=1)
    made = await books.ann.change("e1", 1, EntryChange(text="b", is_tainted=True))
    assert (made.title, made.text, made.version, made.is_tainted) == ("Frost", "b", 2, True)
    assert made.changed_at == books.clock()
    assert [row.id for row in await books.ann.entries(None, "b", None, None, 9)] == ["e1"]
    assert await books.ann.entries(None, "a", None, None, 9) == []
    made = await books.ann.change("e1", 2, EntryChange(title="Ice"))
    assert made.is_tainted, "a mark is never cleared"
    found = await books.ann.versions("e1", 10)
    assert [(one.version, one.title, one.text, one.is_tainted, one.by) for one in found] == [
        (3, "Ice", "b", True, PERSON),
        (2, "Frost", "b", True, PERSON),
        (1, "Frost", "a", False, PERSON),
    ]
    assert len(await books.ann.versions("e1", 2)) == 2


async def test_a_change_over_another_one_is_refused(books: Books) -> None:
    await books.ann.write("e1", "Garden", "Frost", "a", False)
    await books.ann.change("e1", 1, EntryChange(text="b"))
    with pytest.raises(Conflict):
        await books.ann.change("e1", 1, EntryChange(text="c"))
    assert (await books.ann.entry("e1")).text == "b"
    assert len(await books.ann.versions("e1", 10)) == 2


async def test_an_entry_is_taken_away_and_brought_back(books: Books) -> None:
    await books.ann.write("e1", "Garden", "Frost", "a", False)
    gone = await books.ann.change("e1", 1, EntryChange(is_enabled=False))
    assert (gone.disabled_at, gone.disabled_by, gone.version) == (books.clock(), PERSON, 2)
    with pytest.raises(NotFound):
        await books.ann.entry("e1")
    assert await books.ann.entries(None, "", None, None, 9) == []
    assert [one.entries for one in await books.ann.list()] == [0]
    assert (await books.ann.look("e1")).text == "a"
    page = await books.ann.page(None, "", "", 9, is_enabled=False)
    assert [row.id for row in page.entries] == ["e1"]
    back = await books.ann.change("e1", 2, EntryChange(is_enabled=True))
    assert (back.disabled_at, back.disabled_by) == (None, "")
    assert [one.is_enabled for one in await books.ann.versions("e1", 9)] == [True, False, True]
    assert (await books.ann.entry("e1")).version == 3


async def test_a_journal_is_taken_away_with_its_entries(books: Books) -> None:
    entry = await books.ann.write("e1", "Garden", "Frost", "a", False)
    gone = await books.ann.change_journal(entry.journal_id, 1, JournalChange(is_enabled=False))
    assert (gone.disabled_at, gone.disabled_by) == (books.clock(), PERSON)
    assert await books.ann.list() == []
    assert [one.id for one in await books.ann.shelf(is_enabled=False)] == [entry.journal_id]
    assert await books.ann.entries(None, "", None, None, 9) == []
    with pytest.raises(NotFound):
        await books.ann.entry("e1")
    other = await books.ann.write("e2", "garden", "Snow", "b", False)
    assert other.journal_id != entry.journal_id, "its name is free again"
    with pytest.raises(UserError, match="already"):
        await books.ann.change_journal(entry.journal_id, 2, JournalChange(is_enabled=True))
    back = await books.ann.change_journal(entry.journal_id, 2, JournalChange(name="Old garden", is_enabled=True))
    assert (back.name, back.version, back.entries) == ("Old garden", 3, 1)
    assert (await books.ann.entry("e1")).journal == "Old garden"
    with pytest.raises(Conflict):
        await books.ann.change_journal(entry.journal_id, 2, JournalChange(name="x"))


async def test_a_journal_is_made_once_under_its_id(books: Books) -> None:
    made = await books.ann.create("j1", "Garden")
    assert (made.name, made.entries, made.version) == ("Garden", 0, 1)
    assert (await books.ann.create("j1", "Garden 2")).name == "Garden"
    assert await books.ann.journal("j1") == made


async def test_entries_come_in_pages(books: Books) -> None:
    for number in range(7):
        await books.ann.write(f"e{number}", "Garden", f"Entry {number}", "the same", False)
        books.clock.forward(seconds=number % 2)  # some at the same moment
    met: list[str] = []
    after = ""
    while True:
        page = await books.ann.page(None, "same", after, 3)
        met += [row.id for row in page.entries]
        after = page.after
        if not after:
            break
    assert met == [f"e{number}" for number in reversed(range(7))]
    with pytest.raises(NotFound):
        await books.ann.page(None, "", "nothing", 3)


async def test_a_name_from_outside_marks_what_shows_it(books: Books) -> None:
    await books.ann.write("e1", "Read on a page", "Frost", "a", True)
    await books.ann.write("e2", "Read on a page", "Ice", "mine", False)
    (journal,) = await books.ann.list()
    assert journal.is_tainted
    assert [row.is_tainted for row in await books.ann.entries(None, "", None, None, 9)] == [True, True]
    assert not (await books.ann.change_journal(journal.id, 1, JournalChange(name="Mine"))).is_tainted
    marks = {row.id: row.is_tainted for row in await books.ann.entries(None, "", None, None, 9)}
    assert marks == {"e1": True, "e2": False}


async def test_anothers_journals_are_not_there(books: Books) -> None:
    entry = await books.ann.write("e1", "Garden", "Frost", "secret", False)
    for attempt in (
        books.ben.entry("e1"),
        books.ben.look("e1"),
        books.ben.versions("e1", 9),
        books.ben.change("e1", 1, EntryChange(text="x")),
        books.ben.write("e1", "Mine", "x", "x", False),
        books.ben.journal(entry.journal_id),
        books.ben.create(entry.journal_id, "Other"),
        books.ben.change_journal(entry.journal_id, 1, JournalChange(name="x")),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await books.ben.entries(None, "secret", None, None, 9) == []
    assert await books.ben.entries(entry.journal_id, "", None, None, 9) == []
    assert entry.journal_id not in [one.id for one in await books.ben.list()]
    assert await books.ann.entry("e1") == entry


@pytest.mark.parametrize(
    ("journal", "title", "text"),
    [
        (" ", "t", "a"),
        ("j" * 201, "t", "a"),
        ("j", " ", "a"),
        ("j", "t" * 201, "a"),
        ("j", "t", " \n"),
        ("j", "t", "x" * 100_001),
    ],
    ids=["no journal", "long journal", "no title", "long title", "no text", "long text"],
)
async def test_what_is_no_entry_is_refused_in_words(books: Books, journal: str, title: str, text: str) -> None:
    with pytest.raises(UserError, match=r"1 to (200|100,000) characters"):
        await books.ann.write("e1", journal, title, text, False)
    assert await books.ann.list() == []


@pytest.mark.parametrize("id", ["../e1", "a b", "", "x" * 65, "ü", "e1?x=1"])
async def test_what_is_no_id_is_not_there(books: Books, id: str) -> None:
    await books.ann.write("e1", "Garden", "Frost", "a", False)
    for attempt in (books.ann.entry(id), books.ann.look(id), books.ann.journal(id), books.ann.versions(id, 9)):
        with pytest.raises(NotFound):
            await attempt


async def test_no_more_journals_than_fit(books: Books) -> None:
    for number in range(200):
        await books.ann.create(f"j{number}", f"Journal {number}")
    for attempt in (books.ann.create("j200", "One more"), books.ann.write("e1", "One more", "t", "a", False)):
        with pytest.raises(UserError, match="200 journals"):
            await attempt
    assert (await books.ann.write("e1", "journal 7", "t", "a", False)).journal_id == "j7"
    assert len(await books.ann.list()) == 200


async def test_a_journal_that_was_made_ahead_of_a_kill_is_taken_up(books: Books) -> None:
    await books.ann.create(derived_id("e1", "journal"), "Garden")
    assert (await books.ann.write("e1", "Garden", "Frost", "a", False)).journal_id == derived_id("e1", "journal")
    assert len(await books.ann.list()) == 1


async def test_whatever_is_written_comes_back(books: Books) -> None:
    text = "\ud800a\u202eb \x00 'quotes' \"; DROP TABLE journals; -- 🙂 %_ <b>&amp;</b>\r\nnext" + "é" * 5_000
    made = await books.ann.write("e1", "J'\"🙂%", "T<script>'%_", text, False)
    assert made.text == text.replace("\r\n", "\n").replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
    for query in ("'", '"', "NOT OR", "drop*", "(table", "%", "🙂", "a:*&|!<->b", "\x00", "x " * 500, "\ud800"):
        await books.ann.entries(None, query, None, None, 5)
    assert [row.id for row in await books.ann.entries(None, "drop table", None, None, 5)] == ["e1"]
