"""What an IMAP server answered, as values and as words. Pure; nothing it says is trusted to have a form."""

import imaplib
import re
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from imap_tools.errors import UnexpectedCommandStatusError
from imap_tools.imap_utf7 import utf7_decode
from msgspec.structs import replace

from cortex.base.errors import ServiceDown, ToolFailed
from cortex.integrations.mail.line import TOO_LONG
from cortex.integrations.mail.server import MailServer
from cortex.integrations.mail.values import Fetched, Placed, RawHead, ServerFolder
from cortex.ports.mail import FolderRole

ROLES: Mapping[str, FolderRole] = {
    "\\drafts": "drafts",
    "\\sent": "sent",
    "\\archive": "archive",
    "\\junk": "junk",
    "\\trash": "trash",
}
NAMED: Mapping[str, FolderRole] = {  # of servers that say nothing: English, German, French, Spanish, Italian, Dutch
    **dict.fromkeys(("drafts", "entwürfe", "brouillons", "borradores", "bozze", "concepten"), "drafts"),
    **dict.fromkeys(("sent", "sent items", "sent mail", "sent messages", "gesendet", "envoyés", "enviados"), "sent"),
    **dict.fromkeys(("posta inviata", "verzonden", "gesendete objekte", "gesendete elemente"), "sent"),
    **dict.fromkeys(("junk", "spam", "junk e-mail", "bulk", "unerwünscht", "spamverdacht", "indésirables"), "junk"),
    **dict.fromkeys(("trash", "deleted items", "deleted messages", "papierkorb", "corbeille", "papelera"), "trash"),
    **dict.fromkeys(("cestino", "prullenbak", "gelöscht", "gelöschte objekte", "gelöschte elemente"), "trash"),
    **dict.fromkeys(("archive", "archiv", "archives", "archivo", "archivio", "archief"), "archive"),
}
DIGITS_MOST, PLACED_MOST = 10, 1_000
PATH_CHARACTERS = 1_000
FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
COPIES = ("\\all", "\\important", "\\flagged")  # folders that show what lies in others
_BEGINS = re.compile(rb"\d+ \(")
_UID, _SIZE = re.compile(rb"\bUID (\d{1,10})\b"), re.compile(rb"\bRFC822\.SIZE (\d{1,15})\b")
FLAGS, _AT = re.compile(rb"\bFLAGS \(([^)]*)\)"), re.compile(rb'\bINTERNALDATE "([^"]+)"')
_LISTED = re.compile(rb'\(([^)]*)\) (NIL|"(?:\\.|[^"\\])"|\S) (.+)', re.DOTALL)
_SHORT = re.compile(rb'\bBODY\[[^\]]*\](?:<\d+>)? (?:NIL|"((?:\\.|[^"\\])*)")')  # of bytes that come in the line itself
_COMMAND = re.compile(r"^command: \w+ => ")
# What a server may answer that breaks whoever reads it: it is that server's failure, and nobody else's.
BROKEN = (AttributeError, TypeError, LookupError, ArithmeticError, AssertionError, ValueError)
_PLACED = re.compile(rb"(\d+) (?:[\d:,]+ )?([\d:,]+)")


def must(answer: tuple[str, Any]) -> Any:
    """The data of an answer; ValueError, in the server's words, for one that refuses."""
    if answer[0] != "OK":
        raise ValueError(said(answer[1]))
    return answer[1] or []


