"""Fills a tool's arguments from one sentence, by rules on type, format, enum, name and description of a parameter.

Used by the offline model only. No rule names a tool; what a rule took is cut from the sentence before the next one.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec import Struct

from cortex.base.messages import ToolSchema
from cortex.ports.schedule import Timings
from cortex.providers.offline_rhythms import find_rhythm
from cortex.providers.offline_words import find_moment

_CODE = re.compile(r"(?<!`)`++([^`]++)`+")
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|(?<!\w)'([^']+)'(?!\w)")
_URL = re.compile(r"\bhttps?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)]")
_PATH = re.compile(
    r"(?<![\w/.:@+-])(?:~?/?(?:[\w.@+-]+/)+[\w.@+-]*|[\w-][\w.-]*\.[A-Za-z]\w{0,7}|\.[A-Za-z]\w+)(?![\w/])"
)
_NUMBER = re.compile(r"(?<![\w.,])-?\d+(?:[.,]\d+)?(?![\w.,]*\d)")
_POLITE = re.compile(
    r"^(?:(?:hey|hi|hello|ok|okay|so|now|please|kindly|just|also|and|then|cortex|"
    r"(?:can|could|would|will) you|i(?:'d| would) like(?: you)? to|i(?: want| need) (?:you )?to|let'?s)\b[\s,:]*)+",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"[\s,]*\b(?:please|thanks|thank you|for me|right now|as (?:done|finished|completed?))$", re.IGNORECASE
)
_VERBS = (
    "remind me|give me|tell me|show me|let me see|let me know|look up|look for|search for|check off|tick off|note down|"
    "jot down|write down|turn on|turn off|switch on|switch off|add|put|create|make|new|set|show|list|read|open|display|"
    "print|get|fetch|find|search|google|run|execute|start|write|append|note|remember|save|store|delete|remove|clear|"
    "erase|complete|finish|mark|close|check|tick|change|update|rename|move|schedule|plan|view|see|cat|compare|diff|"
    "cancel|forget|take down|take"
)
_VERB = re.compile(rf"^(?:{_VERBS})\b[\s:]*", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:a|an|the|my|our|new|me|us|this|that|some)\s+", re.IGNORECASE)
_STATE_ASKED = re.compile(r"^(?:is|are)\s+(.+?)\s+(?:on|off|open|closed|locked|unlocked)$", re.IGNORECASE)
_TITLED = re.compile(
    r"^(?:(?:an?|the|my|new|quick|short|of)\s+)*(?:note|memo|entry|item|reminder|message|to-?do)s?\s*:\s*",
    re.IGNORECASE,
)
_LINK = re.compile(r"^(?:to|for|that|about|called|named|saying|of|with|on|in)\b[\s:]*", re.IGNORECASE)
_EDGE = " \t\r\n,;:\u2013\u2014-"
_WHEN = re.compile(r"\b(?:when|date|time|day|due|moment|deadline)\b", re.IGNORECASE)
_WHERE = re.compile(r"\b(?:path|file|folder|directory)\b", re.IGNORECASE)
_LINKED = re.compile(r"\b(?:url|uri|link|web address)\b", re.IGNORECASE)
_PERSON = re.compile(
    r"^(?P<verb>remind|tell|notify|message|alert|ping|nudge|push|send)\s+"
    r"(?!(?:me|us|him|her|them|it|myself|everyone|everybody|the|a|an|my|our|your|this|that|these|those|push|in|at|on|"
    r"about|of|to|for|every|tomorrow|today|tonight)\b)(?P<who>[^\W\d_][\w'-]*)\b",
    re.IGNORECASE,
)
_FOR_PERSON = re.compile(
    r"(?P<verb>\b(?:reminder|message|notification|alarm))\s+(?:for|to)\s+"
    r"(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Tomorrow|Today|Tonight)(?P<who>[A-Z][\w'-]*)\b"
)
_NOT = re.compile(r"\b(?:no|not|don'?t|without|never)\b", re.IGNORECASE)


_LISTED = re.compile(
    r"^(?P<verb>(?:add|put)\s+)(?P<items>.+?)(?P<list>\s+(?:to|on|onto)\s+(?:my|the|our|a)\s+(?:[\w'-]+\s+){0,2}lists?)$",
    re.IGNORECASE,
)
_BETWEEN_ITEMS = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)
_ITEM_WORDS = 3  # "milk", "a dozen eggs": with more words it may be one thing that has an "and" in it
_DEEDS = re.compile(r"\b(?:tasks?|to-?dos?)\b", re.IGNORECASE)
_CONTENT = re.compile(r"^(?:tell|give|show|read|send|write)\s+(?:me|us)\b|^let\s+me\s+know\b", re.IGNORECASE)


class _Sentence(Struct):
    """The rest of the person's words, the day they were said, and who reads times in them.

    is_whole: a rhythm was taken from it, and what is left is to be done at its times, as it is said.
    """

    rest: str
    now: datetime
    timings: Timings | None
    is_whole: bool = False

    def cut(self, piece: str) -> None:
        """Take a piece out, once."""
        self.rest = " ".join(self.rest.replace(piece, " ", 1).split())


def words_of(text: str) -> set[str]:
    """The words of a name or a description, lower case, without a plural s."""
    return {word.lower().removesuffix("s") for word in re.findall(r"[^\W_]+", text) if len(word) > 1}


def things(sentence: str) -> list[str]:
    """The sentence once for each of the things that it puts on a list: milk and eggs are two; else itself alone."""
    found = _LISTED.match(cleaned(sentence))
    if found is None or _DEEDS.search(found["list"]) or _QUOTED.search(sentence) or _CODE.search(sentence):
        return [sentence]
    items = [item for item in _BETWEEN_ITEMS.split(found["items"]) if item]
    if any(len(item.split()) > _ITEM_WORDS for item in items):
        return [sentence]
    return [f"{found['verb']}{item}{found['list']}" for item in items]


def fill(tool: ToolSchema, sentence: str, now: datetime, timings: Timings | None) -> dict[str, Any] | None:
    """The arguments this sentence gives for the tool; None when a required one can't be found in it."""
    properties: dict[str, dict[str, Any]] = tool.parameters.get("properties", {})
    required: list[str] = list(tool.parameters.get("required", []))
    said = _Sentence(rest=cleaned(sentence), now=now, timings=timings)
    found: dict[str, Any] = {}
    plain = [name for name in required if name in properties and _is_plain(name, properties[name])]
    if "person" in properties and (person := _person(said)):
        found["person"] = person
    # Shaped values first: what they take is then not part of the plain text. The last word has the main plain text.
    for name in sorted(properties, key=lambda each: (each not in required, each)):
        if name not in plain:
            value = _shaped(name, properties[name], said, is_required=name in required)
            if value is not None:
                found[name] = value
    own = words_of(tool.name) | words_of(tool.description.splitlines()[0] if tool.description else "")
    for name, value in _plain_texts(plain, said, own):
        found[name] = value
    if any(name not in found for name in required):
        return None
    return {name: found[name] for name in properties if name in found}


