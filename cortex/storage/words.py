"""The words of a text as the search index has them. The same on both databases, because we cut and fold them here."""

import re
import unicodedata
from collections.abc import Iterator

_WORD = re.compile(r"[^\W_]+")
_ONE_BY_ONE = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_WORD_LENGTH = 64
_MOST_WORDS = 20_000
_MOST_TERMS = 12


def fold(text: str) -> str:
    """The text without case and accents, each CJK sign a word of its own."""
    spread = _ONE_BY_ONE.sub(r" \1 ", unicodedata.normalize("NFKD", text))
    return "".join(sign for sign in spread if not unicodedata.category(sign).startswith("M")).casefold()


def words(text: str) -> Iterator[str]:
    """The folded words of a text, in order, long ones cut."""
    for match in _WORD.finditer(fold(text)):
        yield match.group()[:_WORD_LENGTH]


def indexed(text: str) -> str:
    """What is stored to be searched: each word once, in order of first appearance, joined by blanks."""
    return " ".join(list(dict.fromkeys(words(text)))[:_MOST_WORDS])


def terms(query: str) -> list[str]:
    """The words a search must find the beginnings of; nothing in them means anything to a database."""
    return list(dict.fromkeys(words(query)))[:_MOST_TERMS]


def pieces(query: str) -> list[str]:
    """The words of a search as they were written, as many and as much of each as a database bears."""
    return [word[:_WORD_LENGTH] for word in query.split()[:_MOST_TERMS]]


def snippet(text: str, wanted: list[str], width: int = 160) -> str:
    """A piece of `text` on one line, about `width` signs long, round the first wanted word."""
    flat = " ".join(text.split())
    first = next((m.start() for m in re.finditer(r"\w+", flat) if _begins(m.group(), wanted)), 0)
    start = max(0, first - width // 3)
    end = min(len(flat), start + width)
    return ("…" if start else "") + flat[start:end].strip() + ("…" if end < len(flat) else "")


def pieces_of(text: str, wanted: list[str]) -> list[tuple[str, bool]]:
    """The text cut into stretches: whether each is a word that a search for these terms finds."""
    found: list[tuple[str, bool]] = []
    end = 0
    for match in re.finditer(r"\w+", text):
        if _begins(match.group(), wanted):
            found += [(text[end : match.start()], False), (match.group(), True)]
            end = match.end()
    return [piece for piece in (*found, (text[end:], False)) if piece[0]]


def _begins(word: str, wanted: list[str]) -> bool:
    return any(part.startswith(tuple(wanted)) for part in words(word)) if wanted else False
