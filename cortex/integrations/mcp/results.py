"""What an MCP tool or resource gives back, as text for a model and files beside it. Pure; capped before it is read.

Read as it came, part by part: one that is not as the protocol says does not cost the others.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cortex.base.errors import ToolFailed

FILE_BYTES = 5_000_000
FILES_MOST = 10
TEXT_CHARACTERS = 200_000
PARTS_MOST = 200
SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "application/pdf": ".pdf",
    "application/zip": ".zip",
}
_BASE64 = str.maketrans("-_", "+/", " \r\n\t=")  # of any kind, as the one that is read


class McpFile(Struct, frozen=True, kw_only=True):
    """Bytes that came with an answer. `mark` stands in the text where its path belongs."""

    mark: str
    suffix: str
    data: bytes


class McpResult(Struct, frozen=True, kw_only=True):
    """The answer of a tool or resource; `is_error`: the tool says of itself that it failed."""

    text: str
    files: tuple[McpFile, ...] = ()
    is_error: bool = False


def answer_of(result: Mapping[str, Any]) -> McpResult:
    """A tool's result; structured content is told where there is nothing else to read.

    ToolFailed for what is none, or none yet, as the tool asks for something first.
    """
    if result.get("resultType") == "input_required":
        raise ToolFailed("The tool asks for something before it goes on, which cannot be given here.", is_tainted=True)
    made, parts = _Parts(), _listed(result.get("content"))
    for part in parts[:PARTS_MOST]:
        made.block(part)
    structured = result.get("structuredContent")
    if structured is not None and not made.has_text:
        made.lines.append(_json(structured))
    return made.answer(len(parts) - PARTS_MOST, is_error=result.get("isError") in (True, "true"))


def resource_of(result: Mapping[str, Any]) -> McpResult:
    """Return what was read of a resource. ToolFailed for what is none."""
    made, parts = _Parts(), _listed(result.get("contents"))
    for part in parts[:PARTS_MOST]:
        made.resource(part)
    return made.answer(len(parts) - PARTS_MOST)


def _listed(given: object) -> list[Any]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise ToolFailed("The MCP server answered in a way that the protocol does not know.", is_unknown=True)
    return given


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


class _Parts:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.files: list[McpFile] = []
        self.has_text = False

    def block(self, block: Any) -> None:  # Any: a JSON value
        """Take one block of a result in."""
        match block:
            case {"type": "text", "text": str(text)}:
                self.has_text = True
                self.lines.append(text)
            case {"type": "image" | "audio" as kind, "data": str(data)}:
                self._file(kind, block.get("mimeType"), data)
            case {"type": "resource", "resource": resource}:
                self.resource(resource)
            case {"type": "resource_link", "uri": uri}:
                told = " ".join(str(block[key]) for key in ("title", "name", "description") if block.get(key))
                self.lines.append(f"[resource {uri}: {told}]")
            case _:
                self.lines.append(f"[a part of a kind that is not known: {_json(block)[:200]}]")

    def resource(self, part: Any) -> None:  # Any: a JSON value
        """Take the content of a resource in."""
        match part:
            case {"text": str(text)}:
                self.lines.append(f"[resource {part.get('uri', '')}]\n{text}")
            case {"blob": str(blob)}:
                self._file(f"resource {part.get('uri', '')}", part.get("mimeType"), blob)
            case _:
                self.lines.append(f"[a resource of a kind that is not known: {_json(part)[:200]}]")

    def _file(self, what: str, mime_type: object, data: str) -> None:
        kind = mime_type.partition(";")[0].strip().lower() if isinstance(mime_type, str) else ""
        if len(data) > FILE_BYTES * 4 // 3 + 4 or len(self.files) >= FILES_MOST:
            self.lines.append(f"[{what}: left out, as more than {FILES_MOST} files or {FILE_BYTES // 1_000_000} MB]")
            return
        plain = (data.partition(",")[2] if data.startswith("data:") else data).translate(_BASE64)
        try:
            raw = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        except (binascii.Error, ValueError):
            self.lines.append(f"[{what}: its data cannot be read]")
            return
        mark = f"\0{len(self.files)}\0"
        self.files.append(McpFile(mark=mark, suffix=SUFFIXES.get(kind, ".bin"), data=raw))
        self.lines.append(f"[{what}, {kind or 'of no known kind'}, {len(raw):,} bytes, kept as {mark}]")

    def answer(self, left_out: int, *, is_error: bool = False) -> McpResult:
        """All of it."""
        if left_out > 0:
            self.lines.append(f"[{left_out:,} more parts were left out]")
        text = "\n".join(self.lines)
        if len(text) > TEXT_CHARACTERS:
            text = f"{text[:TEXT_CHARACTERS]}\n[{len(text) - TEXT_CHARACTERS:,} more characters were left out]"
        return McpResult(text=text or "(nothing)", files=tuple(self.files), is_error=is_error)
