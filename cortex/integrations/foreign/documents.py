"""Has documents read by the program for foreign files, and puts their pages together. Knows no person and no table."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, Field

from cortex.base.errors import UserError
from cortex.integrations.foreign.door import FAILED, ForeignFiles, ForeignSession
from cortex.integrations.foreign.door import LIMITS as LIMITS
from cortex.integrations.sandbox import Limits, Sandbox
from cortex.ports.documents import Extracted, PageText


class _Line(BaseModel):
    """A line of the program: a page, or at the end what there is to say of the whole."""

    model_config = ConfigDict(strict=True, extra="forbid")
    title: str = Field(default="", max_length=1_000)
    text: str = ""
    outline: list[str] = Field(default=[], max_length=500)
    note: str = Field(default="", max_length=500)
    is_paged: bool = False
    is_end: bool = False


class DocumentReader:
    """Implements the port `Extractor`. `is_boxed`: whether the sandbox works on this machine."""

    def __init__(self, sandbox: Sandbox, *, is_boxed: bool, limits: Limits = LIMITS) -> None:
        self._files = ForeignFiles(sandbox, is_boxed=is_boxed, limits=limits)

    @asynccontextmanager
    async def session(self) -> AsyncIterator["ReadingSession"]:
        """Read several documents, one after the other; the program starts with the first and ends with the block."""
        async with self._files.session() as session:
            yield ReadingSession(session)


class ReadingSession:
    """Reads one document after the other. Behind one that ended the program, the next starts it anew."""

    def __init__(self, session: ForeignSession) -> None:
        self._session = session

    async def extract(self, file: BinaryIO, name: str) -> Extracted:
        """The text; what a file holds raises nothing, `note` says it. ToolFailed when the program cannot start."""
        pages: list[PageText] = []
        ends: list[_Line] = []

        async def take(line: _Line) -> None:
            if line.is_end:
                ends.append(line)
            else:
                pages.append(PageText(number=len(pages) + 1, title=line.title, text=line.text))

        try:
            processor_s = await self._session.read("document", file, _Line, take, name=name)
        except UserError as error:
            return Extracted(note=error.message)
        except OSError:
            return Extracted(note=FAILED)
        last = ends[-1] if ends else _Line()
        return Extracted(
            pages=tuple(pages),
            outline=tuple(last.outline),
            note=last.note,
            is_paged=last.is_paged,
            processor_s=processor_s,
        )
