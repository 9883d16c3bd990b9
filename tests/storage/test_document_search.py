"""Pages are found by their words, the best first, each person's alone."""

import pytest

from cortex.ports.documents import Extracted, PageText
from cortex.storage.db import Database
from cortex.storage.document_search import DocumentSearchRepository
from cortex.storage.documents import DocumentsRepository

LEASE = {3: "Rent is due on the first.", 7: "Haustiere: ein kleiner Hund ist erlaubt. " + "Sonst nichts. " * 90}


async def kept(db: Database, owner: str, path: str, pages: dict[int, str]) -> None:
    documents = db.repository(DocumentsRepository, owner)
    row = await documents.add(path, path=path, name=path, media_type="", size_bytes=1, sha256="", is_tainted=True)
    texts = (PageText(number=number, text=pages.get(number, "Seite über Heizung")) for number in range(1, 10))
    await documents.keep_text(row.id, Extracted(pages=tuple(texts), is_paged=True))


@pytest.fixture
async def search(db: Database, ann: str, ben: str) -> DocumentSearchRepository:
    await kept(db, ann, "Mietvertrag.pdf", LEASE)
    await kept(db, ann, "old/garden.pdf", {2: "Ein Hund im Garten"})
    await kept(db, ben, "Bens.pdf", {1: "Haustiere sind verboten"})
    return db.repository(DocumentSearchRepository, ann)


@pytest.mark.parametrize(
    "query", ["haustier", "HAUSTIERE", "Was sagt mein Mietvertrag zu Haustieren?", "Mietvertrag Hund", "erlaubt"]
)
async def test_the_page_that_says_it_comes_first(search: DocumentSearchRepository, query: str) -> None:
    first = (await search.pages_matching(query))[0]
    assert (first.path, first.number, first.is_paged) == ("Mietvertrag.pdf", 7, True)
    assert first.passage.startswith("Haustiere: ein kleiner Hund ist erlaubt.")
    assert len(first.passage) <= 302


async def test_a_search_stays_in_its_folder_and_with_its_person(search: DocumentSearchRepository) -> None:
    assert {hit.path for hit in await search.pages_matching("hund heizung", limit=99)} == {
        "Mietvertrag.pdf",
        "old/garden.pdf",
    }
    assert {hit.path for hit in await search.pages_matching("hund", "old")} == {"old/garden.pdf"}
    assert await search.pages_matching("hund", "ol") == []
    assert await search.pages_matching("verboten") == []


@pytest.mark.parametrize(
    "query", ["", '"', "'; DROP TABLE documents; --", "NOT OR NEAR(a b)", "a:*&|!<->b", "\x00", "é" * 3000]
)
async def test_whatever_is_typed_is_only_words(search: DocumentSearchRepository, query: str) -> None:
    await search.pages_matching(query, '%_"')
    assert await search.pages_matching(f"{query} kleiner"[-300:])


async def test_text_that_was_read_anew_or_deleted_is_found_no_more(
    search: DocumentSearchRepository, db: Database, ann: str
) -> None:
    documents = db.repository(DocumentsRepository, ann)
    await documents.keep_text("old/garden.pdf", Extracted(pages=(PageText(number=1, text="Nur eine Katze"),)))
    await documents.set_deleted("Mietvertrag.pdf", is_deleted=True)
    assert await search.pages_matching("hund") == []
    assert [hit.number for hit in await search.pages_matching("katze")] == [1]
