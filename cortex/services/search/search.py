"""One search over all that a person has. Each kind of thing has a source that says what it found; none is known here.

Pages call it while the person types. A source gives few hits and gives them fast: it has an index, or little to read.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cortex.base.user import User
from cortex.storage.words import pieces_of, snippet, terms

MOST = 20  # of one kind
QUERY_CHARACTERS = 200

Kind = Literal["titles", "messages", "notes", "files"]
Piece = tuple[str, bool]  # a stretch of a text, and whether it was looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Something that was found. `path` leads to the very place; `where` says which that is, "" for the whole."""

    path: str
    title: Sequence[Piece]
    snippet: Sequence[Piece] = ()
    at: datetime | None = None
    where: str = ""
    is_archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HitGroup:
    """What was found of one kind, the newest first, at most `MOST`."""

    kind: Kind
    hits: Sequence[Hit]


Source = Callable[[User, str, int], Awaitable[Sequence[Hit]]]  # (whose, the words, how many at most)


class SearchService:
    """Sees nothing but the user's own: each source is bound to the user it is given."""

    def __init__(self, sources: Mapping[Kind, Source]) -> None:
        """`sources`: in the order in which their hits are shown."""
        self._sources = sources

    async def find(self, user: User, query: str) -> Sequence[HitGroup]:
        """What has, for each word of the query, a word that begins with it; groups without a hit are left out."""
        words = query[:QUERY_CHARACTERS]
        if not terms(words):
            return ()
        found = [HitGroup(kind=kind, hits=await source(user, words, MOST)) for kind, source in self._sources.items()]
        return [group for group in found if group.hits]


def marked(text: str, query: str) -> Sequence[Piece]:
    """The text with the words that were looked for marked."""
    return pieces_of(text, terms(query))


def around(text: str, query: str) -> Sequence[Piece]:
    """A piece of a Markdown text round the first hit, on one line without its signs, with the words marked."""
    return marked(snippet(text, terms(query)), query)
