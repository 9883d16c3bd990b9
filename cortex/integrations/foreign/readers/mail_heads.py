"""Heads of mails: who, to whom, about what, in which conversation. Many at once: `[[uid, headers in base64], …]`."""

import base64
import json
from collections.abc import Sequence
from email.utils import getaddresses
from typing import Any

from cortex.base.mail_ids import ids_in
from cortex.integrations.documents.mime import Bounds, Part, header_text, parsed
from cortex.integrations.foreign.program import Emit, Source

SUBJECT_CHARACTERS, NAME_CHARACTERS, ADDRESS_CHARACTERS = 500, 200, 320
PEOPLE_MOST, REFERENCES_MOST = 50, 50
LINES_MOST, ADDRESSES_BYTES = 3, 6_000  # of one kind: splitting them costs by the square of their length


def read(source: Source, emit: Emit) -> None:
    """Say what each head says."""
    for uid, text in json.loads(source.data):
        mail = parsed(base64.b64decode(text), Bounds(left=1))
        emit({"uid": uid, **head(mail)})


def head(mail: Part) -> dict[str, Any]:
    """The head of a mail."""
    sender = _people(mail, "from") or _people(mail, "sender")
    own = _ids(mail, "message-id")
    return {
        "sender": sender[0] if sender else ["", ""],
        "to": _people(mail, "to"),
        "cc": _people(mail, "cc"),
        "reply_to": _people(mail, "reply-to"),
        "subject": mail.header("subject")[:SUBJECT_CHARACTERS],
        "message_id": own[0] if own else "",
        "references": _references(mail),
        "has_files": mail.header("content-type").lower().startswith("multipart/mixed"),
    }


def _references(mail: Part) -> list[str]:
    """The mails before it in its conversation, from the first on; of very many the first and the last."""
    found = list(dict.fromkeys([*_ids(mail, "references"), *_ids(mail, "in-reply-to")[:1]]))
    return found if len(found) <= REFERENCES_MOST else [found[0], *found[1 - REFERENCES_MOST :]]


def _ids(mail: Part, name: str) -> list[str]:
    raw = b" ".join(value[:100_000] for key, value in mail.headers if key == name)
    return list(ids_in(raw.decode("ascii", "replace")))


def _people(mail: Part, name: str) -> list[list[str]]:
    """Pairs of address and name. Addresses are cut out ahead of decoding: a name may hold what looks like one."""
    raw = [_short(value) for key, value in mail.headers if key == name][:LINES_MOST]
    lines = [" ".join(value.decode("utf-8", "surrogateescape").split()) for value in raw]
    made: list[list[str]] = []
    for shown, address in _split(lines)[:PEOPLE_MOST]:
        text = header_text(shown.encode("utf-8", "surrogateescape"))[:NAME_CHARACTERS]
        clean = header_text(address.encode("utf-8", "surrogateescape"))[:ADDRESS_CHARACTERS].strip()
        if text or clean:
            made.append([clean if "@" in clean else "", text or ("" if "@" in clean else clean)])
    return made


def _short(value: bytes) -> bytes:
    """The first addresses of a line; none is cut through, for half of one is somebody else's."""
    return value if len(value) <= ADDRESSES_BYTES else value[:ADDRESSES_BYTES].rpartition(b",")[0]


def _split(lines: Sequence[str]) -> list[tuple[str, str]]:
    try:
        return getaddresses(list(lines))
    except (ValueError, IndexError, TypeError, RecursionError):
        return []
