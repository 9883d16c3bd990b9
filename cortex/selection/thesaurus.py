"""Words that mean much the same in tool catalogues, so that "purchase" finds what is described by "buy".

The groups of `thesaurus.txt`, a line each, are general vocabulary, written without a look at any catalogue.
"""

from functools import lru_cache
from pathlib import Path

from cortex.selection.text import stem, words

_FILE = Path(__file__).with_suffix(".txt")


def alike(term: str) -> frozenset[str]:
    """The stems that share a group with this stem, without itself."""
    return _groups().get(term, frozenset()) - {term}


@lru_cache(maxsize=1)
def _groups() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        group = frozenset(stem(word) for word in words(line))
        for term in group:
            found[term] = found.get(term, frozenset()) | group
    return found
