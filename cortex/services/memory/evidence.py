"""Whether a person said anything about themselves that could be worth remembering. A look at words, no model.

It only decides whether a model is asked at all: a false alarm costs one small call, a miss one fact.
"""

import re

from cortex.selection.words.text import normal

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_AM = "am|was born|live|lived|moved|work|study|speak|eat|drink|drive|ride|own|have|had|use|run|play|wear|take|grow|keep"
_LIKE = "like|love|enjoy|hate|dislike|prefer|usually|always|never|can't stand|cannot stand|don't|do not|no longer"
_PASSING = "not sure|sorry|trying|looking|wondering|asking|bored|back|done|here"
_MINE = r"(?:is|are|was|has|have|likes?|hates?|lives?|works?|can't|cannot|needs?|wants?|called|named)"
_ICH = "bin|heiße|wohne|lebe|arbeite|esse|trinke|mag|liebe|hasse|habe|nutze|fahre|spreche|spiele|vertrage|bevorzuge"
_PATTERNS = (
    rf"\bi (?:{_AM}|{_LIKE})\b|\bi'm (?!{_PASSING}\b)|\bi've (?:got|been|moved)\b",
    rf"\b(?:my|our) (?:\w+ ){{1,4}}{_MINE}\b|\bwe (?:live|have|moved|own|are)\b",
    r"\b(?:call me|my name|remember that|please remember|from now on|in (?:the )?future|for future reference)\b",
    r"\b(?:allergic|vegetarian|vegan|intolerant|birthday|anniversary|favou?rite)\b",
    rf"\bich (?:{_ICH})\b",
    r"\b(?:mein|meine|unser|unsere) (?:\w+ ){1,4}(?:ist|sind|hat|heißt|heißen|wohnt|arbeitet|mag|kann)\b",
    r"\b(?:nenn mich|merk dir|ab jetzt|in zukunft|lieblings\w+|allergisch|vegetarier\w*)\b",
    r"\b(?:je suis|j'habite|j'aime|je préfère|je m'appelle|soy|vivo en|me gusta|prefiero|me llamo)\b",
    r"\b(?:sono|abito a|mi piace|preferisco|mi chiamo|ik ben|ik woon|ik werk)\b",
)
_SAYS = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS))
_FEWEST = 3


def has_evidence(said: str) -> bool:
    """Tell whether any sentence, questions aside, is about the person or how they want things."""
    sentences = (match.group().strip() for match in _SENTENCE.finditer(normal(said)))
    return any(
        len(sentence.split()) >= _FEWEST and not sentence.endswith("?") and _SAYS.search(sentence) is not None
        for sentence in sentences
    )
