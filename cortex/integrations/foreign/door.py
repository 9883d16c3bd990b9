"""The daemon's side of `program.py`: starts it in the sandbox where there is one, and checks each line of its answers.

The one door for foreign formats. A session keeps the program while there is work, so that a thousand files do not
start it a thousand times; none runs while there is none. Knows no person and no table.
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

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

import cortex
from cortex.base.errors import UserError
from cortex.integrations.foreign.limits import LINE_BYTES, SHARES
from cortex.integrations.foreign.program import END, FAULT, ITEM, MORE, TOO_LONG
from cortex.integrations.process import running
from cortex.integrations.quota import MB
from cortex.integrations.sandbox import Limits, Sandbox
from cortex.ports.foreign import BusyReadingError, NotReadNowError, Shape, Take

SYSTEM = Path("/usr")
ROOT = Path(cortex.__file__).parents[1]
START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from cortex.integrations.foreign import program; "
    "program.main(is_boxed=sys.argv[2] == 'boxed')"
)
CHUNK_BYTES = 262_144
LONG_BYTES = 100_000  # a line that is looked at beside the event loop
AT_ONCE = 2  # files that are read for pages and tools; the reading of documents has its own two
PATIENCE_S = 60.0
MORE_S = 20.0  # for the program's start, and until it ends what took too long by itself
LIMITS = Limits(
    timeout_s=max(share.wall_s for share in SHARES.values()) + MORE_S,
    cpu_s=max(share.processor_s for share in SHARES.values()) + 20,
    memory_bytes=1_200 * MB,
    address_bytes=1_500 * MB,
    processes=8,
    file_bytes=0,
    temporary_bytes=MB,
)
TOO_LARGE = "This file is larger than {most} MB, which is the most that is read."
FAILED = "This file could not be read."
BUSY = "Other files are being read right now. Try again in a minute."

log = logging.getLogger(__name__)
_FAULT: TypeAdapter[str] = TypeAdapter(str)


class _End(BaseModel):
    """The end of an answer, as the program says that relays it: it stands in the same box as what it relays."""

    model_config = ConfigDict(strict=True, extra="forbid")
    why: str = Field(default="", max_length=500)
    processor_s: float = Field(default=0.0, ge=0, le=10_000)


class ForeignFiles:
    """Implements the port `ForeignReader`. `is_boxed`: whether the sandbox works on this machine."""

    def __init__(self, sandbox: Sandbox, *, is_boxed: bool, limits: Limits = LIMITS) -> None:
        self._sandbox = sandbox
        self._is_boxed = is_boxed
        self._limits = limits
        self._room = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def session(self) -> AsyncIterator["ForeignSession"]:
        """Read several files, one after the other; the program starts with the first and ends with the block."""
        session = ForeignSession(self._program, self._limits.timeout_s)
        try:
            yield session
        finally:
            await session.close()

    async def read(self, reader: str, file: BinaryIO, shape: type[Shape], take: Take[Shape]) -> None:
        """As the port says, by a program of its own. UserError also where too many are read at once."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._room.acquire()
        except TimeoutError as error:
            raise BusyReadingError(BUSY) from error
        try:
            async with self.session() as session:
                await session.read(reader, file, shape, take)
        finally:
            self._room.release()

    async def _program(self, stack: AsyncExitStack) -> "_Program":
        argv = [sys.executable, "-I", "-c", START, str(ROOT), "boxed" if self._is_boxed else "open"]
        if not self._is_boxed:
            process = await stack.enter_async_context(running(argv, cwd=SYSTEM, line_bytes=LINE_BYTES + 1_000))
            return _Program(process, None)
        service = self._sandbox.service(
            argv,
            workspace=SYSTEM,
            is_writable=False,
            limits=self._limits,
            line_bytes=LINE_BYTES + 1_000,
            readable=(Path(sys.prefix), Path(sys.base_prefix), *(Path(place) for place in cortex.__path__)),
        )
        made = await stack.enter_async_context(service)
        return _Program(made.process, made.excess)


