"""A person's words made comparable, and what in them makes a command uncertain. Pure."""

import re
import unicodedata

CHARACTERS_MAX = 140
_ARTICLES = """
the my our der die das den dem des mein meine meinen meinem meiner unser unsere unseren unserem unserer
"""
_DOUBTS = """
not never no none neither nor dont cannot without except excluding besides but unless if whether when whenever while
until till once after before because since then later soon tomorrow tonight every each hour hours minute minutes second
seconds oclock and or maybe perhaps pretend imagine suppose almost nearly why how what where who which instead undo
cancel forget again always only just also both either half
nicht nie niemals kein keine keinen keinem keiner keines ohne ausser bis wenn falls sobald sofern solange nachdem nach
bevor vor waehrend weil damit dann danach anschliessend spaeter bald morgen heute abend uhr stunde stunden minuten
sekunde sekunden und oder sondern aber vielleicht eventuell fast warum wieso weshalb wie was wo wer welche welcher
welches statt stattdessen jede jeden jeder jedes immer nur auch beide beiden sowie ob als hatte haette waere wuerde nein
nee doch
"""
# Names and orders are compared without these; "a lamp" and "this lamp" are no certain lamp, so those stay.
ARTICLES = frozenset(_ARTICLES.split())
# One of these, anywhere, even in the name of a device, and the message is not read here.
DOUBTS = frozenset(_DOUBTS.split())
_SPELLED = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{EN DASH}": "-"}
)
_STRANGE = re.compile(r"[^\w\s.,!?'°%-]|_|--|\n|(?:^|\s)'|(?<!s)'(?=\s|$)")
_SHORT = ((re.compile(r"\bi'd\b"), "i would"), (re.compile(r"'s\b|'"), ""))
_SHORT_NOT = re.compile(r"n't\b")
_COURTESY = re.compile(r",(?=\s*(?:please|thanks|thank you|bitte|danke)\W*$)|(?<=please),|(?<=bitte),")
_DECIMAL = re.compile(r"(?<=\d)[.,](?=\d)")
_ASKED = re.compile(
    r"(?:(?:hey|ok|okay|hi|hello|hallo|please|bitte|cortex) )*"
    r"(?:can|could|will|would|may|kannst|koenntest|wuerdest|koennen|koennten|wuerden)\b"
)


def folded(text: str) -> str:
    """The text in small letters without accents; German umlauts in two letters, so that plurals keep theirs."""
    spelled = unicodedata.normalize("NFC", text).casefold().translate(_SPELLED)
    plain = unicodedata.normalize("NFKD", spelled)
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def name_tokens(name: str) -> tuple[str, ...]:
    """The words of a name as commands are compared with them: folded, without possessives and articles."""
    text = folded(name)
    for pattern, instead in _SHORT:
        text = pattern.sub(instead, text)
    words = re.findall(r"[^\W_]+", text)
    return tuple(word for word in words if word not in ARTICLES) or tuple(words)


def heard(text: str) -> str:
    """The message as one line of folded words, or "" where it may be more, or less, than one plain order."""
    line = folded(text.strip()) if len(text) <= CHARACTERS_MAX else ""
    if _STRANGE.search(line) or _SHORT_NOT.search(line):
        return ""
    for pattern, instead in _SHORT:
        line = pattern.sub(instead, line)
    body = line.rstrip(" .!?")
    if "?" in line[len(body) :] and not _ASKED.match(body):
        return ""
    body = _DECIMAL.sub("\0", _COURTESY.sub("", body))
    if re.search(r"[.,!?]", body):
        return ""
    body = re.sub(r"(?<=\d)\s*(?:%|percent\b|per cent\b|prozent\b)", " percent", body.replace("\0", "."))
    body = re.sub(r"(?<=\d)\s*(?:°\s*[cf]?\b|°|degrees?\b|grad\b)", " degrees", body)
    body = re.sub(r"(?<=\d)\s*(?:k|kelvin)\b", " kelvin", body)
    words = [word for word in body.replace("-", " ").split() if word not in ARTICLES]
    return "" if is_doubtful(words) else " ".join(words)


def is_doubtful(words: list[str]) -> bool:
    """Whether one of these words takes back, puts off, narrows or asks."""
    return any(word in DOUBTS for word in words)
