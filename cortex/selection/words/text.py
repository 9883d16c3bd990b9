"""Words as selection sees them: normalised, cut on word bounds, lightly stemmed. No score and no tool in here."""

import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_KINDS = "md|txt|py|js|ts|json|ya?ml|toml|csv|html?|css|sh|sql|log|ini|cfg|conf|rst|xml"
_FILE = re.compile(rf"(?<![\w./~-])[\w./~-]*[\w-]\.(?:{_KINDS})\b")
_CODE = re.compile(r"`[^`\n]+`")
_NAME = re.compile(r"[A-Za-z0-9_]+")
_TICKED = re.compile(r"`([^`\n]{1,80})`")
_SAID_BY_OTHERS = re.compile(
    r'(?s)```.*?(?:```|\Z)|(?m:^)[ \t]*>[^\n]*|(?<![\w"])"(?=\S)[^"]++(?:"|\Z)|[“„][^“„”]++[“”]|[“„][^"]++(?:"|\Z)'
    r"|«[^«»]++(?:»|\Z)|»[^«»]++«|「[^「」]++」|(?<!\w)'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w))++'(?!\w)"
    "|(?<!\\w)[\u2018\u201a](?:[^\u2018-\u201a\\n]|(?<=\\w)\u2019(?=\\w))++[\u2018\u2019](?!\\w)"
)
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u00b4": "'", "\u201c": '"', "\u201d": '"'})

_HUMP = re.compile(r"[A-Z](?<=[a-z0-9][A-Z])")
_SHAPED = re.compile(r"`|://|\.\S")  # all shapes hold one of these, and hardly a text does
BEGINNING, END = 12_000, 4_000  # characters of a long text that are judged: what is wished stands at either end
TEXTS_KEPT = 1_024  # a message is cut by several stages, and so is each of its clauses
URL, FILE, CODE = "\u00a7url", "\u00a7file", "\u00a7code"
_SHAPES = ((URL, _URL), (FILE, _FILE), (CODE, _CODE))
_PLURALS = (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"))


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


def ends(text: str) -> str:
    """The text; of one that is longer than people write, as a pasted log, its beginning and its end."""
    return text if len(text) <= BEGINNING + END else f"{text[:BEGINNING]}\n{text[-END:]}"


def spaced(name: str) -> str:
    """A name as words: `task_create`, `taskCreate` and `task.create` as "task create"."""
    return unhumped(name).replace("_", " ").replace(".", " ")


def unhumped(name: str) -> str:
    """The same, what stands between words left: enough where `words` cuts it, and the text itself where none has it."""
    return _HUMP.sub(r" \g<0>", name)


@lru_cache(maxsize=TEXTS_KEPT)
def terms(text: str) -> tuple[str, ...]:
    """Stemmed words, then marks for addresses, names of files and code spans, which count by their shape alone."""
    if not _SHAPED.search(text):
        return tuple(map(stem, words(text)))
    rest = _FILE.sub(" ", _CODE.sub(" ", _URL.sub(" ", text)))
    return (*map(stem, words(rest)), *(mark for mark, shape in _SHAPES if shape.search(text)))


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """A light English stem: plural, -ing, -ed, possessive; short words stay as they are."""
    if word.endswith("'s"):
        word = word[:-2]
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, put in _PLURALS:
        if word.endswith(ending) and len(word) >= len(ending) + 2:
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
    """Return the names that stand in the text, outside of quotations, as whole tokens or in backticks, in order."""
    if "`" not in text and names.isdisjoint(_NAME.findall(text)):
        return ()
    text = _SAID_BY_OTHERS.sub(" ", text)
    plain = ((match.start(), match[0]) for match in _NAME.finditer(text))
    ticked = ((match.start(), match[1].strip()) for match in _TICKED.finditer(text))
    return tuple(dict.fromkeys(name for _, name in sorted((*plain, *ticked)) if name in names))
