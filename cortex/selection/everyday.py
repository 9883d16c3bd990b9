"""Which facts about a person bear on what is asked, where no word is shared: "a recipe" - "is vegetarian".

The lines of `everyday.txt` are general vocabulary: words of a question, `=>`, words that a fact may hold.
"""

from functools import lru_cache
from pathlib import Path

from cortex.selection.text import stem, words

_FILE = Path(__file__).with_suffix(".txt")


def bears_on(asked: frozenset[str]) -> dict[str, str]:
    """The stems that a fact may hold to bear on these stems of a question, each with the stem that calls for it."""
    found: dict[str, str] = {}
    for term in sorted(asked):
        for wanted in sorted(_topics().get(term, ())):
            found.setdefault(wanted, term)
    return found


@lru_cache(maxsize=1)
def _topics() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            asked, _, held = line.partition("=>")
            facts = frozenset(map(stem, words(held)))
            for term in map(stem, words(asked)):
                found[term] = found.get(term, frozenset()) | facts
    return found
