"""The parts of a mail, as they stand, whatever is wrong with it: no header, however written, costs the text behind it.

Not Python's parser: its strict form refuses a mail for one header, its old form ends the headers, and the mail's form
with them, at the first line that is none. Bounds: how deep parts may hold parts, how many there are.
"""

import binascii
import re
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import Any

from msgspec import Struct, field

from cortex.integrations.documents.charsets import codec_of, decoded

DEPTH_MOST = 30
PARTS_MOST = 500
HEADERS_MOST = 2_000
VALUE_CHARACTERS = 100_000
FACTS_CHARACTERS = 4_000  # of a header with parameters, whose parser looks at all before each semicolon again
LOOK_LINES = 50  # behind a line that is no header, for one that is
_HEADER = re.compile(rb"([!-9;-~]{1,100})[ \t]*:")
_KNOWN = re.compile(rb"(?i)(?:content-[\w-]+|subject|from|to|cc|date|mime-version|received|message-id|reply-to)[ \t]*:")
_LINE = re.compile(rb"[^\n]*\n?")
_WORD = re.compile(r"=\?([^?*\s]+)(?:\*[^?\s]*)?\?([bBqQ])\?([^?]*)\?=")
_FOLD = re.compile(r"\r?\n[ \t]")
_PROSE = re.compile(rb"\S[ \t]+\S|[-_=*]{20}|https?:")  # what no line of base64 has
_NO_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")
_OPENING = re.compile(rb"(?i)multi-?part message|MIME")
PREAMBLE_BYTES = 500


class Part(Struct, kw_only=True):
    """A mail or a part of one. `kind`: its media type; `body`: decoded bytes, of what holds no parts itself."""

    headers: list[tuple[str, bytes]]
    body: bytes = b""
    kind: str = "text/plain"
    charset: str = ""
    name: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    parts: list["Part"] = field(default_factory=list)

    def header(self, name: str) -> str:
        """All headers of this name, decoded, on one line; "" for none."""
        found = (header_text(value) for key, value in self.headers if key == name)
        return ", ".join(filter(None, found))


class Bounds(Struct):
    """The number of parts that may still be read of one mail; `is_over`: whether something was left out for it."""

    left: int = PARTS_MOST
    is_over: bool = False


def parsed(data: bytes, bounds: Bounds, depth: int = 0, default: str = "text/plain") -> Part:
    """The mail or part that these bytes are, with all that it holds."""
    bounds.left -= 1
    data = _with_line_ends(data)
    if depth == 0:
        data = data.removeprefix(b"\xef\xbb\xbf")
        data = bare if _KNOWN.match(bare := data.lstrip(b"\n")) else data
    headers, body = _split(data)
    if not any(_KNOWN.match(f"{name}:".encode()) for name, _ in headers):
        headers, body = [], data  # words with a colon
    part = _described(headers, default)
    is_container = part.kind.startswith("multipart/") or part.kind in ("message/rfc822", "message/global")
    encoding = next((value for key, value in headers if key == "content-transfer-encoding"), b"")
    boundary = part.facts.get("boundary", "")
    if not is_container or not (boundary and f"--{boundary}".encode() in body):
        body = _undone(body, encoding.decode("ascii", "replace").strip("\"' \t\r\n;").partition(";")[0].lower())
    if not is_container or depth >= DEPTH_MOST:
        part.body = body if not is_container else b""
        return part
    if not part.kind.startswith("multipart/"):
        part.parts = [parsed(body, bounds, depth + 1)] if bounds.left > 0 else []
        return part
    inner = "message/rfc822" if part.kind == "multipart/digest" else "text/plain"
    pieces = _pieces(_with_line_ends(body), boundary)
    if pieces is None:  # it says that it holds parts and does not say where
        part.kind, part.body = "text/plain", body
        return part
    for is_part, piece in pieces:
        if bounds.left <= 0:
            bounds.is_over = True
            break
        if is_part:
            part.parts.append(parsed(piece, bounds, depth + 1, inner))
        else:
            bounds.left -= 1
            part.parts.append(Part(headers=[], body=piece, facts={"is_around": "yes"}))
    return part