def _person(said: _Sentence) -> str:
    """The name of somebody else who is to be told, taken out of the sentence: it reads on as if it said "me"."""
    if match := _PERSON.match(said.rest):
        verb = "remind" if match["verb"].casefold() == "remind" else "tell"
        said.rest = f"{verb} me{said.rest[match.end() :]}"
    elif match := _FOR_PERSON.search(said.rest):
        said.rest = said.rest[: match.end("verb")] + said.rest[match.end() :]
    return match["who"] if match else ""


def cleaned(sentence: str) -> str:
    """The sentence without what is only polite, and without its last mark."""
    text = " ".join(sentence.split()).strip(_EDGE)
    before = ""
    while before != text:
        before = text
        text = _TRAILING.sub("", _POLITE.sub("", text)).strip(_EDGE)
        text = text.rstrip("!?") if not text.endswith("`") else text
    return text[:-1] if text.endswith(".") and not text.endswith("..") else text


def _kinds(schema: dict[str, Any]) -> set[str]:
    kind = schema.get("type", "")
    kinds = set(kind) if isinstance(kind, list) else {kind}
    for each in schema.get("anyOf", []):
        kinds |= _kinds(each)
    return kinds


def _is_plain(name: str, schema: dict[str, Any]) -> bool:
    """Tell whether a parameter takes free words: a string without a format, an enum or a telling name."""
    own_name = name.replace("_", " ")
    return (
        "string" in _kinds(schema)
        and not ({"enum", "const", "format"} & schema.keys())
        and not any(pattern.search(own_name) for pattern in (_WHEN, _WHERE, _LINKED))
        and not name.endswith(("_name", "_id"))
    )


