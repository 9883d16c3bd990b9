"""Texts with a slot each, searched by words and by letters; a change of a few leaves the rest as it is.

Equal texts give equal scores, whatever way they came in. What needs numpy is loaded at the first search.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cortex.base import scan
from cortex.selection import bags, text

if TYPE_CHECKING:
    from cortex.selection.search import Bm25

LETTERS_K1 = 3.0

MadeOf = tuple[Any, tuple[str, ...]]
Texts = Mapping[str, MadeOf]
Bags = tuple[bags.Bag, bags.Bag]


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """Texts with a slot each, by words and by letters. `texts`: what each was made of, to see what changed."""

    texts: Texts
    slots: Mapping[str, int]
    keys: Mapping[int, str]
    bags: Mapping[int, Bags]
    words: "Bm25"
    letters: "Bm25"


def tools_as_documents(texts: Texts, before: Documents | None) -> Documents:
    """Tools with what people say for them: name -> (entry, utterances)."""
    return _documents(texts, lambda made_of: (bags.words(*made_of), bags.letters(*made_of)), before)


def utterances_as_documents(texts: Texts, before: Documents | None) -> Documents:
    """Utterances with the tools that they want, by words alone."""
    return _documents(texts, lambda made_of: (dict.fromkeys(text.terms(made_of[0]), 1.0), {}), before)


def _documents(texts: Texts, bags_of: Callable[[MadeOf], Bags], before: Documents | None) -> Documents:
    """The texts as documents; from those before, only what changed is cut anew."""
    search = scan.load("cortex.selection.search")
    if before is None or 2 * len(before.texts.keys() & texts.keys()) < len(texts):
        made = {slot: bags_of(each) for slot, each in enumerate(texts.values())}
        return Documents(
            texts=texts,
            slots={key: slot for slot, key in enumerate(texts)},
            keys=dict(enumerate(texts)),
            bags=made,
            words=search.Bm25(words for words, _ in made.values()),
            letters=search.Bm25((letters for _, letters in made.values()), k1=LETTERS_K1),
        )
    slots, keys, made = dict(before.slots), dict(before.keys), dict(before.bags)
    changes: dict[int, tuple[Bags, Bags]] = {}
    for key in before.texts.keys() - texts.keys():
        slot = slots.pop(key)
        del keys[slot]
        changes[slot] = (made.pop(slot), ({}, {}))
    free = max(before.keys, default=-1) + 1
    for key, made_of in texts.items():
        if before.texts.get(key) == made_of:
            continue
        slot = slots.setdefault(key, free)
        free += slot == free
        keys[slot] = key
        changes[slot] = (made.get(slot, ({}, {})), bags_of(made_of))
        made[slot] = changes[slot][1]
    return Documents(
        texts=texts,
        slots=slots,
        keys=keys,
        bags=made,
        words=before.words.changed({slot: (old[0], new[0]) for slot, (old, new) in changes.items()}),
        letters=before.letters.changed({slot: (old[1], new[1]) for slot, (old, new) in changes.items()}),
    )