def header_text(value: bytes) -> str:
    """A header as a person reads it: encoded words decoded, raw bytes too, on one line."""
    text = _FOLD.sub(" ", decoded(value[:VALUE_CHARACTERS]))
    made, at, waiting = list[str](), 0, ("", b"")
    for word in _WORD.finditer(text):
        between = text[at : word.start()]
        charset, data = word[1].lower(), _undone_word(word[2].lower(), word[3])
        if waiting[1] and not between.strip() and waiting[0] == charset:
            waiting = (charset, waiting[1] + data)  # a letter may be cut in two
        else:
            made.append(decoded(waiting[1], waiting[0]) if waiting[1] else "")
            made.append(between if between.strip() or not waiting[1] else "")
            waiting = (charset, data)
        at = word.end()
    made.append(decoded(waiting[1], waiting[0]) if waiting[1] else "")
    return " ".join("".join([*made, text[at:]]).split())


def _undone_word(how: str, text: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    return _from_base64(raw) if how == "b" else binascii.a2b_qp(raw, header=True)


def _with_line_ends(data: bytes) -> bytes:
    """Line ends as Unix has them; those of old Macs where there are no others."""
    data = data.replace(b"\r\n", b"\n")
    return data.replace(b"\r", b"\n") if b"\n" not in data else data


def _split(data: bytes) -> tuple[list[tuple[str, bytes]], bytes]:
    """Headers and what is behind them. A line that is none among them is passed over; behind them it is text."""
    headers: list[tuple[str, bytes]] = []
    at = 0
    if data.startswith((b"From ", b">From ")):  # as mailbox files have it
        at = (data.find(b"\n") + 1) or len(data)
    while at < len(data) and len(headers) < HEADERS_MOST:
        line = _line(data, at)
        found = _HEADER.match(line)
        if not line.strip():
            return headers, data[at + len(line) :]
        if line[:1] in (b" ", b"\t") and headers:
            name, value = headers[-1]
            headers[-1] = (name, value + line[:VALUE_CHARACTERS] if len(value) < VALUE_CHARACTERS else value)
        elif found:
            headers.append((found[1].decode("ascii").lower(), line[found.end() :]))
        elif not _has_header(data, at + len(line)):
            return headers, data[at:]
        at += len(line)
    return headers, data[at:]


def _line(data: bytes, at: int) -> bytes:
    found = _LINE.match(data, at)
    return found[0] if found else b""


def _has_header(data: bytes, at: int) -> bool:
    """Tell whether a header that mails have comes before the next blank line."""
    for _ in range(LOOK_LINES):
        line = _line(data, at)
        if not line.strip():
            return False
        if _KNOWN.match(line):
            return True
        at += len(line)
    return False


def _described(headers: list[tuple[str, bytes]], default: str) -> Part:
    """The part as its headers describe it; what they get wrong is as if it were not said."""
    part = Part(headers=headers, kind=default)
    reading = Message()
    for name in ("content-type", "content-disposition"):
        value = next((value for key, value in headers if key == name), b"")
        if value:
            reading[name] = (
                _FOLD.sub(" ", decoded(value[:FACTS_CHARACTERS])).replace("\n", " ").replace("\r", " ").strip()
            )
    try:
        said = str(reading.get("content-type", "")).partition(";")[0].strip("\"' \t").lower()
        part.kind = said if re.fullmatch(r"[\w.+-]+/[\w.+-]+", said) else "text/plain" if said else default
        content, disposition = _facts(reading, "content-type"), _facts(reading, "content-disposition")
        part.charset = _fact(content.get("charset"))
        names = (disposition.get("filename"), content.get("name"))
        part.name = header_text(next(filter(None, map(_fact, names)), "").encode("utf-8", "replace"))
        if part.name.lower().endswith(".eml") and not part.kind.startswith("multipart/"):
            part.kind = "message/rfc822"
        facts = {key: _fact(content.get(key)) for key in ("format", "delsp", "smime-type")}
        facts["boundary"] = str(collapse_rfc2231_value(content.get("boundary") or "")).rstrip()
        part.facts = {key: value for key, value in facts.items() if value}
    except (ValueError, TypeError, LookupError, AttributeError, IndexError):
        pass  # no header costs the text
    return part


def _facts(reading: Message, header: str) -> dict[str, Any]:  # Any: a text, or one with its encoding
    """The parameters of a header, of doubled ones the first."""
    return {key.lower(): value for key, value in reversed(reading.get_params([], header))}


def _fact(value: object) -> str:
    """A header's parameter, also one with an encoding (RFC 2231)."""
    if isinstance(value, tuple) and len(value) == 3:
        raw = str(value[2]).encode("latin-1", "replace")
        return raw.decode(codec_of(str(value[0] or "utf-8")) or "utf-8", "replace").strip()
    return str(value).strip("\"' \t;").strip() if value else ""


def _pieces(body: bytes, boundary: str) -> list[tuple[bool, bytes]] | None:
    """Return what stands between the boundaries, each a part or (false) text around them; None where there are none."""
    if not boundary:
        return None
    line = re.compile(rb"(?m)^--" + re.escape(boundary.encode("utf-8", "replace")) + rb"(--)?[ \t]*$")
    marks = list(line.finditer(body))
    if not marks:
        return None
    pieces: list[tuple[bool, bytes]] = []
    preamble = body[: marks[0].start()]
    if preamble.strip() and not (len(preamble) < PREAMBLE_BYTES and _OPENING.search(preamble)):
        pieces.append((False, preamble))
    for number, mark in enumerate(marks):
        end = marks[number + 1].start() if number + 1 < len(marks) else len(body)
        piece = body[mark.end() + 1 : end].removesuffix(b"\n")
        if not mark[1]:
            pieces.append((True, piece))
        elif piece.strip():
            pieces.append((False, piece))
    return pieces


def _undone(body: bytes, encoding: str) -> bytes:
    """The bytes as they were before they were made fit for the way."""
    if encoding in ("base64", "b64", "x-base64"):
        return _from_base64_lines(body)
    if encoding in ("quoted-printable", "quotedprintable", "qp"):
        return binascii.a2b_qp(body)
    if encoding in ("x-uuencode", "uuencode", "x-uue", "uue"):
        return _from_uuencode(body)
    return body


def _from_base64_lines(body: bytes) -> bytes:
    """Base64, and behind it what a mailing list may have put there in the open."""
    lines = body.split(b"\n")
    prose = next((number for number, line in enumerate(lines) if _PROSE.search(line)), len(lines))
    made = _from_base64(b"".join(lines[:prose]))
    rest = b"\n".join(lines[prose:])
    return made + (b"\n" if made else b"") + rest if rest.strip() else made


def _from_base64(data: bytes) -> bytes:
    made = bytearray()
    for piece in re.split(rb"=+", data):  # several may stand behind one another
        clean = _NO_BASE64.sub(b"", piece)
        clean = clean[: len(clean) - (len(clean) % 4 == 1)]
        made += binascii.a2b_base64(clean + b"=" * (-len(clean) % 4))
    return bytes(made)


def _from_uuencode(body: bytes) -> bytes:
    made = bytearray()
    for line in body.split(b"\n"):
        if line.startswith((b"begin ", b"end")) or not line.strip():
            continue
        try:
            made += binascii.a2b_uu(line)
        except binascii.Error:
            count = (((line[0] - 32) & 63) * 4 + 5) // 3  # some write too much behind a line
            try:
                made += binascii.a2b_uu(line[:count])
            except binascii.Error:
                continue
    return bytes(made)
