"""Text of a PDF, page by page, by PDFium: what is drawn, written into forms, and noted. Native code.

It runs no script and follows no link. Pages that are pictures, and files inside, are not read: the note says so.
"""

import ctypes
import time
from collections.abc import Iterator, Sequence
from contextlib import closing

from msgspec import Struct, field
from pypdfium2 import PdfDocument, PdfiumError
from pypdfium2 import raw as pdfium

from cortex.integrations.documents import unread
from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.documents.pages import OUTLINE_MOST, Pages, cleaned

READ_FOR_S = 15.0  # seconds of processor; what was read by then is kept
DEPTH_MOST = 6
NOTES_MOST = 500  # of a page
NOTE_BYTES = 200_000
OBJECTS_MOST = 300  # of a page that are looked at for pictures
LARGE_SHARE = 0.3  # of a page: pictures of that size, or a scan in strips, may hold text
NUMBERS_SHOWN = 12
DAMAGED = "This PDF is damaged and cannot be read."
NO_TEXT = "This PDF has no text: its pages are pictures, as of a scan."
_HYPHENS = str.maketrans({"\x02": "", "\ufffe": "-"})
_WITHOUT_WORDS = (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP)


class _Missing(Struct):
    """Numbers of the pages that are damaged, without text, or with a large picture beside their text."""

    broken: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    pictured: list[int] = field(default_factory=list)


class _Page(Struct, frozen=True, kw_only=True):
    text: str
    notes: str
    has_objects: bool
    has_large_picture: bool


def read(data: bytes, pages: Pages) -> None:
    """Put the text of each page into `pages`; UnreadableError for one that cannot be opened."""
    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        if error.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise UnreadableError(
                "This PDF is locked with a password. Save a copy without one and add that."
            ) from error
        raise UnreadableError(DAMAGED) from error
    count, begins = len(document), _headings(document)
    missing, has_text, rest = _Missing(), False, ""
    for number in range(count):
        for title, depth in begins.get(number, ()):
            pages.heading(title, depth, is_shown=False)
        try:
            found = _page(document, number)
        except PdfiumError:
            missing.broken.append(number + 1)
            found = _Page(text="", notes="", has_objects=False, has_large_picture=False)
        has_text = has_text or bool(found.text.strip() or found.notes)
        if found.has_objects and not cleaned(found.text).strip():  # signs that stand for no letter are none
            missing.empty.append(number + 1)
        elif found.has_large_picture:
            missing.pictured.append(number + 1)
        pages.note = _note(missing, count)  # now: a page may be the last that fits
        pages.text(found.text)
        pages.text(found.notes)
        pages.end_page()
        if time.process_time() > READ_FOR_S:
            rest = f"Only the first {number + 1} of {count} pages were read: the rest would take too long."
            break
    if not has_text and not rest:
        raise UnreadableError(DAMAGED if missing.broken else unread.joined(NO_TEXT, _inside(document)))
    pages.note = unread.joined(rest, _note(missing, count), _inside(document))


def _note(missing: _Missing, count: int) -> str:
    said = []
    if missing.broken:
        said.append(f"{len(missing.broken)} of {count} pages are damaged and could not be read.")
    if missing.empty:
        said.append(f"Without text, as of a scan: page {_numbers(missing.empty)} of {count}.")
    if missing.pictured:
        said.append(f"Text in large pictures was not read: page {_numbers(missing.pictured)}.")
    return " ".join(said)


def _numbers(found: Sequence[int]) -> str:
    more = f" and {len(found) - NUMBERS_SHOWN} more" if len(found) > NUMBERS_SHOWN else ""
    return ", ".join(map(str, found[:NUMBERS_SHOWN])) + more


def _inside(document: PdfDocument) -> str:
    """Return what else the file holds, in a sentence, or ""."""
    names: list[str] = []
    count = 0
    try:
        count = document.count_attachments()
        names = [
            str(document.get_attachment(number).get_name()) or "a file"
            for number in range(min(count, unread.NAMES_SHOWN))
        ]
    except (PdfiumError, ValueError):
        names = names or ["a file"] * bool(count)
    files = f"Files inside, not read: {', '.join(name[:80] for name in names)}" if names else ""
    files += f" and {count - len(names)} more." if count > len(names) > 0 else "." if files else ""
    is_xfa = document.get_formtype() in (pdfium.FORMTYPE_XFA_FULL, pdfium.FORMTYPE_XFA_FOREGROUND)
    return unread.joined(files, "Its form is of a kind (XFA) whose fields were not read." if is_xfa else "")


