"""Finds a person's notes and their scratchpad by name and text. They are few and small: each search reads them."""

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from cortex.base.user import User
from cortex.services.content.notes import NotesService
from cortex.services.search.search import Hit, around, marked
from cortex.storage.words import first_match, fold, terms

SCRATCHPAD = "Scratchpad"
LINES_ROUND = 4


class NoteHits:
    """A source of `SearchService`."""

    def __init__(self, notes: NotesService) -> None:
        self._notes = notes

    async def find(self, user: User, query: str, most: int) -> Sequence[Hit]:
        """Notes, the latest changed first, then the scratchpad."""
        texts = [
            (f"/notes/{quote(note.name, safe='')}", note.name, note.changed_at, text)
            for note, text in await self._notes.texts(user)
        ]
        pad = (await self._notes.scratchpad(user)).text
        found = (_hit(*one, query) for one in (*texts, ("/scratchpad", SCRATCHPAD, None, pad)))
        return [hit for hit in found if hit][:most]


def _hit(path: str, name: str, changed_at: datetime | None, text: str, query: str) -> Hit | None:
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
