"""YAML of which every scalar stays the text that it was: no tags, no anchors, no aliases, no merging, nothing doubled.

Read from the parser's events, so that nothing is built that was not looked at. Runs in `program.py` only.
"""

import re
from typing import Any

import yaml

from cortex.base.front_matter import quoted
from cortex.integrations.documents.kinds import UnreadableError

DEPTH_MOST = 8
NODES_MOST = 2_000
CHARACTERS = 20_000
# `description: Use when: asked`, which YAML refuses and many skills have: a text with a colon on one line.
_LOOSE = re.compile(r"^([A-Za-z_][\w-]*): +([^\s\"'\[{>|&*!%@`#-].*: .*?)\s*$", re.MULTILINE)
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # Any: the one in C is not always there


def texts_of(text: str) -> dict[str, Any]:
    """The keys: texts, lists and keys again. UnreadableError in a sentence, with the line where one is known."""
    if len(text) > CHARACTERS:
        raise UnreadableError(f"The front matter has {len(text):,} characters; {CHARACTERS:,} are read.")
    try:
        found = _read(text)
    except yaml.YAMLError as error:
        raise UnreadableError(_slip(error)) from error
    if not isinstance(found, dict):
        raise UnreadableError("The front matter is no list of `key: value` lines.")
    return found


def _read(text: str) -> Any:
    try:
        return _document(text)
    except yaml.YAMLError:
        meant = _LOOSE.sub(lambda line: f"{line[1]}: {quoted(line[2])}", text)
        if meant == text:
            raise
        return _document(meant)


def _document(text: str) -> Any:
    stack: list[_Open] = [_Open({}, is_top=True)]
    documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=LOADER)):
        documents += isinstance(event, yaml.DocumentStartEvent)
        if count > NODES_MOST or len(stack) > DEPTH_MOST:
            raise UnreadableError("The front matter holds far more, or is nested deeper, than a front matter is.")
        if documents > 1:
            raise UnreadableError(f"Line {_line(event)}: a second document begins in the front matter.")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise UnreadableError(f"Line {_line(event)}: & and * (anchors) are not read. Put the text into quotes.")
        if getattr(event, "tag", None):
            raise UnreadableError(f"Line {_line(event)}: ! (a tag) is not read. Put the text into quotes.")
        _take(event, stack)
    return stack[0].whole.get("")


def _take(event: Any, stack: "list[_Open]") -> None:
    if isinstance(event, yaml.ScalarEvent):
        stack[-1].add(_whole(event.value), event)
    elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
        stack.append(_Open({} if isinstance(event, yaml.MappingStartEvent) else []))
    elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
        done = stack.pop()
        stack[-1].add(done.whole, event)


class _Open:
    """A list or keys that are being read; the first holds the document under ""."""

    def __init__(self, whole: Any, *, is_top: bool = False) -> None:
        self.whole = whole
        self._key: str | None = "" if is_top else None

    def add(self, value: Any, event: Any) -> None:
        if isinstance(self.whole, list):
            self.whole.append(value)
        elif self._key is not None:
            self.whole[self._key], self._key = value, None
        elif not isinstance(value, str):
            raise UnreadableError(f"Line {_line(event)}: a key is a text.")
        elif value == "<<":
            raise UnreadableError(f"Line {_line(event)}: << (merging) is not read.")
        elif value in self.whole:
            raise UnreadableError(f"Line {_line(event)}: {value[:60]!r} appears twice.")
        else:
            self._key = value


def _whole(text: str) -> str:
    """The text, which can be kept; UnreadableError for half a sign, which only the parser in Python lets through."""
    try:
        return text.encode().decode()
    except UnicodeEncodeError as error:
        raise UnreadableError("The front matter holds half of a sign (a lone surrogate).") from error


def _line(event: Any) -> int:
    """The line in the file: the first is the fence."""
    return int(event.start_mark.line) + 2


def _slip(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"Line {mark.line + 2}, column {mark.column + 1}: " if mark else ""
    said = getattr(error, "problem", "") or getattr(error, "reason", "") or "it cannot be read"
    return f"{where}this is no YAML that can be read ({str(said)[:150]}). Put texts with special signs into quotes."
