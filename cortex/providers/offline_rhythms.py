"""Finds words such as `every weekday at half past seven` in a sentence, by patterns, and what is left without them.

Called by `offline_arguments.py`; knows no tool and no schema. What the words mean is read where times are read.
"""

import re

_NAMES = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon|midnight"
_MINUTES = (
    "(?:twenty|thirty|forty|fifty)(?:[ -](?:one|two|three|four|five|six|seven|eight|nine))?|ten|eleven|twelve|"
    "thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|five"
)
_PAST = rf"(?:(?:a )?(?:half|quarter)|\d{{1,2}}(?: minutes)?|(?:{_MINUTES})(?: minutes)?) (?:past |to )|half "
_HALF_OF_DAY = r"(?: ?(?:am|pm|a\.m\.|p\.m\.)| ?o'clock| ?h)?"
_PART = r"(?: (?:in the (?:morning|afternoon|evening)|at night))?"
_END = r"(?![\w']|[:.]\d)"  # a colon ends a time, unless digits follow it
_HOUR = rf"(?:\d{{1,2}}|(?:{_NAMES})(?:[ -](?:{_MINUTES}))?)"
# Behind a colon, a stop or a dash a number begins what is to be done: "at 7: 30 minutes of yoga".
_TIME = rf"(?:(?:{_PAST})?(?:\d{{1,2}}[:.]\d\d|{_HOUR}){_HALF_OF_DAY}{_PART}){_END}"
_TIMES = rf"{_TIME}(?:(?:, (?={_TIME},? |{_TIME}$)| and ){_TIME})*"
_WINDOW = rf"(?:from|between) {_TIME} (?:to|until|and) {_TIME}"
_AT = rf"(?:at {_TIMES}|{_WINDOW}|\d{{1,2}}[:.]\d\d{_HALF_OF_DAY}{_END})"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DAY = rf"(?:minute|hour|day|morning|afternoon|evening|night|week|weekday|workday|weekend|month|year|{_WEEKDAY})s?"
_WHICH = r"(?: (?:other|second|first|third|fourth|last|\d+))?"
_RHYTHM = re.compile(
    rf"\b(?P<before>{_AT}[,:]? )?"
    rf"(?P<days>(?:every|each){_WHICH} {_DAY}(?:(?:,| and|, and) {_DAY})*(?: of (?:the|every|each) month)?"
    rf"|daily|hourly|weekly|(?:on )?(?:week|work)days|on {_WEEKDAY}s(?:(?:,| and|, and) {_WEEKDAY}s)*)\b"
    rf"(?P<behind>,? {_AT})?",
    re.IGNORECASE,
)
_AT_END = re.compile(rf",? (at {_TIMES})$", re.IGNORECASE)
_JOINT = re.compile(r"^[\s,:;\u2013\u2014-]*(?:that\s+(?=\S)|remind me (?:to|that|about)\s+(?=\S))?", re.IGNORECASE)


def find_rhythm(sentence: str) -> tuple[str, str] | None:
    """(the words of the rhythm with its times of day, the sentence without them); None where there is no rhythm.

    What follows a rhythm at the beginning is to be done as it is said: it stands behind a colon.
    """
    found = _RHYTHM.search(sentence)
    if found is None:
        return None
    words, ahead, behind = found[0], sentence[: found.start()].rstrip(), sentence[found.end() :]
    last = None if found["before"] or found["behind"] else _AT_END.search(behind)
    if last is not None:
        words, behind = f"{words} {last[1]}", behind[: last.start()]
    return words.strip(), f"{ahead}{behind}" if ahead else f": {_JOINT.sub('', behind)}"