def _page(document: PdfDocument, number: int) -> _Page:
    with closing(document[number]) as page, closing(page.get_textpage()) as text_page:
        return _Page(
            text=str(text_page.get_text_range()).replace("\x02\r\n", "").translate(_HYPHENS),
            notes="\n".join(_notes(page.raw)),
            has_objects=pdfium.FPDFPage_CountObjects(page.raw) > 0,
            has_large_picture=_pictured(page.raw) > LARGE_SHARE * page.get_width() * page.get_height(),
        )


def _pictured(page: pdfium.FPDF_PAGE) -> float:
    """Return how much of a page its pictures cover together, also those in groups."""
    count = min(pdfium.FPDFPage_CountObjects(page), OBJECTS_MOST)
    waiting = [(pdfium.FPDFPage_GetObject(page, number), 1.0) for number in range(count)]
    area = 0.0
    for _ in range(OBJECTS_MOST):
        if not waiting:
            break
        drawn, scale = waiting.pop()
        kind = pdfium.FPDFPageObj_GetType(drawn)
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            area += scale * _size(drawn)
        elif kind == pdfium.FPDF_PAGEOBJ_FORM:
            count, inside = min(pdfium.FPDFFormObj_CountObjects(drawn), OBJECTS_MOST), scale * _scale(drawn)
            waiting += [(pdfium.FPDFFormObj_GetObject(drawn, number), inside) for number in range(count)]
    return area


def _size(drawn: pdfium.FPDF_PAGEOBJECT) -> float:
    sides = [ctypes.c_float() for _ in range(4)]
    if not pdfium.FPDFPageObj_GetBounds(drawn, *(ctypes.byref(side) for side in sides)):
        return 0.0
    left, bottom, right, top = (side.value for side in sides)
    return float(right - left) * float(top - bottom)


def _scale(group: pdfium.FPDF_PAGEOBJECT) -> float:
    """Return how much larger a group is drawn than it says."""
    by = pdfium.FS_MATRIX()
    return abs(by.a * by.d - by.b * by.c) if pdfium.FPDFPageObj_GetMatrix(group, ctypes.byref(by)) else 1.0


def _notes(page: pdfium.FPDF_PAGE) -> Iterator[str]:
    """Yield what is written into the fields of a form, and what people noted on the page."""
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), NOTES_MOST)):
        note = pdfium.FPDFPage_GetAnnot(page, number)
        if not note:
            continue
        try:
            kind = pdfium.FPDFAnnot_GetSubtype(note)
            if kind == pdfium.FPDF_ANNOT_WIDGET:
                name, value = _value(note, b"TU") or _value(note, b"T"), _value(note, b"V")
                if value:
                    yield f"[Field {name}: {value}]"
            elif kind not in _WITHOUT_WORDS and (said := _value(note, b"Contents")):
                yield f"[Note: {said}]"
        finally:
            pdfium.FPDFPage_CloseAnnot(note)


def _value(note: pdfium.FPDF_ANNOTATION, key: bytes) -> str:
    size = pdfium.FPDFAnnot_GetStringValue(note, key, None, 0)
    if not 2 < size <= NOTE_BYTES:
        return ""
    room = ctypes.create_string_buffer(size)
    pdfium.FPDFAnnot_GetStringValue(note, key, ctypes.cast(room, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    return room.raw[:size].decode("utf-16-le", "replace").rstrip("\0").strip()


def _headings(document: PdfDocument) -> dict[int, list[tuple[str, int]]]:
    """The outline by page, numbered from 0."""
    made: dict[int, list[tuple[str, int]]] = {}
    for seen, mark in enumerate(document.get_toc(max_depth=DEPTH_MOST)):
        if seen >= OUTLINE_MOST:
            break
        place = mark.get_dest()
        number = None if place is None else place.get_index()
        if number is not None:
            made.setdefault(number, []).append((mark.get_title(), mark.level + 1))
    return made