def failed(host: str, error: Exception) -> ToolFailed:
    """The failure in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ServiceDown(f"The certificate of {host} does not fit: it cannot be told that it is that server.")
    if isinstance(error, ssl.SSLError):
        return ServiceDown(f"{host} does not speak TLS there: check the port, or choose STARTTLS.")
    if isinstance(error, TimeoutError):
        return ServiceDown(f"{host} did not answer in time.")
    if isinstance(error, OSError | EOFError):
        return ServiceDown(f"{host} could not be reached, or hung up.")
    if isinstance(error, imaplib.IMAP4.readonly):
        return ToolFailed(f"{host} lets this folder be read only.")
    words = words_of(error)
    if isinstance(error, imaplib.IMAP4.abort):
        if TOO_LONG in words:
            return ServiceDown(f"{host} answers with more than is read.")
        if not words or "socket error" in words:
            return ServiceDown(f"{host} could not be reached, or hung up.")
        return ServiceDown(f"{host} broke off: {words}", is_tainted=True)
    if isinstance(error, BROKEN) and not isinstance(error, ValueError):
        return ToolFailed(f"{host} answered in a form that cannot be read.")
    return ToolFailed(f"{host} refused: {words}", is_tainted=True)


def words_of(error: Exception) -> str:
    """Return what a server said with an error, or in its place what went wrong."""
    if isinstance(error, UnexpectedCommandStatusError):
        return said(error.command_result[1])
    words = said(error.args[:1])
    return _COMMAND.sub("", words).removeprefix("* ")


def refused(server: MailServer, words: str) -> str:
    """Why the server does not take a login, in words."""
    more = " Many providers take an app password only." if not server.token else " Log in there once more."
    return (
        f"{server.host} does not take this login ({words}).{more}"
        if words
        else f"{server.host} does not take it.{more}"
    )


def said(said: Any) -> str:
    """Return what a server said, short and on one line."""
    parts = [one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in said or [] if one]
    return " ".join("".join(sign if sign.isprintable() else " " for sign in " ".join(parts)).split())[:160]


def listed(answer: Any) -> tuple[str, str, Sequence[str]] | None:
    """One line of a list of folders: path, sign between its parts, flags; None for what is none that can be opened."""
    line, name = (answer[0], bytes(answer[1])) if isinstance(answer, tuple) else (answer, b"")
    found = _LISTED.match(line) if isinstance(line, bytes) else None
    if found is None:
        return None
    if not isinstance(answer, tuple):
        name = _unquoted(found[3])
    try:
        path = utf7_decode(name)
    except ValueError:  # no IMAP name: it could not be asked for either
        return None
    flags = [one.decode("ascii", "replace") for one in found[1].split()]
    is_there = not {"\\noselect", "\\nonexistent"} & {one.lower() for one in flags}
    if not is_there or not path.isprintable() or not 0 < len(path) <= PATH_CHARACTERS:
        return None
    return path, "" if found[2] == b"NIL" else _unquoted(found[2]).decode("ascii", "replace"), flags


def _unquoted(word: bytes) -> bytes:
    return re.sub(rb"\\(.)", rb"\1", word[1:-1]) if word[:1] == word[-1:] == b'"' and len(word) > 1 else word


def folders_of(found: Sequence[tuple[str, str, Sequence[str]]]) -> Sequence[ServerFolder]:
    """The folders as people see them, with the part that each plays; the inbox first, then those with a part.

    A part is played by what the server marks so; where it marks none, by a folder at the top that has such a name.
    """
    marks = {path: [one.lower() for one in flags] for path, _, flags in found}
    names = {path: (path.replace(sign, "/") if sign else path).removeprefix("INBOX/") for path, sign, _ in found}
    copies = {path for path, flags in marks.items() if set(flags) & set(COPIES)}
    roles: dict[str, FolderRole] = {path: "inbox" for path in marks if path.upper() == "INBOX"}
    for mark, role in ROLES.items():
        marked = [path for path, flags in marks.items() if mark in flags and path not in roles]
        named = [path for path, name in names.items() if NAMED.get(name.lower()) == role and path not in roles]
        every = [path for path in copies if role == "archive" and "\\all" in marks[path]]  # what is filed lies there
        meant = marked or named or every
        least = min((names[path].count("/") for path in meant), default=0)  # others' folders lie deeper
        roles |= {path: role for path in meant if names[path].count("/") == least}
    made = [
        ServerFolder(
            path=path,
            name="Inbox" if roles.get(path) == "inbox" else name,
            role=roles.get(path, ""),
            is_all=path in copies,
        )
        for path, name in names.items()
    ]
    return sorted(made, key=lambda one: (one.role != "inbox", not one.role, one.name, one.path))


def fetched(answer: Any) -> Sequence[Fetched]:
    """Return what an answer says of mails by number, in its order. Servers also say unasked what changed."""
    found: list[tuple[bytes, bytes | None]] = []
    for piece in answer:
        if isinstance(piece, tuple):
            told, data = found.pop() if found and not _BEGINS.match(piece[0]) else (b"", None)  # of the same mail
            found.append((told + b" " + piece[0], piece[1] if b"BODY[" in piece[0] else data))
        elif isinstance(piece, bytes) and _BEGINS.match(piece):
            short = _SHORT.search(piece)
            found.append((piece, re.sub(rb"\\(.)", rb"\1", short[1] or b"") if short else None))
        elif isinstance(piece, bytes) and found:  # what stands behind the bytes
            found[-1] = found[-1][0] + b" " + piece, found[-1][1]
    return [
        Fetched(uid=int(uid[1]), told=told, data=data) for told, data in found if (uid := _UID.search(told)) is not None
    ]


def heads_of(found: Sequence[Fetched], most_bytes: int, *, is_bare: bool = False) -> Sequence[RawHead]:
    """The mails that are listed, each once. is_bare: none came with headers."""
    heads: dict[int, RawHead] = {}
    for one in found:
        flags = FLAGS.search(one.told)
        marks = marks_of(flags[1]) if flags else None
        known = heads.get(one.uid)
        if one.data is None and not (is_bare and known is None):  # said unasked: how it is marked now
            if known is not None and marks is not None:
                heads[one.uid] = replace(known, flags=marks)
            continue
        size, at = _SIZE.search(one.told), _AT.search(one.told)
        heads[one.uid] = RawHead(
            uid=one.uid,
            flags=marks or (),
            size=int(size[1]) if size else 0,
            at=_moment(at[1] if at else b""),
            headers=(one.data or b"")[:most_bytes],
        )
    return list(heads.values())


def marks_of(flags: bytes) -> Sequence[str]:
    """The marks that every server has, in small letters: seen, flagged, answered, draft, deleted."""
    return [one[1:].lower() for one in flags.decode("ascii", "replace").split() if one.startswith("\\")]


def _moment(text: bytes) -> datetime:
    """The moment, within what every zone can show."""
    try:
        at = datetime.strptime(text.decode("ascii").strip(), "%d-%b-%Y %H:%M:%S %z").astimezone(UTC)
    except (ValueError, OverflowError):
        return FIRST
    return min(max(at, FIRST), LAST)


def number(said: Any, bits: int) -> int:
    """The last number that was said, of so many bits; 0 for none."""
    text = said[-1] if said else b"0"
    found = int(text) if isinstance(text, bytes) and text.isdigit() and len(text) <= 2 * DIGITS_MOST else 0
    return found if found < 2**bits else 0


def placed(said: Any) -> Sequence[Placed]:
    """Return where mails lie, as COPYUID and APPENDUID say it."""
    found = _PLACED.fullmatch(said[-1].strip()) if said and isinstance(said[-1], bytes) else None
    if found is None:
        return []
    made: list[Placed] = []
    for piece in found[2].decode("ascii").split(",")[:PLACED_MOST]:
        first, _, last = piece.partition(":")
        if not uids_in([first]) or not uids_in([last or first]):
            return []
        run = islice(range(int(first), int(last or first) + 1), PLACED_MOST)  # a server may say any
        made += [Placed(uidvalidity=number([found[1]], 32), uid=uid) for uid in run]
    return made[:PLACED_MOST]


def uids_in(said: Any) -> Sequence[int]:
    """The numbers among these words, or lines of them; none has more than ten digits."""
    lines = [one.decode("ascii", "replace") if isinstance(one, bytes) else one for one in said]
    words = [word for line in lines if isinstance(line, str) for word in line.split()]
    return [int(one) for one in words if one.isascii() and one.isdigit() and len(one) <= DIGITS_MOST]


def numbers(uids: Sequence[int]) -> str:
    """The numbers as a command has them, runs of them short."""
    made: list[str] = []
    first = last = 0
    for uid in [*sorted(set(uids)), 0]:
        if first and uid == last + 1:
            last = uid
            continue
        if first:
            made.append(str(first) if first == last else f"{first}:{last}")
        first = last = uid
    return ",".join(made)
