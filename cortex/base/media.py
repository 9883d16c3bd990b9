"""What a file is, by what it holds: its name only tells one kind of text from another. Reads nothing itself."""

import codecs
import re
import unicodedata
from pathlib import PurePath

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODT = "application/vnd.oasis.opendocument.text"
EMAIL = "message/rfc822"
MARKDOWN = "text/markdown"
CSV = "text/csv"
PLAIN = "text/plain"  # code too
PICTURES = ("image/png", "image/jpeg", "image/webp", "image/heic")
KINDS = {
    PDF: "PDF",
    DOCX: "Word",
    ODT: "OpenDocument",
    EMAIL: "E-mail",
    MARKDOWN: "Markdown",
    CSV: "CSV",
    PLAIN: "Text",
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/webp": "WebP",
    "image/heic": "HEIC",
}
TAKEN = (
    "Cortex accepts text and code, Markdown, CSV, PDF, Word (DOCX), OpenDocument (ODT), e-mail (EML), "
    "and pictures as PNG, JPEG, WebP or HEIC."
)
# For the dialog in which a browser chooses files; what is text has too many endings to name.
ACCEPTED = "image/*,text/*,.pdf,.docx,.odt,.eml,.md,.csv,.json,.yaml,.yml,.toml,.xml,.sql,.py,.js,.ts,.sh,.log"

_EDGE_BYTES = 65_536
_HEIC = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
_TAKEN_ENDINGS = (".pdf", ".docx", ".odt", ".png", ".jpg", ".jpeg", ".webp", ".heic", ".heif")
_BY_ENDING = {".md": MARKDOWN, ".markdown": MARKDOWN, ".csv": CSV, ".tsv": CSV}
_MAIL_HEAD = re.compile(rb"[A-Za-z][A-Za-z0-9-]*:[ \t]")
_CONTROL = bytes(each for each in range(32) if each not in b"\t\n\r\x0c\x1b")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
_NAME_BYTES = 120
_ENDING_CHARACTERS = 12


class Sniffer:
    """Given a file piece by piece, says what it is."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._head = b""
        self._tail = b""
        self._utf8: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()
        self._has_control = False

    def add(self, piece: bytes) -> None:
        """See the next piece."""
        self._head += piece[: _EDGE_BYTES - len(self._head)] if len(self._head) < _EDGE_BYTES else b""
        self._tail = (self._tail + piece)[-_EDGE_BYTES:]
        self._has_control = self._has_control or len(piece.translate(None, _CONTROL)) != len(piece)
        if self._utf8 is not None:
            try:
                self._utf8.decode(piece)
            except UnicodeDecodeError:
                self._utf8 = None

    def media_type(self, name: str) -> str:
        """Its type, one of `KINDS`; "" for what is not taken, or is text under the name of something else."""
        if found := self._binary():
            return found
        ending = PurePath(name).suffix.lower()
        if not self._is_text() or ending in (*_TAKEN_ENDINGS, ".gif", ".zip"):
            return ""
        if ending == ".eml" and _MAIL_HEAD.match(self._head):
            return EMAIL
        return _BY_ENDING.get(ending, PLAIN)

    def _binary(self) -> str:
        head = self._head
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return "image/png"
        if head.startswith(b"\xff\xd8\xff"):
            return "image/jpeg"
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return "image/webp"
        if head[4:8] == b"ftyp" and head[8:12] in _HEIC:
            return "image/heic"
        if head.startswith(b"%PDF-"):
            return PDF
        return self._zipped() if head.startswith(b"PK\x03\x04") else ""

    def _zipped(self) -> str:
        """A document that is an archive: its directory, at the end, names what only such a document has."""
        if self._head[30:].startswith(b"mimetype" + ODT.encode()):
            return ODT
        return DOCX if b"word/document.xml" in self._tail and b"[Content_Types].xml" in self._tail else ""

    def _is_text(self) -> bool:
        if not self._head:
            return False
        if self._head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return True
        return not self._has_control  # what is not UTF-8 is read as Latin-1


def why_not_taken(name: str) -> str:
    """The sentence for a file whose type is "": one that is called as if it were taken may only be damaged."""
    ending = PurePath(name).suffix.lower()
    if ending in _TAKEN_ENDINGS:
        return f"Its name ends in {ending}, but it is damaged or something else. Get the file again."
    return f"This type of file is not supported. {TAKEN}"


def safe_name(given: str) -> str:
    """A name that every system takes and that shows as what it is; its ending stays."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", given))[-1]
    plain = "".join(sign for sign in last if sign.isspace() or unicodedata.category(sign)[0] != "C")
    plain = " ".join(re.sub(r'[:*?"<>|]', "_", plain).split()).strip(". ")
    if _RESERVED.match(plain):
        plain = f"_{plain}"
    stem, ending = PurePath(plain).stem, PurePath(plain).suffix[:_ENDING_CHARACTERS]
    room = _NAME_BYTES - len(ending.encode())
    return (stem.encode()[:room].decode(errors="ignore").strip(". ") + ending) or "file"
