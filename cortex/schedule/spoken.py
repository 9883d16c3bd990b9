"""Brings what people type or say about time into one form: small letters, digits, whole words, usual typos mended.

`Evry 2nd Tues. at half past seven` becomes `every 2nd tuesday at half past 7`, the form that the grammar reads.
"""

import re
import unicodedata
from functools import lru_cache

from cortex.schedule import cron_words

WEEKDAYS = tuple(day.casefold() for day in cron_words.WEEKDAYS)
MONTHS = tuple(month.casefold() for month in cron_words.MONTHS)
_SHORT = {
    **{day[:3]: day for day in WEEKDAYS},
    **{month[:3]: month for month in MONTHS},
    **{"tues": "tuesday", "weds": "wednesday", "thur": "thursday", "thurs": "thursday", "sept": "september"},
    **{"min": "minute", "mins": "minutes", "hr": "hour", "hrs": "hours", "sec": "second", "secs": "seconds"},
    **{"wk": "week", "wks": "weeks", "tmr": "tomorrow", "tmrw": "tomorrow", "tonite": "tonight"},
    **{"ev": "every", "evry": "every", "wkday": "weekday", "wkdays": "weekdays", "oclock": "oclock", "til": "until"},
    **{"workday": "weekday", "workdays": "weekdays", "eve": "evening", "arvo": "afternoon", "till": "until"},
    **{"everyday": "every day", "per": "every", "midday": "noon", "midnite": "midnight", "fortnight": "2 weeks"},
    **{"fortnights": "2 weeks", "alternate": "other", "annually": "yearly", "thru": "to", "through": "to"},
    **{"wensday": "wednesday", "wendsday": "wednesday", "tommorow": "tomorrow", "tommorrow": "tomorrow"},
    **{"nite": "night", "nites": "nights", "yr": "year", "yrs": "years"},
}
_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_NUMBERS = {word: number for number, word in enumerate(_SMALL)}
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50}
_ORDINALS = {
    **{"first": 1, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12, "twentieth": 20, "thirtieth": 30},
    **{f"{word}th": number for word, number in _NUMBERS.items() if number > 3 and number not in (5, 8, 9, 12)},
}
_FURTHER = (
    *("every", "each", "other", "second", "seconds", "minute", "minutes", "hour", "hours", "day", "days", "week"),
    *("weeks", "month", "months", "year", "years", "quarter", "half", "past", "after", "before", "noon", "midnight"),
    *("today", "tomorrow", "tonight", "morning", "mornings", "afternoon", "afternoons", "evening", "evenings"),
    *("night", "nights", "weekday", "weekdays", "weekend", "weekends", "working", "business", "between", "until"),
    *("from", "next", "last", "this", "coming", "daily", "hourly", "weekly", "monthly", "yearly", "nightly"),
    *("fortnightly", "quarterly", "twice", "once", "times", "hundred", "please", "exactly", "about", "around"),
    *("sharp", "except", "biweekly", "bimonthly"),
)
_PLURAL_DAYS = tuple(f"{day}s" for day in WEEKDAYS)
_KNOWN = frozenset((*WEEKDAYS, *_PLURAL_DAYS, *MONTHS, *_SHORT, *_NUMBERS, *_TENS, *_ORDINALS, *_FURTHER))
# Not every known word: `flour` is not four, nor is `mother` other.
_MENDED_TO = (
    *(
        *WEEKDAYS,
        *_PLURAL_DAYS,
        *(month for month in MONTHS if len(month) > 4),
        "every",
        "today",
        "tomorrow",
        "tonight",
        "morning",
        "mornings",
        "afternoon",
    ),
    *("afternoons", "evening", "evenings", "weekday", "weekdays", "weekend", "weekends", "minute", "minutes"),
    *("hours", "month", "months", "midnight", "oclock"),
)
_NOT_MENDED = frozenset(  # everyday words that stand close to one of these (looked for in 40,000 words of films)
    (
        *("very", "ever", "emery", "mouth", "mouths", "moth", "moths", "monte", "mont", "match", "march", "marsh"),
        *("marc", "marco", "merch", "monarch", "marched", "marches", "monkeys", "moaning", "manning", "meaning"),
        *("toddy", "honours", "vending", "venting", "markings", "sandals", "sundae", "sundaes", "sundial", "sundry"),
        *("soundly", "subways", "faraday", "minuet", "augusta", "jaguars", "moorings", "meanings"),
        *("mourning", "mounting", "mooning", "morphing", "moldings", "earnings", "weakened", "mach", "todays"),
    )
)
_QUARTERS = "every month in january , april , july and october"
_MENDED_FROM = 4  # letters: shorter words have too many neighbours
_TWO_SLIPS_FROM = 8


