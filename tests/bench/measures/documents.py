"""What documents cost: a PDF of 300 pages read, a thousand files indexed, one search among them.

Processor, of the daemon and of the program that reads; the program counts for itself, for the sandbox hides it.
"""

import asyncio
import io
import resource
import tempfile
import time
from pathlib import Path
from random import Random

from cortex.integrations.foreign.documents import DocumentReader
from cortex.integrations.sandbox import Sandbox
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.document_search import DocumentSearchRepository
from cortex.storage.documents import DocumentsRepository
from tests.bench.figure import Bench, Figure, Unmeasured, median
from tests.made_documents import docx, pdf

WORDS = (
    "tenant",
    "landlord",
    "rent",
    "pet",
    "dog",
    "cat",
    "deposit",
    "heating",
    "kitchen",
    "notice",
    "garden",
    "repair",
)
FILES = 1_000
PAGES = 300
STARTED_S = 0.15  # of processor: the program with PDFium, once for all


def measure(bench: Bench) -> list[Figure]:
    """Three lines."""
    return asyncio.run(_measured(bench))


async def _measured(bench: Bench) -> list[Figure]:
    sandbox = Sandbox()
    if (await sandbox.probe()).level == "none":
        raise Unmeasured("needs a sandbox")
    random = bench.dice()
    reader = DocumentReader(sandbox, is_boxed=True)
    book = pdf(*(_page(random) for _ in range(PAGES)))
    async with reader.session() as session:
        found = await session.extract(io.BytesIO(book), "book.pdf")
        characters = sum(len(page.text) for page in found.pages)
        index_s, search_ms = await _indexed(bench, random, reader)
    how = f"{PAGES} pages, {characters:,} characters, processor"
    files = f"{FILES:,} files: PDF, DOCX, Markdown by turns, 3 pages each; processor"
    return [
        Figure(what="PDF read", value=found.processor_s, unit="s", how=how, goal=5),
        Figure(what="files read and indexed", value=index_s, unit="s", how=files, goal=60),
        Figure(what="search in them", value=search_ms, unit="ms", how=f"four words, {FILES:,} files", goal=50),
    ]


async def _indexed(bench: Bench, random: Random, reader: DocumentReader) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        db = Database(f"sqlite:///{Path(folder) / 'cortex.db'}")
        await db.migrate()
        owner = (await db.repository(AccountsRepository).add("ann", "Ann", "admin", None, "UTC")).id
        documents, used_s = db.repository(DocumentsRepository, owner), STARTED_S
        given = [_file(random, number) for number in range(FILES)]
        start_s = _processor_s()
        async with reader.session() as session:
            for number, (name, data) in enumerate(given):
                await documents.add(
                    str(number), path=name, name=name, media_type="", size_bytes=1, sha256="", is_tainted=True
                )
                found = await session.extract(io.BytesIO(data), name)
                await documents.keep_text(str(number), found)
                used_s += found.processor_s
        used_s += _processor_s() - start_s
        search = db.repository(DocumentSearchRepository, owner)

        async def once() -> None:
            await search.pages_matching("what does contract 417 say about pets")

        took: list[float] = []
        for _ in range(max(bench.runs, 5)):
            begun_s = time.perf_counter()
            await once()
            took.append((time.perf_counter() - begun_s) * 1000)
        await db.close()
    return used_s, median(lambda place: took[place], len(took))


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _page(random: Random, lines: int = 60) -> str:
    return "\n".join(" ".join(random.choices(WORDS, k=14)) for _ in range(lines))


def _file(random: Random, number: int) -> tuple[str, bytes]:
    pages = [f"contract {number}\n{_page(random, 30)}" for _ in range(3)]
    match number % 3:
        case 0:
            return f"contract {number}.pdf", pdf(*pages)
        case 1:
            return f"contract {number}.docx", docx(
                "".join(f"<w:p><w:r><w:t>{page}</w:t></w:r></w:p>" for page in pages)
            )
        case _:
            return f"contract {number}.md", "\n\n".join(f"# Part\n\n{page}" for page in pages).encode()
