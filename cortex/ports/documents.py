"""The sockets for what people give: text read out of a document, a picture made ready for a model.

Implemented in `integrations/`; `services/documents/` keeps the results.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    """The text of one page, numbered from 1; a document without pages is one page."""

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What could be read. `outline`: its headings in order; `note`: a sentence for the person on what is missing."""

    pages: tuple[PageText, ...] = ()
    outline: tuple[str, ...] = ()
    note: str = ""


class Extractor(Protocol):
    """Reads text out of files of a type that was detected by their content."""

    async def extract(self, path: Path, media_type: str) -> Extracted:
        """The text, within limits of pages, bytes and seconds; never raises for what a file holds, `note` says it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyPicture:
    """A picture as models get it: encoded anew, without what a camera writes into it."""

    data: bytes
    media_type: str
    width: int
    height: int


class Pictures(Protocol):
    """Makes pictures ready."""

    async def ready(self, path: Path) -> ReadyPicture:
        """The picture in the size that models take; UserError in a sentence for one that cannot be read."""
        ...
