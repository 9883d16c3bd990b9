from typing import Any

import pytest

from cortex.base.messages import Message, Text, ToolResult, assistant, results, user
from cortex.storage.audit import AuditFilter, AuditRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.job_rows import JobFilter
from cortex.storage.jobs import JobsRepository
from cortex.storage.reminders import RemindersRepository
from cortex.storage.search import SearchRepository
from cortex.storage.tasks import TasksRepository
from cortex.storage.versions import VersionsRepository

NASTY = [
    '"',
    "'",
    "''; DROP TABLE messages; --",
    "AND",
    "NOT OR NEAR(a b)",
    "words:garden",
    "^garden",
    "garden*",
    "(garden",
    "-garden",
    "{garden}",
    "a:*&|!<->b",
    "\x00",
    "\ud800",
    "\\",
    "%_",
    "🙂",
    "é" * 3000,
    "a " * 3000,
    "%" * 60_000,
]


@pytest.mark.parametrize("query", NASTY, ids=range(len(NASTY)))
async def test_whatever_is_typed_is_only_words(db: Database, talk: Any, ann: str, query: str) -> None:
    await talk.turn("turn:1", user(query + " xyzzy"))
    assert len(await db.repository(SearchRepository, ann).messages_matching("xyzzy " + query[:200])) == 1
    await db.repository(SearchRepository, ann).messages_matching(query)


@pytest.mark.parametrize(
    "query", ["garden", "GARD", "größe", "GROSSE", "naive", "日本", "gärten plan", "2026", "snow_man", "Straße"]
)
async def test_finds_word_beginnings_without_case_and_accents(db: Database, talk: Any, ann: str, query: str) -> None:
    await talk.turn("turn:1", user("The garden plan 2026: naïve Größe, 日本語 Gärten strasse snow_man"))
    await talk.turn("turn:2", user("Nothing of that kind"))
    (hit,) = await db.repository(SearchRepository, ann).messages_matching(query)
    assert (hit.turn_id, hit.title, hit.conversation_id) == ("turn:1", "Garden", talk.id)


async def test_the_snippet_shows_the_word_in_its_sentence(db: Database, talk: Any, ann: str) -> None:
    await talk.turn("turn:1", assistant("before " * 600 + "the Gärtner came " + "after " * 60))
    (hit,) = await db.repository(SearchRepository, ann).messages_matching("gartner")
    assert "the Gärtner came" in hit.snippet
    assert (hit.snippet[0], hit.snippet[-1], len(hit.snippet) < 170) == ("…", "…", True)


async def test_what_cortex_puts_behind_a_message_is_not_the_persons_words(db: Database, talk: Any, ann: str) -> None:
    moving = Message(speaker="user", parts=(Text(text="water the garden"), Text(text="[Sat 2026-11-21 UTC]")))
    await talk.turn("turn:1", moving)
    assert await db.repository(SearchRepository, ann).messages_matching("Sat") == []
    assert (await db.repository(SearchRepository, ann).messages_matching("garden"))[0].snippet == "water the garden"


async def test_the_newest_come_first_and_what_is_gone_is_not_found(db: Database, talk: Any, ann: str, ben: str) -> None:
    for number in range(1, 5):
        await talk.turn(f"turn:{number}", user(f"garden {number}"))
    await talk.turn("turn:5", results(ToolResult(call_id="c", name="web_read", text="garden of a page")))
    search = db.repository(SearchRepository, ann)
    assert [hit.turn_id for hit in await search.messages_matching("garden", limit=2)] == ["turn:4", "turn:3"]
    await db.repository(VersionsRepository, ann).drop_from(talk.id, 4)
    assert [hit.turn_id for hit in await search.messages_matching("garden")] == ["turn:3", "turn:2", "turn:1"]
    assert await db.repository(SearchRepository, ben).messages_matching("garden") == []
    await db.repository(ConversationsRepository, ann).delete(talk.id)
    assert await search.messages_matching("garden") == []


@pytest.mark.parametrize("query", NASTY, ids=range(len(NASTY)))
async def test_every_list_is_narrowed_by_whatever_is_typed(db: Database, ann: str, query: str) -> None:
    for words in (query, f"{query} xyzzy"):
        await db.repository(TasksRepository, ann).list(query=words)
        await db.repository(RemindersRepository, ann).list(words=words)
        await db.repository(ConversationsRepository, ann).list(words)
        await db.repository(JobsRepository, ann).list(JobFilter(words=words))
        await db.repository(AuditRepository).list(which=AuditFilter(kind=words))
