"""What a text, a schema or a message costs: o200k tokens of the minified JSON that goes over the wire.

Exact for o200k models, a stated yardstick for all others. Loads the vocabulary at the first count, not before.
"""

import json
import math
import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, assert_never

from cortex.base import scan
from cortex.base.messages import (
    Message,
    Opaque,
    Part,
    Picture,
    Reveal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSchema,
)

LONG_WORD_BYTES = 1_000
_SAMPLE = 256
_KEPT_COUNTS = 8_192
# A cheap sieve: only a run this long, of one broad class, can hold a word of 1,000 bytes (4 bytes a character).
_SUSPECT = re.compile(r"[^\W\d_]{250}|\s{250}|(?:[^\w\s]|_){250}|[^\x00-\x7f]{250}")

_lock = threading.Lock()
_counter: list[Callable[[str], int]] = []
_counts: OrderedDict[bytes, int] = OrderedDict()


def is_loaded() -> bool:
    """Whether the vocabulary is in memory already."""
    return bool(_counter)


def count(text: str) -> int:
    """The o200k tokens of a text; a single word over 1,000 bytes is estimated from its beginning."""
    if not text:
        return 0
    raw = text.encode("utf-8", "surrogatepass")
    key = blake2b(raw, digest_size=16).digest()
    with _lock:
        known = _counts.get(key)
        if known is not None:
            _counts.move_to_end(key)
            return known
        total = _count_safely(text.encode("utf-8", "replace").decode("utf-8"))
        _counts[key] = total
        if len(_counts) > _KEPT_COUNTS:
            _counts.popitem(last=False)
    return total


def minified(value: Any) -> str:
    """JSON without blanks, keys as they stand, non-ASCII kept: how a request's body is counted."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def wire_schema(schema: ToolSchema) -> dict[str, Any]:
    """A schema as it stands in a request's `tools` array."""
    function = {"name": schema.name, "description": schema.description, "parameters": schema.parameters}
    return {"type": "function", "function": function}


def count_schema(schema: ToolSchema) -> int:
    """What one tool costs in the `tools` array."""
    return count(minified(wire_schema(schema)))


def count_message(message: Message) -> int:
    """What one message costs, role, calls and pictures included; opaque parts count as their JSON."""
    return count(_wire_message(message)) + sum(map(count_picture, message.pictures))


def count_picture(picture: Picture) -> int:
    """What a picture costs: width x height / 750 tokens, by Anthropic's documentation (2026-11).

    OpenAI's models take fewer: 85, and 170 for each tile of 512 pixels once the shorter side is 768.
    """
    return math.ceil(picture.width * picture.height / 750)


def message_bytes(message: Message) -> int:
    """The bytes of the same: never fewer than its tokens, and had without a tokenizer."""
    return len(_wire_message(message).encode("utf-8", "replace")) + sum(map(count_picture, message.pictures))


def count_text_message(speaker: str, text: str) -> int:
    """What one message of plain text costs."""
    return count(minified({"role": speaker, "content": text}))


def _wire_message(message: Message) -> str:
    return minified({"role": message.speaker, "content": [_wire_part(part) for part in message.parts]})


def _wire_part(part: Part) -> Any:
    match part:
        case Text() | Thinking():
            return part.text
        case Picture():
            return {"picture": part.name}
        case ToolCall():
            return {"id": part.id, "name": part.name, "arguments": part.arguments}
        case ToolResult():
            return {"tool_call_id": part.call_id, "content": part.text}
        case Opaque():
            return part.data
        case Reveal():
            return list(part.names)
        case _:
            assert_never(part)


def _count_safely(text: str) -> int:
    if not _counter:
        _counter.append(scan.load("cortex.base.vocabulary").count)
    tokens = _counter[0]
    if len(text) < _SAMPLE or _SUSPECT.search(text) is None:
        return tokens(text)
    total, kept = 0, []
    for run in _runs(text):
        size_bytes = len(run.encode())
        if size_bytes <= LONG_WORD_BYTES:
            kept.append(run)
            continue
        total += tokens("".join(kept))
        kept = []
        sample = run[:_SAMPLE]
        total += round(tokens(sample) * size_bytes / len(sample.encode()))
    return total + tokens("".join(kept))


def _runs(text: str) -> list[str]:
    """The text cut where the class of its characters changes: no token spans more than one such run and a blank."""
    runs: list[str] = []
    start, before = 0, ""
    for at, character in enumerate(text):
        kind = unicodedata.category(character)[0]
        kind = "L" if kind == "M" else "Z" if character.isspace() else "P" if kind in "SC" else kind
        if kind != before and at:
            runs.append(text[start:at])
            start = at
        before = kind
    runs.append(text[start:])
    return runs
