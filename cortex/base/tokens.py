"""What a text, a schema or a message costs: o200k tokens of the minified JSON that goes over the wire.

Exact for o200k models, a stated yardstick for all others. Loads the vocabulary at the first count, not before.
"""

import json
import math
import threading
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

VOCABULARY_CRC = 0x9D7A720B  # of its table, which changes with its form only
_KEPT_COUNTS = 8_192

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_lock = threading.Lock()
_counter: list[Callable[[str], int]] = []
_counts: OrderedDict[bytes, int] = OrderedDict()


def is_loaded() -> bool:
    """Tell whether the vocabulary is in memory already."""
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
        total = count_once(text)
        _counts[key] = total
        if len(_counts) > _KEPT_COUNTS:
            _counts.popitem(last=False)
    return total


def count_once(text: str) -> int:
    """As `count`, of a text that nobody asks about again: nothing is kept."""
    if not _counter:
        _counter.append(scan.load("cortex.base.vocabulary").count)
    return _counter[0](text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8"))


def minified(value: Any) -> str:
    """JSON without blanks, keys as they stand, non-ASCII kept: how a request's body is counted."""
    return _JSON.encode(value)


def wire_schema(schema: ToolSchema) -> dict[str, Any]:
    """A schema as it stands in a request's `tools` array."""
    function = {"name": schema.name, "description": schema.description, "parameters": schema.parameters}
    return {"type": "function", "function": function}


def count_schema(schema: ToolSchema) -> int:
    """Return what one tool costs in the `tools` array."""
    return count_once(minified(wire_schema(schema)))


def count_message(message: Message) -> int:
    """Return what one message costs, role, calls and pictures included; opaque parts count as their JSON."""
    return count(_wire_message(message)) + sum(map(count_picture, message.pictures))


def count_picture(picture: Picture) -> int:
    """Return what a picture costs: width x height / 750 tokens, by Anthropic's documentation (2026-11).

    OpenAI's models take fewer: 85, and 170 for each tile of 512 pixels once the shorter side is 768.
    """
    return math.ceil(picture.width * picture.height / 750)


def message_bytes(message: Message) -> int:
    """The bytes of the same: never fewer than its tokens, and had without a tokenizer."""
    return len(_wire_message(message).encode("utf-8", "replace")) + sum(map(count_picture, message.pictures))


def count_text_message(speaker: str, text: str) -> int:
    """Return what one message of plain text costs."""
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
