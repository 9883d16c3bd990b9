"""What an MCP tool or resource gives back, as text for a model and files beside it. Pure; capped before it is read."""

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import mcp_types as types

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


@dataclass(frozen=True, slots=True, kw_only=True)
class McpFile:
    """Bytes that came with an answer. `mark` stands in the text where its path belongs."""

    mark: str
    suffix: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class McpResult:
    """The answer of a tool or resource; `is_error`: the tool says of itself that it failed."""

    text: str
    files: tuple[McpFile, ...] = ()
    is_error: bool = False


def answer_of(result: types.CallToolResult) -> McpResult:
    """A tool's result; structured content is told where there is nothing else to read."""
    made = _Parts()
    for block in result.content[:PARTS_MOST]:
        made.block(block)
    has_text = any(isinstance(block, types.TextContent) for block in result.content)
    if result.structured_content is not None and not has_text:
        made.lines.append(json.dumps(result.structured_content, ensure_ascii=False))
    return made.answer(len(result.content) - PARTS_MOST, is_error=result.is_error)


def resource_of(contents: Iterable[Any]) -> McpResult:
    """What was read of a resource."""
    made, parts = _Parts(), list(contents)
    for part in parts[:PARTS_MOST]:
        made.resource(part)
    return made.answer(len(parts) - PARTS_MOST)


class _Parts:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.files: list[McpFile] = []

    def block(self, block: object) -> None:
        """Take one block of a result in."""
        if isinstance(block, types.TextContent):
            self.lines.append(block.text)
        elif isinstance(block, types.ImageContent | types.AudioContent):
            self._file(block.type, block.mime_type, block.data)
        elif isinstance(block, types.EmbeddedResource):
            self.resource(block.resource)
        elif isinstance(block, types.ResourceLink):
            told = " ".join(filter(None, (block.title or block.name, block.description or "")))
            self.lines.append(f"[resource {block.uri}: {told}]")
        else:
            self.lines.append(f"[a part of a kind that is not known: {type(block).__name__}]")

    def resource(self, part: object) -> None:
        """Take the content of a resource in."""
        if isinstance(part, types.TextResourceContents):
            self.lines.append(f"[resource {part.uri}]\n{part.text}")
        elif isinstance(part, types.BlobResourceContents):
            self._file(f"resource {part.uri}", part.mime_type or "", part.blob)

    def _file(self, what: str, mime_type: str, data: str) -> None:
        kind = mime_type.partition(";")[0].strip().lower()
        try:
            raw = base64.b64decode(data, validate=True) if len(data) <= FILE_BYTES * 4 // 3 + 4 else None
        except (binascii.Error, ValueError):
            self.lines.append(f"[{what}: its data cannot be read]")
            return
        if raw is None or len(self.files) >= FILES_MOST:
            self.lines.append(f"[{what}: left out, as more than {FILES_MOST} files or {FILE_BYTES // 1_000_000} MB]")
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
