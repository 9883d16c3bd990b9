"""The words that a channel may send: no content of what is private, clean text, cuts, links. Pure."""

import hashlib
import json
import unicodedata
from collections.abc import Callable

import regex
from msgspec.structs import replace

from cortex.ports.channels import PRIVATE_TEXT, PRIVATE_TITLE, Action, Notice

BUTTONS = {"approve": "Allow", "deny": "Deny", "ack": "Done", "snooze": "Snooze"}
TITLE_BYTES = 200
LABEL_BYTES = 40
MARK = "…"
# They turn the order of what follows, so that a text can show another one than it is.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def shown(notice: Notice) -> Notice:
    """The notice as it may leave: clean, with a title in one line; a private one says only that there is something."""
    if notice.is_private:
        plain = tuple(replace(action, title="") for action in notice.actions)
        return replace(notice, title=PRIVATE_TITLE, text=PRIVATE_TEXT, kind="", actions=plain)
    title = cut(one_line(notice.title), TITLE_BYTES) or PRIVATE_TITLE
    return replace(notice, title=title, text=clean(notice.text).strip())


def label(action: Action) -> str:
    """The words on a button."""
    return cut(one_line(action.title), LABEL_BYTES) or BUTTONS[action.kind]


def link(site: str, path: str) -> str:
    """The address of a page of ours."""
    return site.rstrip("/") + path


def named(tag: str) -> str:
    """32 letters that stand for a tag, fit for a Topic header (RFC 8030) and for an ntfy sequence."""
    return hashlib.sha256(tag.encode("utf-8", "replace")).hexdigest()[:32]


def clean(text: str) -> str:
    """The text without halves of characters, control characters and those that turn the writing round."""
    whole = text.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n")
    return "".join(c for c in whole if c in "\n\t" or (unicodedata.category(c) != "Cc" and c not in _TURNING))


def one_line(text: str) -> str:
    """The text clean and in one line, for titles and headers."""
    return " ".join(clean(" ".join(text.split())).split())


def utf8_bytes(text: str) -> int:
    """Return what the text weighs."""
    return len(text.encode("utf-8"))


def json_bytes(text: str) -> int:
    """Return what the text weighs inside a JSON string."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8")) - 2


def cut(text: str, most: int, size: Callable[[str], int] = utf8_bytes) -> str:
    """As much of the text as weighs at most `most`, ended by a mark where it goes on, never within a character.

    A character is what a reader takes for one (a grapheme cluster): a flag, a family, a letter with its accents.
    """
    if size(text) <= most:
        return text
    left, end = most - size(MARK), 0
    if left < 0:
        return ""
    for match in regex.finditer(r"\X", text):
        left -= size(match.group())
        if left < 0:
            break
        end = match.end()
    return text[:end].rstrip() + MARK
