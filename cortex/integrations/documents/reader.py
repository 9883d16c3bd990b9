"""Has documents read by `program.py`, in the sandbox where there is one. Knows no person and no table.

A session keeps that program while there is work, so that a thousand documents do not start it a thousand times.
"""

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, Field

import cortex
from cortex.integrations.process import running
from cortex.integrations.quota import MB
from cortex.integrations.sandbox import Limits, Sandbox
from cortex.ports.documents import Extracted, PageText

SYSTEM = Path("/usr")
ROOT = Path(cortex.__file__).parents[1]
START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from cortex.integrations.documents import program; "
    "program.main(is_boxed=sys.argv[2] == 'boxed')"
)
FILE_BYTES = 50 * MB
CHUNK_BYTES = 262_144
LINE_BYTES = 48_000_000  # three bytes a character, of more than a document may have
TIMEOUT_S = 60.0
LIMITS = Limits(
    timeout_s=TIMEOUT_S,
    cpu_s=60,
    memory_bytes=1_200 * MB,
    address_bytes=1_500 * MB,
    processes=8,
    file_bytes=0,
    temporary_bytes=MB,
)
TOO_LARGE = f"This file is larger than {FILE_BYTES // MB} MB, which is the most that is read."
FAILED = "This file could not be read."
TOO_LONG = "Reading this file took too long and was stopped."

log = logging.getLogger(__name__)


class _Answer(BaseModel):
    """What the program says: it read hostile bytes, so nothing of it is believed before it is looked at."""

    model_config = ConfigDict(strict=True, extra="forbid")
    pages: list[tuple[str, str]] = Field(default=[], max_length=4_000)
    outline: list[str] = Field(default=[], max_length=500)
    note: str = Field(default="", max_length=500)
    is_paged: bool = False
    processor_s: float = 0.0


class DocumentReader:
    """Implements the port `Extractor`. `is_boxed`: whether the sandbox works on this machine."""

    def __init__(self, sandbox: Sandbox, *, is_boxed: bool, limits: Limits = LIMITS) -> None:
        self._sandbox = sandbox
        self._is_boxed = is_boxed
        self._limits = limits

    @asynccontextmanager
    async def session(self) -> AsyncIterator["ReadingSession"]:
        """Read several documents, one after the other; the program starts with the first and ends with the block."""
        session = ReadingSession(self._program, self._limits.timeout_s)
        try:
            yield session
        finally:
            await session.close()

    async def extract(self, file: BinaryIO, name: str) -> Extracted:
        """The text of this one file; what a file holds raises nothing, `note` says it."""
        async with self.session() as session:
            return await session.extract(file, name)

    async def _program(self, stack: AsyncExitStack) -> "_Program":
        argv = [sys.executable, "-I", "-c", START, str(ROOT), "boxed" if self._is_boxed else "open"]
        if not self._is_boxed:
            process = await stack.enter_async_context(running(argv, cwd=SYSTEM, line_bytes=LINE_BYTES))
            return _Program(process, None)
        service = self._sandbox.service(
            argv,
            workspace=SYSTEM,
            is_writable=False,
            limits=self._limits,
            env={},
            line_bytes=LINE_BYTES,
            readable=(Path(sys.prefix), Path(sys.base_prefix), *(Path(place) for place in cortex.__path__)),
        )
        made = await stack.enter_async_context(service)
        return _Program(made.process, made.excess)


class _Program:
    """The program as it runs. `excess` waits until it takes more than it may, and says so."""

    def __init__(self, process: asyncio.subprocess.Process, excess: Callable[[], Awaitable[str]] | None) -> None:
        self._process = process
        self._excess = excess

    async def ask(self, file: BinaryIO, name: str, size_bytes: int, timeout_s: float) -> bytes:
        """Its answer, a line. EOFError when it ended instead or takes too much; TimeoutError, OSError, ValueError."""
        asking = asyncio.ensure_future(self._ask(file, name, size_bytes))  # noqa: TID251 - ended right below
        both = [asking]
        if self._excess is not None:
            both.append(asyncio.ensure_future(self._exceeded()))  # noqa: TID251 - as above
        try:
            done, _ = await asyncio.wait(both, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise TimeoutError
            return done.pop().result()
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _ask(self, file: BinaryIO, name: str, size_bytes: int) -> bytes:
        source, target = self._process.stdout, self._process.stdin
        if source is None or target is None:
            raise EOFError
        target.write(json.dumps({"name": name, "size_bytes": size_bytes}).encode() + b"\n")
        left = size_bytes
        while left:
            chunk = await asyncio.to_thread(file.read, min(CHUNK_BYTES, left))
            if not chunk:
                raise EOFError("the file became shorter while it was read")
            left -= len(chunk)
            target.write(chunk)
            await target.drain()
        line = await source.readline()
        if not line.endswith(b"\n"):
            raise EOFError("the program ended")
        return line

    async def _exceeded(self) -> bytes:
        raise EOFError(await self._excess() if self._excess else "")


class ReadingSession:
    """Reads one document after the other. Behind one that ended the program, the next starts it anew."""

    def __init__(self, start: Callable[[AsyncExitStack], Awaitable[_Program]], timeout_s: float) -> None:
        self._start = start
        self._timeout_s = timeout_s
        self._stack = AsyncExitStack()
        self._program: _Program | None = None

    async def extract(self, file: BinaryIO, name: str) -> Extracted:
        """The text; what a file holds raises nothing, `note` says it. ToolFailed when the program cannot start."""
        size_bytes = await asyncio.to_thread(file.seek, 0, os.SEEK_END)
        await asyncio.to_thread(file.seek, 0)
        if size_bytes > FILE_BYTES:
            return Extracted(note=TOO_LARGE)
        if self._program is None:
            self._program = await self._start(self._stack)
        found, is_whole = Extracted(note=FAILED), False
        try:
            line = await self._program.ask(file, name, size_bytes, self._timeout_s)
            found, is_whole = await asyncio.to_thread(_extracted, line), True
        except TimeoutError:
            found = Extracted(note=TOO_LONG)
        except (EOFError, OSError, ValueError) as error:
            log.info("reading a document failed: %s", type(error).__name__)
        finally:  # also when we are cancelled: it would answer what nobody asks any more
            if not is_whole:
                await self.close()
        return found

    async def close(self) -> None:
        """End the program."""
        self._program = None
        await self._stack.aclose()


def _extracted(line: bytes) -> Extracted:
    answer = _Answer.model_validate_json(line)
    pages = tuple(
        PageText(number=number, title=title, text=text) for number, (title, text) in enumerate(answer.pages, start=1)
    )
    return Extracted(
        pages=pages,
        outline=tuple(answer.outline),
        note=answer.note,
        is_paged=answer.is_paged,
        processor_s=answer.processor_s,
    )
