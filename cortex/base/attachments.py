"""What a person attached to a message: as its log, pages and exports name it, and as a model reads it."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from cortex.base.fact import FROM_OUTSIDE
from cortex.base.media import KINDS, PICTURES

OUTLINE_LINES = 40
READERS = ("file_read", "file_search")
_READ_ON = f"Read on with {READERS[0]}"
HEAD = "[Attached file:"  # how the words on a file begin behind a message


class Attachment(Struct, frozen=True, kw_only=True):
    """A file of the person's; `id` is its document's."""

    id: str
    name: str
    media_type: str
    size_bytes: int

    @property
    def is_picture(self) -> bool:
        """Tell whether it is shown as one."""
        return self.media_type in PICTURES

    @property
    def kind(self) -> str:
        """Return what its type is called."""
        return KINDS.get(self.media_type, self.media_type)


def attachments_of(payload: dict[str, Any]) -> tuple[Attachment, ...]:
    """Return what the log's row of a message says was attached to it."""
    return tuple(Attachment(**each) for each in payload.get("attachments", ()))


def words_of_file(
    file: Attachment, path: str, *, pages: int, opening: str, characters: int, outline: tuple[str, ...], note: str
) -> str:
    """Return what a model reads of a file behind the person's words: its text, or a part and how to read on."""
    about = [file.kind, *([f"{pages} pages"] if pages > 1 else []), f"path {path}"]
    lines = [f"{HEAD} {file.name} · {' · '.join(about)}] {FROM_OUTSIDE}"]
    if note:
        lines.append(f"({note})")
    if not opening.strip():
        return "\n".join(lines)
    if characters <= len(opening):
        return "\n".join([*lines, opening])
    lines.append(f"The first {len(opening):,} of {characters:,} characters:")
    lines.append(opening)
    if outline:
        lines.append("Outline:")
        lines += [f"- {each}" for each in outline[:OUTLINE_LINES]]
    lines.append(f"{_READ_ON} ({path}) or look for words in it with {READERS[1]}.")
    return "\n".join(lines)


def is_long(texts: Sequence[str]) -> bool:
    """Tell whether one of these, made by `words_of_file`, is the beginning of a text only."""
    return any(text.rpartition("\n")[2].startswith(_READ_ON) for text in texts)


def without_readers(text: str) -> str:
    """Such a text for a model that is given no tool: without the line that says how to read on."""
    shown, _, last = text.rpartition("\n")
    return shown if text.startswith(HEAD) and last.startswith(_READ_ON) else text


def words_of_unread(name: str) -> str:
    """Return what a model reads later of a file whose message was ended before a model was asked."""
    return f"{HEAD} {name} · not read.]"


def words_of_gone(name: str) -> str:
    """Return what a model reads in place of a picture whose file was deleted."""
    return f"{HEAD} {name} · picture. It was deleted.]"


def words_of_unseen(name: str) -> str:
    """Return what a model that does not see reads in place of a picture."""
    return f"{HEAD} {name} · picture. This model cannot see pictures; say so if it matters.]"