def _shaped(name: str, schema: dict[str, Any], said: _Sentence, *, is_required: bool) -> Any:
    kinds = _kinds(schema)
    rules: list[tuple[bool, Callable[[str, dict[str, Any], _Sentence, bool], Any]]] = [
        ("enum" in schema, _enum),
        ("boolean" in kinds, _boolean),
        (bool(kinds & {"integer", "number"}), _number),
        ("array" in kinds, _array),
        ("string" in kinds, _string),
    ]
    for applies, rule in rules:
        if applies:
            return rule(name, schema, said, is_required)
    return None


def _enum(name: str, schema: dict[str, Any], said: _Sentence, is_required: bool) -> Any:
    for option in schema["enum"]:
        if re.search(rf"(?<!\w){re.escape(str(option))}(?!\w)", said.rest, re.IGNORECASE):
            return option
    return schema["enum"][0] if is_required and "default" not in schema else None


def _boolean(name: str, schema: dict[str, Any], said: _Sentence, is_required: bool) -> bool | None:
    words = {word for word in words_of(name) if len(word) > 3} - {"include", "with"}
    if words & words_of(said.rest):
        return not _NOT.search(said.rest)
    return False if is_required else None


def _number(name: str, schema: dict[str, Any], said: _Sentence, is_required: bool) -> float | int | None:
    """A number beside a word of the parameter's name, or any number where one is required."""
    named = "|".join(re.escape(word) for word in name.lower().split("_") if len(word) > 2)
    pattern = rf"\b(?:{named})s?\s*(?:of|to|is|=|:)?\s*(-?\d+(?:[.,]\d+)?)|(-?\d+(?:[.,]\d+)?)\s*(?:{named})s?\b"
    beside = re.search(pattern, said.rest, re.IGNORECASE) if named else None
    loose = _NUMBER.search(said.rest) if is_required else None
    match = beside or loose
    if match is None:
        return None
    digits = next((group for group in match.groups() if group), match[0]).replace(",", ".")
    said.cut(match[0])
    said.rest = re.sub(r"\s+(?:with|at|of|and)$", "", said.rest)
    return int(float(digits)) if "integer" in _kinds(schema) else float(digits)


def _array(name: str, schema: dict[str, Any], said: _Sentence, is_required: bool) -> list[Any] | None:
    if not is_required or "string" not in _kinds(schema.get("items", {"type": "string"})):
        return None
    body = _headless(said.rest, set())
    said.rest = ""
    return [piece.strip() for piece in re.split(r",|\band\b", body) if piece.strip()] or None


def _string(name: str, schema: dict[str, Any], said: _Sentence, is_required: bool) -> str | None:
    kind, own_name = schema.get("format", ""), name.replace("_", " ")
    if kind in ("date", "date-time", "time") or (not kind and _WHEN.search(own_name)):
        return _moment(said, kind)
    if kind in ("uri", "url") or _LINKED.search(own_name):
        return _match(_URL, said)
    if _WHERE.search(own_name) or kind in ("path", "file-path"):
        return _path(said, is_required=is_required)
    if name.endswith("_name"):
        return _named_thing(name.removesuffix("_name").replace("_", " "), said)
    if name.endswith("_id") or name == "id":
        return _match(_QUOTED, said) or _match(_CODE, said) or (_headless(said.rest, set()) if is_required else None)
    return None


