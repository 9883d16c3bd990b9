"""One search over all that a person has. Each kind of thing has a source that says what it found; none is known here.

Pages call it while the person types. A source gives few hits and gives them fast: it has an index, or little to read.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from cortex.base.user import User
from cortex.services.content.notes import NotesService
from cortex.services.content.tasks import TaskRow, TasksService
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database, Opener
from cortex.storage.document_search import DocumentSearchRepository
from cortex.storage.documents import DocumentRow, DocumentsRepository
from cortex.storage.job_rows import JobFilter
from cortex.storage.jobs import JobsRepository
from cortex.storage.search import SearchRepository
from cortex.storage.words import first_match, fold, pieces_of, snippet, terms

MOST = 20  # of one kind
QUERY_CHARACTERS = 200

Kind = Literal["titles", "messages", "tasks", "jobs", "notes", "files"]
Piece = tuple[str, bool]  # a stretch of a text, and whether it was looked for


class Hit(Struct, frozen=True, kw_only=True):
    """Something that was found. `path` leads to the very place; `where` says which that is, "" for the whole."""

    path: str
    title: Sequence[Piece]
    snippet: Sequence[Piece] = ()
    at: datetime | None = None
    where: str = ""
    is_archived: bool = False


class HitGroup(Struct, frozen=True, kw_only=True):
    """The finds of one kind, the newest first, at most `MOST`."""

    kind: Kind
    hits: Sequence[Hit]


Source = Callable[[User, str, int], Awaitable[Sequence[Hit]]]  # (whose, the words, how many at most)


class SearchService(Struct, frozen=True):
    """Sees nothing but the user's own: each source is bound to the user it is given.

    `sources`: in the order in which their hits are shown.
    """

    sources: Mapping[Kind, Source]

    async def find(self, user: User, query: str) -> Sequence[HitGroup]:
        """Find what has, for each word of the query, one that begins with it; groups without a hit are left out."""
        words = query[:QUERY_CHARACTERS]
        if not terms(words):
            return ()
        found = [HitGroup(kind=kind, hits=await source(user, words, MOST)) for kind, source in self.sources.items()]
        return [group for group in found if group.hits]


def fits(text: str, query: str) -> bool:
    """Tell whether, for each word of the query, one of the text begins with it; an empty query fits all."""
    return first_match(fold(text), terms(query)) is not None if terms(query) else True


def marked(text: str, query: str) -> Sequence[Piece]:
    """The text with the words that were looked for marked."""
    return pieces_of(text, terms(query))


def around(text: str, query: str) -> Sequence[Piece]:
    """A piece of a Markdown text round the first hit, on one line without its signs, with the words marked."""
    return marked(snippet(text, terms(query)), query)


UNTITLED = "New chat"


class ChatHits(Struct, frozen=True):
    """Two sources of `SearchService`."""

    db: Database

    async def titles(self, user: User, query: str, most: int) -> Sequence[Hit]:
        """Chats by their titles, the last used first."""
        rows = await self.db.repository(ConversationsRepository, user.id).list(query, most, is_archived=None)
        return [
            Hit(
                path=f"/c/{row.id}",
                title=marked(row.title, query),
                at=row.updated_at,
                is_archived=row.archived_at is not None,
            )
            for row in rows
        ]

    async def messages(self, user: User, query: str, most: int) -> Sequence[Hit]:
        """Find what was said, the newest first, each turn once: its question and its answer stand at the same place."""
        rows = await self.db.repository(SearchRepository, user.id).messages_matching(query, 2 * most)
        turns = {row.turn_id: row for row in reversed(rows)}  # of a turn the newest, which is its answer
        newest = sorted(turns.values(), key=lambda row: rows.index(row))[:most]
        return [
            Hit(
                path=f"/c/{row.conversation_id}/at/{row.turn_id.rpartition(':')[2]}",
                title=((row.title or UNTITLED, False),),
                snippet=marked(row.snippet, query),
                at=row.at,
                is_archived=row.is_archived,
            )
            for row in newest
        ]


class TaskHits(Struct, frozen=True):
    """A source of `SearchService`."""

    tasks: TasksService

    async def find(self, user: User, query: str, most: int) -> Sequence[Hit]:
        """To-do lists by their names, then open tasks with all the words."""
        lists = [one for one in await self.tasks.lists(user) if fits(one.label, query)]
        tasks = await self.tasks.list(user, query=query, most=most)
        hits = [
            Hit(
                path=f"/tasks?list={quote(one.label, safe='')}",
                title=marked(one.label, query),
                where=f"list, {one.open} open",
            )
            for one in lists
        ]
        return [*hits, *(_task_hit(task, query) for task in tasks)][:most]


def _task_hit(task: TaskRow, query: str) -> Hit:
    return Hit(path=f"/tasks/{task.id}", title=marked(task.title, query), where=task.list_label)


class JobHits(Struct, frozen=True):
    """A source of `SearchService`."""

    db: Database

    async def find(self, user: User, query: str, most: int) -> Sequence[Hit]:
        """Jobs with all the words in their names, texts or timings, the next to run first."""
        rows = await self.db.repository(JobsRepository, user.id).list(JobFilter(words=query), by="next", limit=most)
        return [Hit(path=f"/jobs/{row.id}", title=marked(row.name, query)) for row in rows]


PAGES_MOST = 6  # any of the words finds one: behind the best there is little to be had


class FileHits(Struct, frozen=True):
    """A source of `SearchService`."""

    db: Database

    async def find(self, user: User, query: str, most: int) -> Sequence[Hit]:
        """Files with the words in their names, the newest first; then pages with the most and rarest of them."""
        async with self.db.read_transaction(user.id) as repository:
            named = await repository(DocumentsRepository).list(query, limit=most)
            hits = [_file_hit(row, query) for row in named]
            return hits + await _page_hits(repository, query, min(PAGES_MOST, most - len(hits)))

    async def pages(self, user: User, query: str) -> tuple[Sequence[Hit], bool]:
        """Find pages by their texts alone, the best of them; and whether there are more than these."""
        async with self.db.read_transaction(user.id) as repository:
            hits = await _page_hits(repository, query, PAGES_MOST + 1)
        return hits[:PAGES_MOST], len(hits) > PAGES_MOST


async def _page_hits(repository: Opener, query: str, most: int) -> list[Hit]:
    hits = list[Hit]()
    for page in await repository(DocumentSearchRepository).pages_matching(query, limit=most):
        row = await repository(DocumentsRepository).at(page.path)
        if row is not None:
            hits.append(_file_hit(row, query, page.number if row.pages > 1 else 0, page.passage))
    return hits


def _file_hit(row: DocumentRow, query: str, page: int = 0, passage: str = "") -> Hit:
    return Hit(
        path=f"/files/{row.id}?page={page}#page-{page}" if page else f"/files/{row.id}",
        title=marked(row.name, query),
        snippet=marked(passage, query),
        at=row.created_at,
        where=f"page {page}" if page else "",
    )


SCRATCHPAD = "Scratchpad"
LINES_ROUND = 4


class NoteHits(Struct, frozen=True):
    """A source of `SearchService`."""

    notes: NotesService

    async def find(self, user: User, query: str, most: int) -> Sequence[Hit]:
        """Notes, the latest changed first, then the scratchpad."""
        texts = [
            (f"/notes/{quote(note.name, safe='')}", note.name, note.changed_at, text)
            for note, text in await self.notes.texts(user)
        ]
        pad = (await self.notes.scratchpad(user)).text
        found = (_note_hit(*one, query) for one in (*texts, ("/scratchpad", SCRATCHPAD, None, pad)))
        return [hit for hit in found if hit][:most]


def _note_hit(path: str, name: str, changed_at: datetime | None, text: str, query: str) -> Hit | None:
    """The hit in one text, at its line; its name counts as a line above all."""
    folded = fold(f"{name}\n{text}")
    at = first_match(folded, terms(query))
    if at is None:
        return None
    line = folded.count("\n", 0, at)
    if line == 0:
        return Hit(path=path, title=marked(name, query), snippet=around(text, query), at=changed_at)
    shown = "\n".join(text.split("\n")[line - 1 : line - 1 + LINES_ROUND])
    return Hit(
        path=f"{path}?line={line}",
        title=marked(name, query),
        snippet=around(shown, query),
        at=changed_at,
        where=f"line {line}",
    )
