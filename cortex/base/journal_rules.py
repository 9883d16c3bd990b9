"""What a journal and an entry may be, wherever they are kept. Pure; called by Cortex's tables and the Aether client."""

import re
import unicodedata

from cortex.base.errors import UserError

TITLE_CHARS_MAX = 200
ENTRY_CHARS_MAX = 100_000
JOURNALS_MAX = 200
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # what neither a database nor JSON can hold


def name_key(name: str) -> str:
    """The name as journals are told apart by: without case, each blank one."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def checked_name(name: str) -> str:
    """A journal's name on one line; UserError."""
    return _line(name, "name", "A journal needs a name")


def checked_title(title: str) -> str:
    """An entry's title on one line; UserError."""
    return _line(title, "title", "An entry needs a title")


def checked_text(text: str) -> str:
    """An entry's text with plain line ends; UserError."""
    words = _UNSTORABLE.sub("\ufffd", text.replace("\r\n", "\n"))
    if not words.strip() or len(words) > ENTRY_CHARS_MAX:
        raise UserError(f"An entry has 1 to {ENTRY_CHARS_MAX:,} characters.", field="text")
    return words


def taken(name: str) -> UserError:
    """Return what is said when a journal in use has the name."""
    return UserError(f"There is a journal named {name!r} already. Choose another name.", field="name")


def full() -> UserError:
    """Return what is said when no more journals fit."""
    return UserError(f"The limit of {JOURNALS_MAX} journals is reached. Remove one first.")


def _line(text: str, field: str, what: str) -> str:
    words = " ".join(_UNSTORABLE.sub("\ufffd", text).split())
    if not 0 < len(words) <= TITLE_CHARS_MAX:
        raise UserError(f"{what} of 1 to {TITLE_CHARS_MAX} characters.", field=field)
    return words
