"""What kind of document some bytes are: by their content first, then by the name. Reads nothing but the beginning."""

import re
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal["pdf", "docx", "odt", "mail", "html", "markdown", "table", "code", "text"]

HEAD_BYTES = 8_192
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
ZEROS_SHARE = 0.01  # of a file whose name says that it is text: a stray one or two
PDF_WITHIN = 1_024  # readers look so far for the mark
ENDINGS: dict[str, Kind] = {
    **dict.fromkeys((".md", ".markdown"), "markdown"),
    **dict.fromkeys((".csv", ".tsv"), "table"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".py", ".js", ".ts", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt", ".c", ".h", ".cpp"), "code"),
    **dict.fromkeys((".hpp", ".cs", ".rb", ".php", ".sh", ".swift", ".scala", ".lua", ".sql"), "code"),
    ".pdf": "pdf",
    ".docx": "docx",
    ".odt": "odt",
    **dict.fromkeys((".eml", ".mht", ".mhtml"), "mail"),
}
OTHER_TEXT = (
    ".txt",
    ".log",
    ".rst",
    ".org",
    ".tex",
    ".json",
    ".yaml",
    ".yml",
    ".toml",
    ".ini",
    ".xml",
    ".css",
    ".vtt",
    ".srt",
)
SEARCHED = frozenset((*ENDINGS, *OTHER_TEXT))  # endings of files that are worth reading without being asked
PACKED = ("docx", "odt")
SHEETS = re.compile(rb"xl/|ppt/|application/vnd\.oasis\.opendocument\.(?!text)")
OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # a locked DOCX is in that container too
MARKS = (  # how files begin that have no text for us, and what they are
    (
        rb"\x89PNG\r\n|\xff\xd8\xff|GIF8|RIFF....WEBP|BM....\0\0\0\0|II\*\0|MM\0\*|....ftyp(?:heic|heix|mif1|avif)",
        "a picture",
    ),
    (rb"\x7fELF|MZ|\xcf\xfa\xed\xfe|\xca\xfe\xba\xbe", "a program"),
    (rb"\x1f\x8b|BZh|7z\xbc\xaf|Rar!|\xfd7zXZ|\x28\xb5\x2f\xfd", "an archive"),
    (rb"SQLite format 3", "a database"),
    (rb"ID3|OggS|fLaC|RIFF....WAVE|RIFF....AVI |....ftyp|\x1aE\xdf\xa3", "sound or video"),
    (rb"\{\\rtf", "an RTF document"),
)
_MARKS = tuple((re.compile(mark, re.DOTALL), what) for mark, what in MARKS)


class UnreadableError(Exception):
    """There is no text to be had; the message is a sentence for the person whose file it is."""


def kind_of(head: bytes, name: str) -> Kind:
    """The kind of a file by its beginning; UnreadableError for what has no text, or is not what its name says."""
    ending = PurePosixPath(name.lower()).suffix
    named = ENDINGS.get(ending)
    if found := _kind_by_mark(head, named):
        if named in ("pdf", *PACKED) and named != found:
            raise UnreadableError(f"Its name ends in {ending}, but it is {_a(found)}. Rename it, then it can be read.")
        return found
    if named in ("pdf", *PACKED):
        raise UnreadableError(f"Its name ends in {ending}, but it is not {_a(named)}, or it is damaged.")
    is_text = named == "mail" or head.startswith(WIDE_MARKS) or bool(wide_encoding(head))
    if not is_text and head.count(0) > ZEROS_SHARE * len(head) * bool(named):
        raise UnreadableError("Cortex cannot read text from this kind of file.")
    return named or "text"


def wide_encoding(data: bytes) -> str:
    """The encoding of text in units of two bytes without a mark: every other byte is zero. "" for any other."""
    head = data[: HEAD_BYTES // 2]
    half = len(head) // 2
    if half < 2 or head.startswith(WIDE_MARKS):
        return ""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if odd > half * 0.6 and even < half * 0.05:
        return "utf-16-le"
    return "utf-16-be" if even > half * 0.6 and odd < half * 0.05 else ""


def _kind_by_mark(head: bytes, named: Kind | None) -> Kind | None:
    """The kind that the content itself shows, None for text; UnreadableError for what is known and has no text."""
    if b"%PDF-" in head[:PDF_WITHIN] and (named == "pdf" or head.startswith(b"%PDF-")):
        return "pdf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _packed(head, named)
    if head.startswith(OLD_OFFICE):
        raise UnreadableError(
            "This file is locked with a password or in an old Office format. Save it as DOCX or PDF without a password."
        )
    for mark, what in _MARKS:
        if mark.match(head):
            raise UnreadableError(f"This is {what}; it contains no text that Cortex can read.")
    return None


def _packed(head: bytes, named: Kind | None) -> Kind:
    if b"mimetypeapplication/vnd.oasis.opendocument.text" in head[:200]:
        return "odt"
    if named in PACKED:
        return named
    if SHEETS.search(head):
        raise UnreadableError("Cortex does not read spreadsheets and presentations. Save it as CSV or PDF.")
    if b"word/" in head or b"[Content_Types].xml" in head:
        return "docx"
    raise UnreadableError("This is an archive. Unpack it and add the files that you need.")


def _a(kind: Kind) -> str:
    return {"pdf": "a PDF", "docx": "a DOCX document", "odt": "an ODT document"}.get(kind, "text")