class _Program:
    """The program as it runs. `excess` waits until it takes more than it may, and says so."""

    def __init__(self, process: asyncio.subprocess.Process, excess: Callable[[], Awaitable[str]] | None) -> None:
        self._process = process
        self._excess = excess

    async def within_limits(self, work: Awaitable[_End], timeout_s: float) -> _End:
        """Return what `work` gives. EOFError when the program takes more than it may meanwhile; TimeoutError."""
        working = asyncio.ensure_future(work)  # noqa: TID251 - ended right below
        both: list[asyncio.Future[_End]] = [working]
        if self._excess is not None:
            both.append(asyncio.ensure_future(self._exceeded()))  # noqa: TID251 - as above
        try:
            done, _ = await asyncio.wait(both, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise TimeoutError
            return (working if working in done else done.pop()).result()
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def send(self, order: dict[str, object], file: BinaryIO, size_bytes: int) -> None:
        """Give it a file to read. EOFError, OSError when it has ended, or the file has become shorter."""
        target = self._process.stdin
        if target is None:
            raise EOFError
        target.write(json.dumps({**order, "size_bytes": size_bytes}).encode() + b"\n")
        left = size_bytes
        while left:
            chunk = await asyncio.to_thread(file.read, min(CHUNK_BYTES, left))
            if not chunk:
                raise EOFError("the file became shorter while it was read")
            left -= len(chunk)
            target.write(chunk)
            await target.drain()

    async def line(self) -> bytes:
        """The next line of its answer, without the end. EOFError when it ended instead, ValueError for a long one."""
        source = self._process.stdout
        line = b"" if source is None else await source.readline()
        if not line.endswith(b"\n"):
            raise EOFError("the program ended")
        return line[:-1]

    async def _exceeded(self) -> _End:
        raise EOFError(await self._excess() if self._excess else "")


class ForeignSession:
    """Reads one file after the other. Behind one that ended the program, the next starts it anew."""

    def __init__(self, start: Callable[[AsyncExitStack], Awaitable[_Program]], timeout_s: float) -> None:
        self._start = start
        self._timeout_s = timeout_s
        self._stack = AsyncExitStack()
        self._program: _Program | None = None

    async def read(
        self, reader: str, file: BinaryIO, shape: type[Shape], take: Take[Shape], *, name: str = ""
    ) -> float:
        """As the port says; the seconds of processor that it took. `name`: what the file is called.

        What `take` raises is raised.
        """
        size_bytes = await asyncio.to_thread(file.seek, 0, os.SEEK_END)
        await asyncio.to_thread(file.seek, 0)
        most_bytes = SHARES[reader].file_bytes
        if size_bytes > most_bytes:
            raise UserError(TOO_LARGE.format(most=most_bytes // MB))
        if self._program is None:
            self._program = await self._start(self._stack)
        program, is_whole = self._program, False

        async def work() -> _End:
            order: dict[str, object] = {"reader": reader, "name": name}
            await program.send(order, file, size_bytes)
            return await _answered(program, shape, take)

        try:
            ended = await program.within_limits(work(), min(self._timeout_s, SHARES[reader].wall_s + MORE_S))
            is_whole = True
        except TimeoutError as error:
            raise UserError(TOO_LONG) from error
        except (EOFError, ConnectionError, ValueError) as error:  # other OSErrors are of our own disk
            log.info("reading a foreign file failed: %s", type(error).__name__)
            raise NotReadNowError(FAILED) from error
        finally:  # also when we are cancelled: it would answer what nobody asks any more
            if not is_whole:
                await self.close()
        if ended.why:
            raise UserError(ended.why)
        return ended.processor_s

    async def close(self) -> None:
        """End the program."""
        self._program = None
        await self._stack.aclose()


async def _answered(program: _Program, shape: type[Shape], take: Take[Shape]) -> _End:
    """Take each finding up to the end. What the file's own fork says of it is heard to the end too, then told."""
    fault = ""
    while True:
        line = await program.line()
        if line.startswith(END):
            ended = _End.model_validate_json(line[1:])
            return ended.model_copy(update={"why": fault}) if fault and not ended.why else ended
        if line.startswith(MORE + FAULT):
            fault = _FAULT.validate_json(line[2:], strict=True)[:500] or FAILED
        elif line.startswith(MORE + ITEM):
            if not fault:
                await take(await _checked(shape, line[2:]))
        else:
            raise ValueError("an answer in no form of ours")


async def _checked(shape: type[Shape], line: bytes) -> Shape:
    if len(line) < LONG_BYTES:
        return shape.model_validate_json(line, strict=True)
    return await asyncio.to_thread(shape.model_validate_json, line, strict=True)