def plain(words: str) -> str:
    """The words in the form that the grammar reads. What is not understood stays as it is."""
    text = unicodedata.normalize("NFKC", words).casefold().replace("\u2019", "'")
    text = re.sub(r"\bo'? ?clock\b", "oclock", text)
    text = re.sub(r"(?<=[a-z])'s\b", "", text)
    text = re.sub(r"\b(twenty|thirty|forty|fifty)-(?=[a-z])", r"\1 ", text)
    text = re.sub(r"\b(mid|noon|week)-(day|night|end|days|ends)\b", r"\1\2", text)
    text = re.sub(r"\bweek (?=days?\b)", "week", text)
    text = re.sub(r"\b(half|quarter)-(?=past|to|after|before)|\b(past)-", r"\1\2 ", text)
    text = re.sub("[\u2013\u2014]", "-", text)
    text = re.sub(r"\bfrom now on\b|(?<=every )single |(?<=each )single ", " ", text)
    text = re.sub(r"\ball days\b", "every day", text)
    text = re.sub(r"\b(?:quarterly|(?:every|each) quarter)\b(?! (?:of|past|to|hour|an))", _QUARTERS, text)
    text = re.sub(r"\ba couple(?: of)?\b", "2", text)
    text = re.sub(r"[a-z][a-z0-9]*", lambda found: _whole(found[0]), text)
    text = re.sub(r"\ba (?=2 weeks)", "", _digits(text))
    text = re.sub(r"(?<=\d) ?([ap])\.? ?m\b\.?", r"\1m", text)
    text = re.sub(r"(?<=[a-z])\.(?= |$|-|,)|[!?;\"]|(?<!\d)[.]|[.](?!\d)", " ", text)
    text = re.sub(r":(?=\s|$)", " , ", text)  # a mark, not the sign within a time
    return " ".join(text.replace(",", " , ").split())


def _whole(word: str) -> str:
    """A shortened or misspelled word as it is meant; any other as it is."""
    if word in _SHORT:
        return _SHORT[word]
    if word in _KNOWN or word in _NOT_MENDED or len(word) < _MENDED_FROM or not word.isalpha():
        return word
    return _nearest(word)


@lru_cache(maxsize=2048)
def _nearest(word: str) -> str:
    """The one known word that is a slip away (two in a long word); the word itself when there is none, or several."""
    allowed = 2 if len(word) >= _TWO_SLIPS_FROM else 1
    near: dict[int, set[str]] = {}
    for known in _MENDED_TO:
        if abs(len(known) - len(word)) <= allowed and not _is_other(word, known):
            near.setdefault(_slips(word, known), set()).add(known)
    for slips in range(1, allowed + 1):
        if slips in near:
            return near[slips].pop() if len(near[slips]) == 1 else word
    return word


def _is_other(word: str, known: str) -> bool:
    """Tell whether it begins otherwise, which slips seldom do: `looking` is not coming, but `veery` is every."""
    return word[0] != known[0] and word[:2] != known[1::-1]


def _slips(one: str, other: str) -> int:
    """Count letters that are missing, too many, wrong or swapped with their neighbour (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, right in enumerate(other, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                best = min(best, last[j - 2] + 1)
            row.append(best)
    return row[-1]


def _digits(text: str) -> str:
    """Numbers in words as digits: `twenty five` is 25, `twenty first` 21st, `nine oh five` 9:05."""
    out: list[str] = []
    tens = 0
    for word in re.findall(r"[a-z]+|[^a-z]+", text):
        if not word.strip(" ") and tens:
            continue
        small, ordinal = _NUMBERS.get(word, 0), _ORDINALS.get(word, 2 if word == "second" and tens else 0)
        if tens and 0 < small < 10:
            out.append(str(tens + small))
        elif tens and 0 < ordinal < 10:
            out.append(cron_words.ordinal(tens + ordinal))
        else:
            out.extend([str(tens), " "] if tens else [])
            out.append(_one_word(word))
        tens = _TENS.get(word, 0)
        if tens:
            out.pop()
    return re.sub(r"\b(\d{1,2}) (?:oh|o|0) ([1-9])\b", r"\1:0\2", "".join([*out, str(tens)] if tens else out))


def _one_word(word: str) -> str:
    if word in _NUMBERS:
        return str(_NUMBERS[word])
    return cron_words.ordinal(_ORDINALS[word]) if word in _ORDINALS else word
