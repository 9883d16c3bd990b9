"""Sets made by a seed from our own cases: several needs at once, a need inside small talk, slips, speech.

The rows keep what they need; nothing is written here but what joins them.
"""

import random
import string
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tests.bench.files import RoutingSet
from tests.bench.rows import Utterance

MADE_OF = frozenset({"house", "alone"})  # what is added beside them leaves the made sets as they were
SEVERAL_ROWS, TRIES = 300, 50
EDITS = (1, 2, 4)
AROUND = 3
_JOINTS = (" and ", ", and then ", ". Also, ", "; ", ". Oh, and ")
_INSIDE_WORDS = "'\u2019"


def made(sets: Sequence[RoutingSet], seed: int) -> tuple[RoutingSet, ...]:
    """The sets made of `house` and `alone` among these, the same for a seed; in the order of the cases."""
    rows = [row for one in sets if one.name in MADE_OF for row in one.rows]
    tool = [row for row in rows if row.kind == "tool"]
    chat = [row.text for row in rows if row.kind == "chat"]
    if not (tool and chat):
        return ()
    found = [
        RoutingSet(name="several", rows=tuple(_several(tool, _dice(seed, "several")))),
        RoutingSet(name="long", rows=tuple(_long(tool, chat, _dice(seed, "long")))),
    ]
    for edits in EDITS:
        slip = partial(slipped, edits=edits, dice=_dice(seed, f"typos {edits}"))
        found.append(_each(f"typos{edits}", rows, slip))
    return (*found, _each("spoken", rows, spoken))


def slipped(text: str, edits: int, dice: random.Random) -> str:
    """The text with that many slips of the fingers: a letter swapped with its neighbour, left out, doubled or wrong."""
    letters = list(text)
    for _ in range(edits):
        places = [at for at, letter in enumerate(letters) if letter.isalpha()]
        if not places:
            break
        at = dice.choice(places)
        kind = dice.choice(("swap", "drop", "double", "wrong"))
        if kind == "swap" and at + 1 < len(letters):
            letters[at], letters[at + 1] = letters[at + 1], letters[at]
        elif kind == "drop":
            del letters[at]
        elif kind == "double":
            letters.insert(at, letters[at])
        else:
            letters[at] = dice.choice(string.ascii_lowercase)
    return "".join(letters)


def spoken(text: str) -> str:
    """The text as it comes from a microphone: lower case, no marks, no accents."""
    bare = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    kept = "".join(letter if letter.isalnum() else "" if letter in _INSIDE_WORDS else " " for letter in bare)
    return " ".join(kept.lower().split())


def _several(rows: Sequence[Utterance], dice: random.Random) -> Iterator[Utterance]:
    """Two or three rows of different categories in one message."""
    for number in range(min(SEVERAL_ROWS, len(rows))):
        joined = _apart(rows, 2 + number % 2, dice)
        text = joined[0].text
        for row in joined[1:]:
            text = f"{text.rstrip('.!? ')}{dice.choice(_JOINTS)}{row.text}"
        yield joined[0].model_copy(
            update={
                "id": "+".join(row.id for row in joined),
                "text": text,
                "need_tools": tuple(group for row in joined for group in row.need_tools),
                "need_categories": tuple(group for row in joined for group in row.need_categories),
            }
        )


def _apart(rows: Sequence[Utterance], most: int, dice: random.Random) -> list[Utterance]:
    """Up to so many rows, no two of one category."""
    found: list[Utterance] = []
    homes: set[str] = set()
    for row in (dice.choice(rows) for _ in range(TRIES)):
        own = {name for group in row.need_categories for name in group}
        if len(found) < most and homes.isdisjoint(own) and row not in found:
            found.append(row)
            homes |= own
    return found


def _long(rows: Sequence[Utterance], chat: Sequence[str], dice: random.Random) -> Iterator[Utterance]:
    """Each row somewhere between three sentences of small talk."""
    for row in rows:
        parts = dice.sample(chat, min(AROUND, len(chat)))
        parts.insert(dice.randrange(len(parts) + 1), row.text)
        text = " ".join(part if part[-1] in ".!?" else f"{part}." for part in (part.strip() for part in parts))
        yield row.model_copy(update={"text": text})


def _each(name: str, rows: Sequence[Utterance], change: Callable[[str], str]) -> RoutingSet:
    """Every row with its text changed; one of which nothing is left stays as it was."""
    return RoutingSet(
        name=name, rows=tuple(row.model_copy(update={"text": change(row.text) or row.text}) for row in rows)
    )


def _dice(seed: int, name: str) -> random.Random:
    """A draw of its own for each set, so that one more set changes no other."""
    return random.Random(f"{seed} {name}")  # noqa: S311 - a draw, no secret
