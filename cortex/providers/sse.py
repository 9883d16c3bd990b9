"""Reads server-sent events (WHATWG HTML, section 9.2) as model servers write them, which is not always by the book."""

import codecs
from collections.abc import AsyncIterator, Iterator

from cortex.base.errors import ProviderError

MAX_EVENT = 8_000_000  # characters of one event
_ENDLESS = "an event of the answer has no end"


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, str]]:
    """(kind, data) of each event that carries data, also of a last one that no blank line ends.

    Comments, `id:`, `retry:` and empty data are passed over. ProviderError for an event without end.
    """
    kind, size = "", 0
    data: list[str] = []
    async for line in _lines(pieces):
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
            size += len(value)
        elif name == "event":
            kind = value.strip()
        elif not line:
            for text in _texts(data):
                yield kind, text
            kind, size = "", 0
            data.clear()
        if size > MAX_EVENT:
            raise ProviderError(_ENDLESS, kind="malformed")
    for text in _texts(data):
        yield kind, text


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The lines, whichever of the three line ends they have, also where a piece ends in the middle of one."""
    decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
    begun: list[str] = []  # a long line is joined once, when it ends
    size = 0
    is_after_return = False
    async for piece in pieces:
        text = decode(piece)
        if is_after_return:
            text = text.removeprefix("\n")
        is_after_return = text.endswith("\r") or (is_after_return and not text)
        *whole, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in whole:
            yield "".join((*begun, line))
            begun.clear()
            size = 0
        begun.append(rest)
        size += len(rest)
        if size > MAX_EVENT:
            raise ProviderError(_ENDLESS, kind="malformed")
    yield "".join(begun)


def _texts(data: list[str]) -> Iterator[str]:
    """Lines of one event are one text, but for whole objects: who writes those forgot the blank line between them."""
    lines = [line.strip() for line in data if line.strip() and not line.lstrip().startswith(":")]
    if all(line.startswith(("{", "[")) and line.endswith(("}", "]")) for line in lines):
        yield from lines
    elif lines:
        yield "\n".join(lines)
