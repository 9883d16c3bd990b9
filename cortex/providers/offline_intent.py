"""Whether a sentence asks for what a tool does: a question never writes, a wish to add never deletes.

Used by the offline model only, which would rather do nothing than the wrong thing. Judges by the verbs of sentence and
tool; no rule names a tool.
"""

import re
from typing import Literal

from cortex.base.messages import ToolSchema
from cortex.providers.offline_arguments import cleaned, words_of
from cortex.providers.offline_rhythms import find_rhythm

THRESHOLD, LOOKING = 0.3, 0.1
Aim = Literal["read", "make", "end", "close", "change", "send", "run", "advice", ""]

_VERBS: dict[Aim, str] = {
    "read": "show list read search find get look see view describe query tell give open display print fetch google "
    "status log diff history stat state grep compare check count summarize say",
    "make": "add create append new make put note jot write save store remember keep set remind schedule plan record "
    "wake book insert",
    "end": "remove delete clear forget cancel erase drop empty wipe",
    "close": "complete finish tick mark done",
    "change": "update change rename move edit toggle pause resume snooze",
    "send": "send push email message notify mail",
    "run": "run execute exec start spawn restart call turn switch stop cat",
}
_AIMS: dict[str, Aim] = {verb: aim for aim, verbs in _VERBS.items() for verb in verbs.split()}
_FITS: dict[Aim, frozenset[Aim]] = {
    "make": frozenset({"make", "run", ""}),
    "change": frozenset({"change", "run", ""}),
    "run": frozenset({"run", "change", "read", ""}),
    "end": frozenset({"end", ""}),
    "close": frozenset({"close", ""}),
    "send": frozenset({"send", "run", ""}),
}
_NO = re.compile(
    r"^(?:do not|don'?t|never|no\b|nope|stop it|how|why|should|would it|can i|could i|may i)\b", re.IGNORECASE
)
_ASKING = re.compile(
    r"^(?:what|which|who|where|when|is|are|am|was|were|do|does|did|has|have|had|any|anything)(?:'s|'re|s)?\b",
    re.IGNORECASE,
)
_TICKING = re.compile(r"^(?:check|tick|cross)\b.*\boff\b", re.IGNORECASE)
_NOTING = re.compile(r"^take (?:a |an |down |some |this |that )*(?:notes?|down)\b", re.IGNORECASE)
_REMINDING = re.compile(r"\b(?:remind|wake|alert) me\b", re.IGNORECASE)
_TELLING = re.compile(
    r"^(?:tell|notify|alert|ping|nudge|message)\s+(?!(?:me|us|you|him|her|them|it|the|a|an|my|our|your|this|that|what|how|"
    r"about|all|every|everyone|everybody)\b)[^\W\d_][\w'-]*\s",
    re.IGNORECASE,
)
_HEADED = re.compile(r"^((?:[\w'-]+ ){0,3}[\w'-]+):\s")
_ALL = re.compile(r"\b(?:all|every|everything|whole|entire|empty|clear|wipe)\b", re.IGNORECASE)
_FOR_ITSELF = re.compile(r"\b(?:your own|yourself)\b", re.IGNORECASE)
_KIN = ({"note", "jot", "down"}, {"todo", "task"}, {"alarm", "timer", "remind", "reminder"})
_VAGUE_WORDS = (
    "it this that these those them one thing things stuff something anything everything nothing someone somebody me us "
    "you all later now again so about of"
)
_VAGUE = frozenset(_VAGUE_WORDS.split())


def aim_of(sentence: str) -> Aim:
    """Return what the person wants done; "advice" where nothing is to be done, "" where the sentence does not say."""
    text = cleaned(sentence)
    if _NO.match(text):
        return "advice"
    if _ASKING.match(text):
        return "read"
    if _TICKING.match(text):
        return "close"
    if _NOTING.match(text) or _REMINDING.search(text):
        return "make"
    if _TELLING.match(text):
        return "send"
    first = re.match(r"[a-z]+", text.lower())
    return _AIMS.get(first[0], "") if first else ""


def does(tool: ToolSchema) -> Aim:
    """Return what the tool is for: by the verb that its description begins with, else by one in its name."""
    said = re.match(r"[a-z]+", tool.description.lower())
    found: Aim = _AIMS.get(said[0], "") if said else ""
    return found or next((_AIMS[word] for word in reversed(tool.name.split("_")) if word in _AIMS), "")


def asks_for(sentence: str, tool: ToolSchema) -> bool:
    """Tell whether the sentence may mean this tool at all."""
    aim, purpose = aim_of(sentence), does(tool)
    line = tool.description.partition("\n")[0]
    if aim == "advice" or (_FOR_ITSELF.search(line) and "your" not in words_of(sentence)):
        return False
    if _is_called_by_name(sentence, tool):
        return True
    if purpose == "read":
        return aim in ("read", "run") or bool(head(sentence) & _own(tool))
    if purpose == "end" and _ALL.search(line) and not _ALL.search(sentence):
        return False
    if aim == "send" and purpose == "make":  # somebody else is told: at its time, where the tool takes one
        return bool({"person", "when"} <= set(tool.parameters.get("properties", {})))
    if aim:
        return aim in _FITS and purpose in _FITS[aim]
    return _is_named_first(sentence, tool) or (purpose == "make" and _has_rhythm(sentence, tool))


def least_chance(sentence: str, tool: ToolSchema) -> float:
    """From which chance on the tool is called: none is needed for what begins with its own verb and thing.

    That is "make a note: …", "tell Ben …" for what tells a person, and a tool's own name; and little for a look at
    what the question names.
    """
    aim = aim_of(sentence)
    if _is_called_by_name(sentence, tool):
        return 0.0
    if aim == "send" and "person" in tool.parameters.get("properties", {}) and _TELLING.match(cleaned(sentence)):
        return 0.0
    if aim == does(tool) == "make" and head(sentence) & _own(tool):
        return 0.0
    return LOOKING if aim == does(tool) == "read" and words_of(sentence) & _own(tool) else THRESHOLD


def says_nothing(text: str) -> bool:
    """Tell whether the words name no thing: "it", "everything"."""
    return set(re.findall(r"[^\W_]+", text.lower())) <= _VAGUE


def head(sentence: str) -> set[str]:
    """The words before a colon, or the first four; with those of the same meaning."""
    text = cleaned(sentence)
    headed = _HEADED.match(text)
    said = words_of(headed[1] if headed else " ".join(text.split()[:4]))
    return said.union(*(kin for kin in _KIN if kin & said))


def _own(tool: ToolSchema) -> set[str]:
    """The telling words of a tool's name and first line."""
    said = words_of(f"{tool.name} {tool.description.partition(chr(10))[0]}")
    return {word for word in said if len(word) > 3 and word not in ("user", "with", "from", "what", "your", "that")}


def _is_called_by_name(sentence: str, tool: ToolSchema) -> bool:
    """Tell whether the tool's own name is in it, such as task_list."""
    return "_" in tool.name and re.search(rf"\b{re.escape(tool.name)}\b", sentence) is not None


def _is_named_first(sentence: str, tool: ToolSchema) -> bool:
    """Tell whether it begins with the tool's own verb, or with its thing and a colon ("todo: call the bank")."""
    text = cleaned(sentence)
    first = words_of(text.split(" ", 1)[0])
    return bool(first & words_of(tool.name)) or (bool(_HEADED.match(text)) and bool(head(sentence) & _own(tool)))


def _has_rhythm(sentence: str, tool: ToolSchema) -> bool:
    """Tell whether both speak of times that come again."""
    return "when" in tool.parameters.get("properties", {}) and find_rhythm(sentence) is not None
