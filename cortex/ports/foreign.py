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


Shape = TypeVar("Shape", bound=BaseModel)


class ForeignReader(Protocol):
    """Reads foreign files in a program of its own, within limits of bytes, memory, seconds and findings."""

    async def read(
        self,
        reader: str,
        file: BinaryIO,
        shape: type[Shape],
        take: Callable[[Shape], Awaitable[None]],
        *,
        name: str = "",
    ) -> None:
        """Hand each finding to `take`, checked by `shape`, one after the other.

        `reader`: a file of `integrations/foreign/readers/`. `name`: what the file is called. UserError in a sentence
        for what cannot be read, whatever was taken until then, NotReadNowError where another try may; ToolFailed when
        nothing can be read here now.
        """
        ...


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
