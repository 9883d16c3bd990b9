"""One mail as plain text: its head, its text, what is attached; or, asked by number, an attachment in base64 pieces.

The order is a line of JSON, `{"file": 0}` for the text, and the mail's bytes behind it.
"""

import base64
import json

from cortex.integrations.documents import mail
from cortex.integrations.documents.mime import Bounds, Part, parsed
from cortex.integrations.documents.pages import FullError, Pages
from cortex.integrations.foreign.program import Emit, Source
from cortex.integrations.foreign.readers.mail_heads import head

TEXT_CHARACTERS = 200_000
FILES_MOST = 100
FILE_BYTES = 30_000_000
PIECE_BYTES = 3_000_000
SHORTENED = "Only the beginning was read: the mail is very long."
LETTERS = ("text/plain", "text/html")


def read(source: Source, emit: Emit) -> None:
    """Say what the mail says, or give one of its files."""
    line, _, data = source.data.partition(b"\n")
    number = int(json.loads(line)["file"])
    whole = parsed(data, Bounds())
    files = _files(whole)[:FILES_MOST]
    if number:
        if 0 < number <= len(files):
            _give(files[number - 1], emit)
        return
    pages, note = Pages(), ""
    try:
        mail.read(_bare(data), pages)
    except FullError:
        note = SHORTENED
    made = pages.found()
    text = "\n\n".join(text for _, text in made.pages)
    if len(text) > TEXT_CHARACTERS:
        text, note = text[:TEXT_CHARACTERS], SHORTENED
    listed = [{"name": part.name[:200], "media_type": part.kind[:100], "size": len(part.body)} for part in files]
    emit({**head(whole), "text": text, "files": listed, "note": note or made.note[:500]})


def _bare(data: bytes) -> bytes:
    """The mail without the headers that are told apart: who it is from stands in its head."""
    kept, is_kept = list[bytes](), True
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    for at, line in enumerate(lines):
        if not line.strip():
            return b"\n".join([*kept, *lines[at:]])
        if line[:1] not in (b" ", b"\t"):
            is_kept = line[:30].lower().startswith((b"content-", b"mime-version"))
        if is_kept:
            kept.append(line)
    return data


def _files(part: Part) -> list[Part]:
    """Return what is attached, in its order: what has a name, and what is no text."""
    if part.parts and part.kind.startswith("multipart/"):
        return [one for inner in part.parts for one in _files(inner)]
    is_text = part.kind in LETTERS and not part.name
    return [] if is_text or part.facts.get("is_around") or part.kind.startswith("multipart/") else [part]


def _give(part: Part, emit: Emit) -> None:
    if len(part.body) > FILE_BYTES:
        emit({"name": part.name[:200], "media_type": part.kind[:100], "is_too_large": True})
        return
    for start in range(0, max(len(part.body), 1), PIECE_BYTES):
        piece = base64.b64encode(part.body[start : start + PIECE_BYTES]).decode("ascii")
        emit({"name": part.name[:200], "media_type": part.kind[:100], "data": piece})
