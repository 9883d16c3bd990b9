"""The sockets for what people give: text read out of a document, a picture made ready for a model.

Implemented in `integrations/`; `services/documents/` keeps the results.
"""

from contextlib import AbstractAsyncContextManager
from typing import BinaryIO, Protocol

from msgspec import Struct


class PageText(Struct, frozen=True, kw_only=True):
    """The text of a page, numbered from 1, and its first heading. What has no pages is cut into parts at headings."""

    number: int
    text: str
    title: str = ""


class Extracted(Struct, frozen=True, kw_only=True):
    """Text that could be read. `outline`: its headings in order; `note`: a sentence for the person on what is missing.

    `is_paged`: the pages are the document's own, not parts that we cut. `processor_s`: seconds of processor it took.
    """

    pages: tuple[PageText, ...] = ()
    outline: tuple[str, ...] = ()
    note: str = ""
    is_paged: bool = False
    processor_s: float = 0.0


class ExtractorSession(Protocol):
    """Reads one file after the other."""

    async def extract(self, file: BinaryIO, name: str) -> Extracted:
        """The text, within limits of pages, bytes and seconds; what a file holds raises nothing, `note` says it.

        The file comes opened: a name could lead elsewhere by the time that it is followed. ToolFailed when nothing can
        be read here now.
        """
        ...


class Extractor(Protocol):
    """Reads text out of files."""

    def session(self) -> AbstractAsyncContextManager[ExtractorSession]:
        """For several files: what reads them is started with the first and ends with the block."""
        ...


class DocumentHit(Struct, frozen=True, kw_only=True):
    """A page that was found. `passage`: its words round the match; `is_paged`: its number is the document's own."""

    path: str
    number: int
    title: str
    passage: str
    is_paged: bool


class DocumentHits(Struct, frozen=True, kw_only=True):
    """The finds of a search, best first; `unread`: how many files are still being read."""

    hits: tuple[DocumentHit, ...]
    unread: int


class DocumentText(Struct, frozen=True, kw_only=True):
    """Pages of a document: those that were asked for, of `count`."""

    pages: tuple[PageText, ...]
    count: int
    is_paged: bool
    outline: tuple[str, ...]
    note: str


class DocumentTexts(Protocol):
    """One user's documents as tools reach them: text is read in the background, and waited for a little."""

    async def search(self, query: str, path: str = "") -> DocumentHits:
        """The pages with the most and rarest words of the query. `path`: a folder or file below the user's own."""
        ...

    async def read(self, path: str, first: int, last: int | None) -> DocumentText:
        """The text of a file by page; ToolFailed in a sentence for one that has none, NotFound."""
        ...


class ReadyPicture(Struct, frozen=True, kw_only=True):
    """A picture as models get it: encoded anew, without what a camera writes into it. `small`: a WebP to be shown."""

    data: bytes
    media_type: str
    width: int
    height: int
    small: bytes


class Pictures(Protocol):
    """Makes pictures ready."""

    async def ready(self, file: BinaryIO) -> ReadyPicture:
        """The picture in the size that models take; UserError in a sentence for one that cannot be read."""
        ...
