"""Mails as they are written here: a draft as it is laid down, and what puts an answer into its conversation. Pure."""

import re
from collections.abc import Sequence
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime

from cortex.base.errors import ToolFailed
from cortex.base.ids import derived_id
from cortex.base.mail_ids import POLICY, chain
from cortex.ports.mail import MailPerson, MailReply
from cortex.services.mail.reading import HeadRead, person

SUBJECT_CHARACTERS = 300
_ANSWERS = re.compile(r"(?i)\s*(?:re|aw|antw|sv|vs|rif|ref)\s*(?:\[\d+\])?:")


def reply_to(head: HeadRead, own: str, *, to_all: bool) -> MailReply:
    """Whom an answer to this mail goes to, what it is about, and what puts it into the conversation."""
    senders = [person(pair) for pair in head.reply_to] or [person(head.sender)]
    if head.sender[0].lower() == own.lower() and head.to:  # one's own mail goes on to whom it went
        senders = [person(pair) for pair in head.to]
    others = [person(pair) for pair in (head.to + head.cc if to_all else [])]
    people: dict[str, MailPerson] = {}
    for one in (*senders, *others):
        key = one.address.lower()
        if key and (key != own.lower() or one in senders):
            people.setdefault(key, one)
    subject = head.subject if _ANSWERS.match(head.subject) else f"Re: {head.subject}".strip()
    line = " ".join(chain(head.references, head.message_id))
    headers = {"In-Reply-To": head.message_id, "References": line} if head.message_id else {}
    return MailReply(to=tuple(people.values()), subject=subject[:SUBJECT_CHARACTERS], headers=headers)


def draft_id(key: str, address: str) -> str:
    """The Message-ID of the draft of a call, by which it is known again."""
    return f"<{derived_id(key, 'draft')}@{address.rpartition('@')[2]}>"


def draft(
    address: str, people: tuple[Sequence[MailPerson], Sequence[MailPerson]], answer: MailReply, text: str
) -> EmailMessage:
    """A draft. `people`: in To and in Cc; `answer`: its subject, and what puts it into a conversation.

    ToolFailed for an address that is none.
    """
    mail = EmailMessage(policy=POLICY)
    mail["From"] = _address(MailPerson(address=address))
    for name, given in zip(("To", "Cc"), people, strict=True):
        if given:
            mail[name] = [_address(one) for one in given]
    mail["Subject"] = " ".join(answer.subject.split())
    for name, value in answer.headers.items():
        mail[name] = value
    mail.set_content(text, cte="quoted-printable")
    return mail


def finished(mail: EmailMessage, message_id: str, at: datetime) -> str:
    """The draft as text that is laid down."""
    mail["Message-ID"] = message_id
    mail["Date"] = format_datetime(at)
    return mail.as_bytes().decode("ascii")


def _address(one: MailPerson) -> Address:
    name, at, domain = one.address.strip().rpartition("@")
    try:
        if not (name and at and "." in domain) or set(one.address) & set("\r\n"):
            raise ValueError
        return Address(display_name=" ".join(one.name.split())[:100], username=name, domain=domain)
    except (ValueError, IndexError):
        raise ToolFailed(f"{one.address[:80]!r} is no e-mail address.") from None
