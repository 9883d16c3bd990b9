"""What an IMAP server answered, as values and as words. Pure; nothing it says is trusted to have a form."""

import imaplib
import re
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from imap_tools.errors import MailboxLoginError

from cortex.base.errors import ServiceDown, ToolFailed
from cortex.integrations.mail.server import MailServer
from cortex.integrations.mail.values import Placed, RawHead, ServerFolder
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
    **dict.fromkeys(("posta inviata", "verzonden"), "sent"),
    **dict.fromkeys(("junk", "spam", "junk e-mail", "bulk", "unerwünscht", "indésirables"), "junk"),
    **dict.fromkeys(("trash", "deleted items", "deleted messages", "papierkorb", "corbeille", "papelera"), "trash"),
    **dict.fromkeys(("cestino", "prullenbak"), "trash"),
    **dict.fromkeys(("archive", "archiv", "archives", "archivo", "archivio", "archief"), "archive"),
}
DIGITS_MOST, PLACED_MOST = 10, 1_000
UID, _SIZE = re.compile(rb"\bUID (\d{1,10})\b"), re.compile(rb"\bRFC822\.SIZE (\d{1,15})\b")
FLAGS, _AT = re.compile(rb"\bFLAGS \(([^)]*)\)"), re.compile(rb'\bINTERNALDATE "([^"]+)"')
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
    if isinstance(error, OSError | EOFError | imaplib.IMAP4.abort):
        return ServiceDown(f"{host} could not be reached, or hung up.")
    words = said(getattr(error, "command_result", (None, [str(error)]))[1])
    return ToolFailed(f"{host} refused: {words}", is_tainted=True)


def refused(server: MailServer, error: MailboxLoginError) -> str:
    """Why the server does not take a login, in words."""
    words = said(error.command_result[1])
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


def folder_of(path: str, delim: str, flags: Sequence[str]) -> ServerFolder:
    """The folder as people see it, and the part it plays."""
    marks = [one.lower() for one in flags]
    name = path.replace(delim, "/") if delim and delim != "NIL" else path
    name = name.removeprefix("INBOX/")
    role: FolderRole = "inbox" if path.upper() == "INBOX" else ""
    role = role or next((ROLES[one] for one in marks if one in ROLES), "")
    role = role or NAMED.get(name.rpartition("/")[2].lower(), "")
    return ServerFolder(path=path, name="Inbox" if role == "inbox" else name, role=role, is_all="\\all" in marks)


def head_of(fetched: tuple[bytes, bytes]) -> RawHead | None:
    """The mail that is listed; None where no number is said."""
    told, headers = fetched
    uid, size, flags, at = UID.search(told), _SIZE.search(told), FLAGS.search(told), _AT.search(told)
    if not uid:
        return None
    return RawHead(
        uid=int(uid[1]),
        flags=marks_of(flags[1]) if flags else (),
        size=int(size[1]) if size else 0,
        at=_moment(at[1] if at else b""),
        headers=headers,
    )


def marks_of(flags: bytes) -> Sequence[str]:
    """The marks that every server has, in small letters: seen, flagged, answered, draft, deleted."""
    return [one[1:].lower() for one in flags.decode("ascii", "replace").split() if one.startswith("\\")]


def _moment(text: bytes) -> datetime:
    try:
        return datetime.strptime(text.decode("ascii").strip(), "%d-%b-%Y %H:%M:%S %z").astimezone(UTC)
    except (ValueError, OverflowError):
        return datetime(1970, 1, 1, tzinfo=UTC)


def number(said: Any) -> int:
    """The last number that was said; 0 for none."""
    text = said[-1] if said else b"0"
    return int(text) if isinstance(text, bytes) and text.isdigit() and len(text) <= 2 * DIGITS_MOST else 0


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
        made += [Placed(uidvalidity=number([found[1]]), uid=uid) for uid in run]
    return made[:PLACED_MOST]


def uids_in(said: Sequence[str]) -> Sequence[int]:
    """The numbers among these words; none has more than ten digits."""
    return [int(one) for one in said if one.isascii() and one.isdigit() and len(one) <= DIGITS_MOST]


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
