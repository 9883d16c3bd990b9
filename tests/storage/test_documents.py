"""Files that people gave: each person's apart, read once, taken up again after a kill."""

from datetime import timedelta

import pytest

from cortex.base.errors import NotFound
from cortex.ports.documents import Extracted, PageText
from cortex.storage.db import Database
from cortex.storage.documents import (
    OPENING_CHARACTERS,
    PAGES_AT_ONCE,
    READ_FOR,
    TRIES_MOST,
    AllDocumentsRepository,
    DocumentRow,
    DocumentsRepository,
    page_words,
)
from tests.still_clock import StillClock


async def given(db: Database, owner: str, id: str, name: str = "lease.pdf", size_bytes: int = 10) -> DocumentRow:
    return await db.repository(DocumentsRepository, owner).add(
        id,
        path=f"uploads/{name}",
        name=name,
        media_type="application/pdf",
        size_bytes=size_bytes,
        sha256="aa",
        is_tainted=True,
    )


async def test_two_people_see_only_their_own(db: Database, ann: str, ben: str) -> None:
    await given(db, ann, "one", size_bytes=7)
    bens = db.repository(DocumentsRepository, ben)
    assert (await bens.list(), await bens.named(["one"]), await bens.used_bytes()) == ([], [], 0)
    assert await bens.at("uploads/lease.pdf") is None
    for refused in (bens.get("one"), bens.set_deleted("one", is_deleted=True), bens.keep_text("one", Extracted())):
        with pytest.raises(NotFound):
            await refused
    await bens.remove("one")
    assert (await db.repository(DocumentsRepository, ann).get("one")).deleted_at is None


async def test_text_is_kept_by_page_and_its_beginning_with_the_row(db: Database, ann: str) -> None:
    documents = db.repository(DocumentsRepository, ann)
    await given(db, ann, "one")
    pages = (PageText(number=1, text="No pets."), PageText(number=2, text="x" * OPENING_CHARACTERS))
    row = await documents.keep_text("one", Extracted(pages=pages, outline=("Pets",), note="Page 3 is a picture."))
    assert (row.state, row.pages, row.outline, row.note) == ("ready", 2, ("Pets",), "Page 3 is a picture.")
    assert (row.opening[:10], row.is_whole) == ("No pets.\n\n", False)
    assert [page.number for page in await documents.text_of("one")] == [1, 2]
    again = await documents.keep_text("one", Extracted(note="Nothing can be read."))
    assert (again.state, await documents.text_of("one")) == ("failed", [])


async def test_a_long_text_is_kept_and_forgotten_some_pages_at_a_time(db: Database, ann: str, ben: str) -> None:
    documents = db.repository(DocumentsRepository, ann)
    await given(db, ann, "one")
    found = Extracted(pages=tuple(PageText(number=number, text=f"page {number}") for number in range(1, 251)))
    words = page_words("uploads/lease.pdf", found)
    for at in range(0, 250, PAGES_AT_ONCE):
        await documents.add_pages("one", found.pages[at : at + PAGES_AT_ONCE], words[at : at + PAGES_AT_ONCE])
    row = await documents.keep_text("one", found, are_pages_kept=True)
    assert (row.state, row.pages, len(await documents.text_of("one"))) == ("ready", 250, 250)
    bens = db.repository(DocumentsRepository, ben)
    assert await bens.drop_pages("one") == 0
    with pytest.raises(NotFound):
        await bens.add_pages("one", found.pages[:1], words[:1])
    assert [await documents.drop_pages("one") for _ in range(4)] == [100, 100, 50, 0]
    assert await documents.text_of("one") == []


async def test_a_deleted_one_is_not_listed_and_comes_back(db: Database, ann: str, clock: StillClock) -> None:
    documents = db.repository(DocumentsRepository, ann)
    await given(db, ann, "one", "Rent Garden.pdf")
    assert [row.id for row in await documents.list("garden rent")] == ["one"]
    assert await documents.list("boat") == []
    await documents.set_deleted("one", is_deleted=True)
    assert (await documents.list(), await documents.at("uploads/Rent Garden.pdf")) == ([], None)
    assert [row.id for row in await documents.deleted(clock() + timedelta(days=1))] == ["one"]
    await documents.set_deleted("one", is_deleted=False)
    assert [row.id for row in await documents.list()] == ["one"]


async def test_nobodys_many_files_hold_up_another_person(db: Database, ann: str, ben: str, clock: StillClock) -> None:
    for number in range(9):
        await given(db, ann, f"anns {number}", f"{number}.pdf")
        clock.forward(seconds=1)
    everybodys = db.repository(AllDocumentsRepository)
    first = await everybodys.claim()
    await given(db, ben, "bens")
    rest = [await everybodys.claim() for _ in range(3)]
    assert [row.id for row in (first, *rest) if row] == ["anns 0", "bens", "anns 1", "anns 2"]


async def test_what_a_killed_process_was_reading_is_taken_up_and_given_up_in_the_end(
    db: Database, ann: str, clock: StillClock
) -> None:
    await given(db, ann, "one")
    everybodys = db.repository(AllDocumentsRepository)
    for _ in range(TRIES_MOST):
        claimed = await everybodys.claim()
        assert claimed is not None
        assert (claimed.id, await everybodys.claim()) == ("one", None)
        clock.forward(seconds=READ_FOR.total_seconds() + 1)
    assert await everybodys.claim() is None
    row = await db.repository(DocumentsRepository, ann).get("one")
    assert (row.state, "not be read" in row.note) == ("failed", True)
