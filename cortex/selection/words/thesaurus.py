"""Words that mean much the same, so that "purchase" finds what is described by "buy", and so does "acheter".

`thesaurus.txt` has groups of English words, `thesaurus_languages.txt` how words of six languages begin: general
vocabulary, written without a look at any catalogue.
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from cortex.selection.words import meanings
from cortex.selection.words.text import bare, stem, words

_FOLDER = Path(__file__).parent
ENDING, LONGEST, TELLING = 4, 40, 60


def alike(term: str) -> frozenset[str]:
    """The stems that share a group with this stem, without itself."""
    return _groups().get(term, frozenset()) - {term}


def in_english(said: str, has: Callable[[str], bool]) -> str:
    """A text in one of six languages word by word, as far as its words are known; any other text as it is.

    has: whether the catalogue has a stem, which then counts as English, as do the words of the table of meanings.
    """
    told = words(bare(said).replace("'", " "))
    english, *others = _languages()
    is_whole = meanings.shipped().is_whole
    first = [(word, word in english, is_whole(word) or has(stem(word))) for word in told[:TELLING]]
    leads = [
        sum(_english(at, word) is not None for word, _, _ in first)
        - sum(joins or (is_ours and own.get(word) != "") for word, joins, is_ours in first)
        for at, own in enumerate(others, 1)
    ]
    best = leads.index(max(leads))
    if leads[best] <= 0:
        return said
    found = ((word, _english(best + 1, word)) for word in told)
    return " ".join(word if meant is None else meant for word, meant in found if meant != "")


@lru_cache(maxsize=4_096)
def _english(at: int, word: str) -> str | None:
    """The English for a word of that language, or for the two it is made of; "" for one that only joins others."""
    known = _languages()[at]
    if word in known:
        return known[word]
    for end in range(len(word) - 1 if len(word) <= LONGEST else 0, 1, -1):
        found, rest = known.get(word[:end]), word[end:]
        if found and len(rest) <= (ENDING if end > 3 else 2):
            return found
        if found and end > 2 and (behind := _english(at, rest) or _english(at, rest[1:])):
            return f"{found} {behind}"
    return None


@lru_cache(maxsize=1)
def _languages() -> tuple[dict[str, str], ...]:
    """English, then the others: the words that only join others with "", and beginnings of words with their English."""
    joining, *rows = ([cell.split() for cell in line.split("|")] for line in _lines("thesaurus_languages.txt"))
    found = tuple(dict.fromkeys(each, "") for each in joining)
    for (head, *_), *cells in rows:
        for known, beginnings in zip(found[1:], cells, strict=True):
            for each in beginnings:
                known[each] = f"{known.get(each, '')} {head}".strip()
    return found


@lru_cache(maxsize=1)
def _groups() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _lines("thesaurus.txt"):
        group = frozenset(stem(word) for word in words(line))
        for term in group:
            found[term] = found.get(term, frozenset()) | group
    return found


def _lines(name: str) -> list[str]:
    return [line for line in (_FOLDER / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