def _match(pattern: re.Pattern[str], said: _Sentence) -> str | None:
    match = pattern.search(said.rest)
    if match is None:
        return None
    said.cut(match[0])
    return next((group for group in match.groups() if group), match[0])


def _path(said: _Sentence, *, is_required: bool) -> str | None:
    """A path in the sentence; one that nobody needs is not taken out of the middle of a marked command."""
    if is_required:
        return _match(_PATH, said) or _match(_CODE, said) or _match(_QUOTED, said)
    found = _PATH.search(_CODE.sub(lambda span: "`" * len(span[0]) if " " in span[1] else span[0], said.rest))
    if found is not None:
        said.cut(found[0])
    return found[0] if found else None


def _moment(said: _Sentence, kind: str) -> str | None:
    """The first date in the sentence, as the format asks; the words themselves, or those of a rhythm, without one."""
    if not kind and (rhythm := find_rhythm(said.rest)):
        words, said.rest = rhythm
        said.is_whole = said.rest.startswith(":") or bool(_CONTENT.match(said.rest))
        return words
    found = find_moment(said.rest, said.now, said.timings) if said.timings else None
    if found is None:
        return None
    spoken, moment = found
    said.cut(spoken)
    said.rest = re.sub(r"\s+(?:by|on|at|for|until|due|to)$", "", said.rest)
    match kind:
        case "date":
            return moment.date().isoformat()
        case "time":
            return moment.time().isoformat("minutes")
        case "date-time":
            return moment.isoformat()
        case _:
            return spoken


def _named_thing(noun: str, said: _Sentence) -> str | None:
    """`to my shopping list` for a parameter called list_name: "shopping". The phrase is cut either way."""
    match = re.search(
        rf"(?:\b(?:to|on|onto|in|into|from|at|under|off|for)\s+)?\b(?:my|the|our|a)\s+((?:[^\W_][\w'-]*\s+){{0,3}}?){noun}\b",
        said.rest,
        re.IGNORECASE,
    ) or re.search(rf"\b{noun}\s+(?:called|named)\s+([\w-]+)", said.rest, re.IGNORECASE)
    if match is None:
        return None
    said.cut(match[0])
    return match[1].strip().lower() or None


def _plain_texts(names: list[str], said: _Sentence, own: set[str]) -> list[tuple[str, str]]:
    """Marked pieces (code, quotes) first, in order, then what is left of the sentence for the next parameter."""
    filled: list[tuple[str, str]] = []
    for name in names:
        text = _match(_CODE, said) or _match(_QUOTED, said)
        if text is None:
            text = said.rest.strip(_EDGE) if said.is_whole else _headless(said.rest, own | words_of(name))
            said.rest = ""
        if text:
            filled.append((name, text))
    return filled


def _headless(sentence: str, own: set[str]) -> str:
    """The sentence without its leading verb, articles and the tool's own nouns, and without `in the <tool noun>`.

    Of "is the porch light on" the porch light is left.
    """
    if asked := _STATE_ASKED.match(sentence):
        return _without_head(asked[1], set())
    text = _VERB.sub("", sentence, count=1)
    if titled := _TITLED.match(text):
        text = text[titled.end() :]
    elif text != sentence:
        text = _without_head(text, own)
    tail = re.search(r"\s+(?:to|on|onto|off|in|into|from|at|with|using|via)\s+(?:my|the|our|a)\s+([\w -]+)$", text)
    if tail and (words_of(tail[1]) <= own or re.fullmatch(r"(?:[\w-]+ ){0,2}lists?", tail[1])):
        text = text[: tail.start()]
    return text.strip(_EDGE)


def _without_head(text: str, own: set[str]) -> str:
    while True:
        shorter = _LINK.sub("", _ARTICLE.sub("", text))
        first = re.match(r"([\w-]+)[\s:]+(?=\S)", shorter)
        if first and words_of(first[1]) and words_of(first[1]) <= own:
            shorter = shorter[first.end() :]
        if shorter == text:
            return text
        text = shorter
