"""What a call did, in a line of the past tense, and what it would do, as a question; its main thing stands out.

Pure; made of a call's title and arguments, so that chats from before read the same. The pages put them in markup.
"""

import re
from collections.abc import Iterator
from typing import Any

from cortex.base.json_text import parsed
from cortex.toolkit.words import NO_CHANGE, VALUE_CHARACTERS, cut, one_line, spoken

_REGULAR = (
    "Add Change Check Clear Close Compare Complete Delete Fetch List Lock Look Open Pause Play Press Remember Remove "
    "Replace Restart Resume Schedule Search Select Start Tick Toggle Turn Unlock Update Use"
)
_IRREGULAR = (
    "Forget Forgot, Have Had, Let Let, Notify Notified, Post Posted, Put Put, Query Queried, Read Read, "
    "Remind Will remind, Run Ran, Send Sent, Set Set, Stop Stopped, Write Wrote"  # to remind comes later: it is set
)
_PAST = {verb: f"{verb}d" if verb.endswith("e") else f"{verb}ed" for verb in _REGULAR.split()}
_PAST |= dict(pair.split(" ", 1) for pair in _IRREGULAR.split(", "))
# The argument that a call is about, the likeliest first.
_MAIN = [
    "title",
    "text",
    "fact",
    "task",
    "reminder",
    "job",
    "subject",
    "message",
    "query",
    "command",
    "path",
    "url",
    "target",
    "name",
    "to",
    "prompt",
]
_FACT = re.compile(r"([A-Z][^:\n]{0,24}):(?: (.*))?")
FACTS, FACT_CHARACTERS = 6, 400


Pieces = tuple[str, str, str]  # a line in three: what stands before its main thing, that, and what stands after


def deed(title: str, arguments: str, words: str = "") -> Pieces:
    """The line of a call that ended well: "Added **milk** to shopping". One of unknown kind keeps its title."""
    verb, blank, rest = title.partition(" ")
    bare = verb.rstrip(":")
    said = title if words == NO_CHANGE else f"{_PAST.get(bare, bare)}{verb[len(bare) :]}{blank}{rest}"
    return _marked(said, arguments)


def question(verb: str, arguments: str) -> Pieces:
    """The same as a question: "Turn off **kitchen lights**?".

    What stands behind a colon, such as a command, ends as it is: a mark there would be read as part of it.
    """
    mark = "" if ": " in verb or verb.rstrip().endswith(("?", "…", ".", "!")) else "?"
    return _marked(f"{verb.rstrip()}{mark}", arguments)


def facts(detail: str) -> list[tuple[str, str]]:
    """A question's detail as names and values, where it is a few of those; else nothing: it is a command, or a text."""
    found: list[tuple[str, list[str]]] = []
    for line in detail.splitlines():
        head = _FACT.fullmatch(line)
        if head:
            found.append((head[1], [head[2] or ""]))
        elif found and line.startswith("  "):
            found[-1][1].append(line.strip())
        else:
            return []
    told = [(name, "\n".join(filter(None, lines))) for name, lines in found]
    is_short = 0 < len(told) <= FACTS and all(len(value) <= FACT_CHARACTERS for _, value in told)
    return told if is_short else []


def says_more(words: str, title: str) -> bool:
    """Tell whether a result's words are news beside the line: "4 tasks" is, "added" after "Added milk" is not."""
    return bool(words) and not words.isalpha() and words.casefold() not in title.casefold()


def _marked(text: str, arguments: str) -> Pieces:
    main = next((value for value in _things(arguments) if value and value in text), "")
    if not main:
        return text, "", ""
    before, _, after = text.partition(main)
    return before, main, after


def _things(arguments: str) -> Iterator[str]:
    """The arguments that are words, as a title shows them."""
    try:
        given: Any = parsed(arguments)
    except ValueError:
        return
    if not isinstance(given, dict):
        return
    for name in _MAIN:
        if isinstance(value := given.get(name), str):
            yield cut(one_line(value), VALUE_CHARACTERS)
            yield ", ".join(spoken(one) for one in value.split(","))
