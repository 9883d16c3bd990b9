"""A mail as bytes: plain text and the few headers that it needs, none of which can hold a second line. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.message import EmailMessage

from msgspec import Struct, field

from cortex.base.mail_ids import POLICY, ids_in
from cortex.notify.words import clean, cut, label, link, one_line, shown
from cortex.ports.channels import Notice

SUBJECT_BYTES = 400
TEXT_BYTES = 400_000


class Letter(Struct, frozen=True, kw_only=True):
    """A mail. `id`: the same for a second try, and so is its Message-ID, by which mailboxes know a double.

    `reply_to`: who is meant by an answer, or "". `is_automatic`: nobody wrote it, so that no holiday answer comes
    back (RFC 3834). `is_urgent`: mail programs mark it (RFC 2156). `thread`: In-Reply-To and References of an answer.
    """

    id: str
    to: Sequence[str]
    subject: str
    text: str
    reply_to: str = ""
    is_automatic: bool = False
    is_urgent: bool = False
    thread: Mapping[str, str] = field(default_factory=dict)


def of_notice(notice: Notice, to: str, site: str) -> Letter:
    """The mail that tells a notice: its text, the page that it is about, what can be done."""
    said = shown(notice)
    links = [f"{label(action)}: {link(site, action.path)}" for action in said.actions]
    text = "\n\n".join([*filter(None, [said.text]), "\n".join([f"Open: {link(site, said.path)}", *links])])
    is_urgent = notice.urgency == "high"
    return Letter(id=notice.id, to=(to,), subject=said.title, text=text, is_automatic=True, is_urgent=is_urgent)


def written(letter: Letter, sender: str, at: datetime) -> bytes:
    """The mail as it goes over the line: ASCII, CRLF, text in quoted-printable."""
    message = EmailMessage(policy=POLICY)
    message["From"] = f"Cortex <{sender}>"
    message["To"] = ", ".join(letter.to)
    if letter.reply_to:
        message["Reply-To"] = letter.reply_to
    message["Subject"] = cut(one_line(letter.subject), SUBJECT_BYTES)
    message["Date"] = at
    message["Message-ID"] = message_id(letter.id, sender)
    for name in ("In-Reply-To", "References"):
        if ids := ids_in(letter.thread.get(name, "")):
            message[name] = " ".join(ids)
    if letter.is_automatic:
        message["Auto-Submitted"] = "auto-generated"
    if letter.is_urgent:
        message["Importance"] = "high"
    message.set_content(cut(clean(letter.text), TEXT_BYTES), charset="utf-8", cte="quoted-printable")
    return message.as_bytes()


def message_id(id: str, sender: str) -> str:
    """The same for the same id: 32 hex digits at the sender's domain."""
    name = hashlib.sha256(id.encode("utf-8")).hexdigest()[:32]
    return f"<{name}@{sender.rpartition('@')[2]}>"
