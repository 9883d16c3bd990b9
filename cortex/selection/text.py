"""Words as selection sees them: normalised, cut on word bounds, lightly stemmed. No score and no tool in here."""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

Cut = Callable[[str], tuple[str, ...]]

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_KINDS = "md|txt|py|js|ts|json|ya?ml|toml|csv|html?|css|sh|sql|log|ini|cfg|conf|rst|xml"
_FILE = re.compile(rf"(?<![\w/])[\w./~-]*[\w-]\.(?:{_KINDS})\b")
_CODE = re.compile(r"`[^`\n]+`")
_NAME = re.compile(r"[A-Za-z0-9_]+")
_TICKED = re.compile(r"`([^`\n]{1,80})`")
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u00b4": "'", "\u201c": '"', "\u201d": '"'})

_HUMP = re.compile(r"[A-Z](?<=[a-z0-9][A-Z])")
_SHAPED = re.compile(r"`|://|\.\S")  # all shapes hold one of these, and hardly a text does
TEXTS_KEPT = 1_024  # a message is cut by several stages, and so is each of its clauses
URL, FILE, CODE = "\u00a7url", "\u00a7file", "\u00a7code"


@lru_cache(maxsize=4_096)
def normal(text: str) -> str:
    """NFKC, case-folded, straight quotes, single blanks: the form in which texts are compared."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFKC", text.translate(_QUOTES)).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def bare(text: str) -> str:
    """A text without the accents of its letters."""
    if text.isascii():
        return text
    return "".join(each for each in unicodedata.normalize("NFD", text) if unicodedata.category(each) != "Mn")


@lru_cache(maxsize=TEXTS_KEPT)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, normalised; "flight" is one word and holds no "light"."""
    return tuple(_WORD.findall(normal(text)))


def spaced(name: str) -> str:
    """A name as words: `task_create`, `taskCreate` and `task.create` as "task create"."""
    return unhumped(name).replace("_", " ").replace(".", " ")


def unhumped(name: str) -> str:
    """The same, what stands between words left: enough where `words` cuts it, and the text itself where none has it."""
    return _HUMP.sub(r" \g<0>", name)


def shapes(text: str) -> tuple[str, ...]:
    """Marks for what stands in the text: an address, a file's name, a code span."""
    found = ((URL, _URL), (FILE, _FILE), (CODE, _CODE))
    return tuple(mark for mark, pattern in found if pattern.search(text))


@lru_cache(maxsize=TEXTS_KEPT)
def terms(text: str) -> tuple[str, ...]:
    """Stemmed words plus shape marks; addresses and code spans count by their shape alone."""
    if not _SHAPED.search(text):
        return tuple(map(stem, words(text)))
    bare = _CODE.sub(" ", _URL.sub(" ", text))
    rest = _FILE.sub(" ", bare)
    return (*map(stem, words(rest)), *(shapes(text) if rest != text else ()))


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """A light English stem: plural, -ing, -ed, possessive; short words stay as they are."""
    if word.endswith("'s"):
        word = word[:-2]
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, put, left in (
        ("ies", "y", 2),
        ("sses", "ss", 2),
        ("ches", "ch", 2),
        ("shes", "sh", 2),
        ("xes", "x", 2),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= left:
            return word[: -len(ending)] + put
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and re.search("[aeiouy]", rest):
            doubled = len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz"
            return (rest[:-1] if doubled else rest).removesuffix("e")
    return word.removesuffix("e") if len(word) > 4 else word


def named(text: str, names: frozenset[str]) -> tuple[str, ...]:
    """Which of the names stand in the text as whole tokens or in backticks, in order of first mention."""
    if "`" not in text and names.isdisjoint(_NAME.findall(text)):
        return ()
    places = {match[0]: match.start() for match in reversed(list(_NAME.finditer(text))) if match[0] in names}
    for match in reversed(list(_TICKED.finditer(text))):
        if match[1].strip() in names:
            places[match[1].strip()] = min(match.start(), places.get(match[1].strip(), match.start()))
    return tuple(sorted(places, key=lambda name: places[name]))
