"""The socket for what other programs wrote: archives, exports, YAML, crontabs. None of it is parsed in this process.

Implemented in `integrations/foreign/`, where each reader is a file; whoever asks says in what shape the answer comes.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import BinaryIO, Protocol, TypeVar

from pydantic import BaseModel

from cortex.base.errors import UserError


class NotReadNowError(UserError):
    """It could not be read this time; another try may."""

    status = 503


class BusyReadingError(NotReadNowError):
    """Too many others are read right now; nothing is known of this one."""


Shape = TypeVar("Shape", bound=BaseModel)
Take = Callable[[Shape], Awaitable[None]]


class ForeignReader(Protocol):
    """Reads foreign files in a program of its own, within limits of bytes, memory, seconds and findings."""

    async def read(self, reader: str, file: BinaryIO, shape: type[Shape], take: Take[Shape]) -> None:
        """Hand each finding to `take`, checked by `shape`, one after the other.

        `reader`: a file of `integrations/foreign/readers/`. UserError in a sentence for what cannot be read, whatever
        was taken until then, NotReadNowError where another try may; ToolFailed when nothing can be read here now.
        """
        ...


async def all_of(foreign: ForeignReader, reader: str, file: BinaryIO, shape: type[Shape]) -> Sequence[Shape]:
    """Every finding, together. Raises as `ForeignReader.read`."""
    found: list[Shape] = []

    async def take(one: Shape) -> None:
        found.append(one)

    await foreign.read(reader, file, shape, take)
    return found


class FrontMatters(Protocol):
    """Reads front matters that people wrote in the whole of YAML, each once."""

    async def ready(self, heads: Sequence[str]) -> None:
        """Read these together, as far as they are not known: `keys` then has them at hand."""
        ...

    async def keys(self, head: str) -> Mapping[str, str | tuple[str, ...]]:
        """Its keys with their texts, exactly as YAML has them.

        UserError says where a slip is; ToolFailed when it cannot be read now.
        """
        ...
