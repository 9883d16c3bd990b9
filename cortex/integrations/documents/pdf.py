"""Text of a PDF, page by page, by PDFium. It runs no script, opens no form and follows no link; native code."""

import time

from pypdfium2 import PdfDocument, PdfiumError
from pypdfium2.raw import FPDF_ERR_PASSWORD

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.documents.pages import OUTLINE_MOST, Pages

READ_FOR_S = 15.0  # seconds of processor; what was read by then is kept
DEPTH_MOST = 6
DAMAGED = "This PDF is damaged and cannot be read."
_HYPHENS = str.maketrans({"\x02": "", "\ufffe": "-"})


def read(data: bytes, pages: Pages) -> None:
    """Put the text of each page into `pages`; UnreadableError for one that cannot be opened."""
    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        if error.err_code == FPDF_ERR_PASSWORD:
            raise UnreadableError(
                "This PDF is locked with a password. Save a copy without one and add that."
            ) from error
        raise UnreadableError(DAMAGED) from error
    count, begins = len(document), _headings(document)
    broken = 0
    is_empty = True
    for number in range(count):
        for title, depth in begins.get(number, ()):
            pages.heading(title, depth, is_shown=False)
        try:
            text = _text(document, number)
        except PdfiumError:
            broken, text = broken + 1, ""
        is_empty = is_empty and not text.strip()
        pages.text(text)
        pages.end_page()
        if time.process_time() > READ_FOR_S:
            pages.note = f"Only the first {number + 1} of {count} pages were read: the rest would take too long."
            return
    if is_empty:
        raise UnreadableError(DAMAGED if broken else "This PDF has no text: its pages are pictures, as of a scan.")
    if broken:
        pages.note = f"{broken} of {count} pages are damaged and could not be read."


def _text(document: PdfDocument, number: int) -> str:
    page = document[number]
    try:
        text_page = page.get_textpage()
        try:
            return str(text_page.get_text_range()).replace("\x02\r\n", "").translate(_HYPHENS)
        finally:
            text_page.close()
    finally:
        page.close()


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
