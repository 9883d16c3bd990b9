"""The text of a document: each page or part is a line, then one with the outline and what there is to say of it."""

from typing import Any

from cortex.base import scan
from cortex.integrations.documents.kinds import HEAD_BYTES, Kind, UnreadableError, kind_of
from cortex.integrations.documents.pages import FullError, Pages
from cortex.integrations.documents.unread import joined
from cortex.integrations.foreign.program import BROKEN, Emit, Source

READERS: dict[Kind, str] = {"pdf": "pdf", "docx": "docx", "odt": "odt", "mail": "mail"}
LOCKED_OUT = "PDF files are read in a sandbox only, and this server has none: an administrator can install bubblewrap."
EMPTY = "This file contains no text."
SHORTENED = "Only the beginning was read: the document is very long."


def ready(source: Source) -> None:
    """Import what reads this kind; UnreadableError for what has no text."""
    kind = _kind(source)
    if kind == "pdf" and not source.is_boxed:
        raise UnreadableError(LOCKED_OUT)
    _reader(kind)


def read(source: Source, emit: Emit) -> None:
    """The pages, then the rest."""
    kind, pages, note = _kind(source), Pages(), ""
    try:
        _reader(kind).read(source.data, pages, *(() if kind in READERS else (kind,)))
    except FullError:
        note = SHORTENED
    except RecursionError:
        note = BROKEN
    made = pages.found()
    for title, text in made.pages:
        emit({"title": title, "text": text})
    emit(
        {
            "outline": made.outline,
            "note": joined(note, made.note) or ("" if made.pages else EMPTY),
            "is_paged": made.is_paged,
            "is_end": True,
        }
    )


def _kind(source: Source) -> Kind:
    return kind_of(source.data[:HEAD_BYTES], source.name)


def _reader(kind: Kind) -> Any:  # Any: a module
    return scan.load(f"cortex.integrations.documents.{READERS.get(kind, 'plain')}")
