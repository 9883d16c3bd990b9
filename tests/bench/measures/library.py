"""10,000 documents of one person: their page, searches by name and by text, a hello, memory."""

import random
from datetime import UTC, datetime

from sqlalchemy import Connection, insert, select

from cortex.storage.schema import AccountTable, DocumentPageTable, DocumentTable
from cortex.storage.words import indexed, owner_word
from tests.bench.figure import Bench, Figure
from tests.bench.houses import Onlooker, house, looks
from tests.bench.measures.documents import WORDS
from tests.bench.processes import ask
from tests.e2e.caller import Caller

DOCUMENTS, PAGES, AT_ONCE = 10_000, 3, 200
PATHS = ("/files", "/files?q=contract+417", "/files?q=pets+in+the+garden", "/search?q=contract", "/c/new")


def measure(bench: Bench) -> list[Figure]:
    """A line for each page, for the time that the tables take to be written, and for memory."""
    return [figure for kind in bench.databases for figure in _measured(bench, kind)]


def _measured(bench: Bench, kind: str) -> list[Figure]:
    count = bench.count(DOCUMENTS)
    with house(bench, kind) as opened, Caller(opened.door) as ada:
        ada.set_up()
        dice = bench.dice()
        opened.fill(lambda connection: _fill(connection, count, dice))
        how = f"{opened.name}, {count:,} documents of {PAGES} pages"
        found = [
            Figure(what=f"many documents, {path}", value=took_ms, unit="ms", how=how)
            for path, took_ms in looks(ada, PATHS).items()
        ]
        with Onlooker(opened, ada) as onlooker:
            used_s = opened.cpu_s()
            ask(ada, "what do my documents say about the deposit for pets")
            used_s = opened.cpu_s() - used_s
        found.append(Figure(what="many documents, CPU of a question", value=used_s * 1000, unit="ms", how=how))
        found.append(Figure(what="many documents, memory", value=opened.memory_mb(), unit="MB", how=how))
        return [*found, *onlooker.figures("many documents", how)]


def _fill(connection: Connection, count: int, dice: random.Random) -> None:
    owner_id = connection.execute(select(AccountTable.id)).scalar_one()
    at = datetime.now(UTC)
    for start in range(0, count, AT_ONCE):
        numbers = range(start, min(count, start + AT_ONCE))
        files = [_file(number, owner_id, at) for number in numbers]
        pages = [_page(number, page, owner_id, dice) for number in numbers for page in range(1, PAGES + 1)]
        connection.execute(insert(DocumentTable), files)
        connection.execute(insert(DocumentPageTable), pages)


def _file(number: int, owner_id: str, at: datetime) -> dict[str, object]:
    name = f"contract {number}.md"
    return {
        "id": f"file{number}",
        "owner_id": owner_id,
        "path": name,
        "name": name,
        "media_type": "text/markdown",
        "size_bytes": 2_000,
        "sha256": f"{number:064}",
        "state": "ready",
        "pages": PAGES,
        "characters": 3_000,
        "is_tainted": False,
        "created_at": at,
        "read_at": at,
    }


def _page(number: int, page: int, owner_id: str, dice: random.Random) -> dict[str, object]:
    text = " ".join(dice.choices(WORDS, k=150))
    return {
        "document_id": f"file{number}",
        "number": page,
        "owner_id": owner_id,
        "title": "",
        "text": text,
        "words": f"{indexed(f'contract {number} {text}')} {owner_word(owner_id)}",
    }
