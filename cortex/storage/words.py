"""The words of a text as the search index has them. The same on both databases, because we cut and fold them here."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

from cortex.base.plain_text import plain_text

_WORD = re.compile(r"[^\W_]+")
_ONE_BY_ONE = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_WORD_LENGTH = 64
_MOST_WORDS = 20_000
_MOST_TERMS = 12
_STEM_FROM = 7
_SHORT = 3
_NEAR = 30  # words that are looked at behind a match


def fold(text: str) -> str:
    """The text without case and accents, each CJK sign a word of its own."""
    if text.isascii():
        return text.casefold()
    spread = _ONE_BY_ONE.sub(r" \1 ", unicodedata.normalize("NFKD", text))
    marks = {
        sign for sign in set(spread) if unicodedata.category(sign).startswith("M")
    }  # half the time of sign by sign
    return spread.translate(dict.fromkeys(map(ord, marks))).casefold()


def words(text: str) -> Iterator[str]:
    """The folded words of a text, in order, long ones cut."""
    for match in _WORD.finditer(fold(text)):
        yield match.group()[:_WORD_LENGTH]


def indexed(text: str) -> str:
    """Return what is stored to be searched: each word once, in order of first appearance, joined by blanks."""
    return " ".join(list(dict.fromkeys(words(text)))[:_MOST_WORDS])


def title_words(title: str) -> str:
    """Return what is stored to find a title by: its words, a blank before each, so that ` gar` finds a beginning."""
    return "".join(f" {word}" for word in words(title))


def terms(query: str) -> list[str]:
    """The words a search must find the beginnings of; nothing in them means anything to a database."""
    return list(dict.fromkeys(words(query)))[:_MOST_TERMS]


def pieces(query: str) -> list[str]:
    """The words of a search as they were written, as many and as much of each as a database bears."""
    return [word[:_WORD_LENGTH] for word in query.split()[:_MOST_TERMS]]


def snippet(text: str, wanted: list[str], width: int = 160) -> str:
    """A piece of `text` on one line without Markdown, about `width` signs long, round the first wanted word."""
    found = _first(text, wanted)
    before, after = max(0, found - 2 * width), found + 3 * width  # signs that go need no more room than that
    flat = plain_text(text[before:after])
    first = _first(flat, wanted)
    start = max(0, first - width // 5)
    if start:
        start = flat.find(" ", start, first) + 1 or start  # at a word's beginning
    end = min(len(flat), start + width)
    is_cut = end < len(flat) or after < len(text)
    return ("…" if start or before else "") + flat[start:end].strip() + ("…" if is_cut else "")


def _first(text: str, wanted: list[str]) -> int:
    """Where the first word stands that begins with one of these terms, 0 for none."""
    if text.isascii():  # folding moves nothing there, and one pattern is ten times as fast as word by word
        match = re.search(rf"(?<![^\W_])(?:{'|'.join(wanted)})", text.casefold()) if wanted else None
        return match.start() if match else 0
    return next((match.start() for match in re.finditer(r"\w+", text) if _begins(match.group(), wanted)), 0)


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


def first_match(folded: str, wanted: list[str]) -> int | None:
    """Where the first of these terms stands in a folded text, None unless each of them begins a word of it."""
    found = [re.search(rf"(?<![^\W_]){term}", folded) for term in wanted]
    return min((one.start() for one in found if one), default=None) if all(found) else None


def passage(text: str, wanted: list[str], width: int = 300) -> str:
    """A piece of `text` on one line, about `width` signs long, where most of the wanted and rarest words are."""
    flat = " ".join(text.split())
    found = [(match.start(), term) for match in _WORD.finditer(flat) for term in _found(match.group(), wanted)]
    times = Counter(term for _, term in found)
    best, best_score = 0, 0.0
    for place, (start, _) in enumerate(found):
        near = {term for at, term in found[place : place + _NEAR] if at < start + width}
        score = sum(1 / times[term] for term in near)
        if score > best_score:
            best, best_score = start, score
    start = flat.rfind(" ", 0, best - width // 4) + 1 if best > width // 4 else 0
    end = min(len(flat), start + width)
    end = flat.rfind(" ", start + 1, end) if end < len(flat) and " " in flat[start + 1 : end] else end
    return ("…" if start else "") + flat[start:end].strip() + ("…" if end < len(flat) else "")


def stem(term: str) -> str:
    """A beginning that other forms of the word share, in many languages; the word itself where it is short."""
    if len(term) >= _STEM_FROM:
        return term[:-2]
    return term[:-1] if len(term) > _SHORT and term.endswith("s") else term


def owner_word(owner_id: str) -> str:
    """A word that is in all that is indexed of this user and that nobody else's has."""
    return "owner" + "".join(words(owner_id))


def _found(word: str, wanted: list[str]) -> list[str]:
    """The terms of which it is a form."""
    folded = fold(word)
    if not folded.startswith(tuple(map(stem, wanted))) and " " not in folded:
        return []
    return [term for term in wanted if any(part.startswith(stem(term)) for part in folded.split())]
