"""Reads server-sent events (WHATWG HTML, section 9.2) as model servers write them, which is not always by the book."""

import codecs
from collections.abc import AsyncIterator, Iterator

from cortex.base.errors import ProviderError

MAX_EVENT = 8_000_000  # characters of one event


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, str]]:
    """(kind, data) of each event that carries data, also of a last one that no blank line ends.

    Comments, `id:`, `retry:` and empty data are passed over. ProviderError for an event without end.
    """
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    rest, kind, size = "", "", 0
    data: list[str] = []
    async for piece in pieces:
        *lines, rest = (rest + decode(piece)).replace("\r\n", "\n").split("\n")
        for line in lines:
            name, _, value = line.rstrip("\r").partition(":")
            if name == "data":
                data.append(value.removeprefix(" "))
                size += len(value)
            elif name == "event":
                kind = value.strip()
            elif not line.rstrip("\r"):
                for text in _texts(data):
                    yield kind, text
                kind, size = "", 0
                data.clear()
        if len(rest) + size > MAX_EVENT:
            raise ProviderError("an event of the answer has no end", kind="malformed")
    name, _, value = rest.partition(":")
    for text in _texts([*data, value] if name == "data" else data):
        yield kind, text


def _texts(data: list[str]) -> Iterator[str]:
    """Lines of one event are one text, but for whole objects: who writes those forgot the blank line between them."""
    lines = [line.strip() for line in data if line.strip() and not line.lstrip().startswith(":")]
    if all(line.startswith(("{", "[")) and line.endswith(("}", "]")) for line in lines):
        yield from lines
    elif lines:
        yield "\n".join(lines)
