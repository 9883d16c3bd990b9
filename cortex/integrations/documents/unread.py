"""What of a document was not read, as a sentence on its card: the same form for every kind."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from cortex.integrations.documents.kinds import UnreadableError

NOTE_CHARACTERS = 480
NAMES_SHOWN = 8
NAME_CHARACTERS = 80


def parts_note(read: int, unread: Sequence[str]) -> str:
    """A sentence as "2 of 5 parts read. Not read: …", or nothing where all were."""
    if not unread:
        return ""
    shown = [name[:NAME_CHARACTERS] for name in unread[:NAMES_SHOWN]]
    more = f" and {len(unread) - NAMES_SHOWN} more" if len(unread) > NAMES_SHOWN else ""
    while shown and len(", ".join(shown)) > NOTE_CHARACTERS - 100:
        shown.pop()
        more = f" and {len(unread) - len(shown)} more"
    return f"{read} of {read + len(unread)} parts read. Not read: {', '.join(shown)}{more}."


def counts_note(counts: Mapping[str, int]) -> str:
    """A sentence as "Not read: 2 pictures, 1 chart." of what is counted by its name in the singular, or nothing."""
    said = [f"{count:,} {name}{'s' if count != 1 else ''}" for name, count in counts.items() if count]
    return f"Not read: {', '.join(said)}." if said else ""


@contextmanager
def counted(missing: Counter[str]) -> Iterator[None]:
    """A part beside the text: where it cannot be read, it is counted and the text stays."""
    try:
        yield
    except UnreadableError:
        missing["damaged part"] += 1


def joined(*notes: str) -> str:
    """One note of several, as long as a note may be."""
    whole = " ".join(filter(None, notes))
    return whole if len(whole) <= NOTE_CHARACTERS else f"{whole[: NOTE_CHARACTERS - 2].rstrip()} …"
