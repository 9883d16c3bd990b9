"""A wire between browser and daemon that can be cut: the connections end without a word, then nobody answers."""

import asyncio
import threading
from pathlib import Path
from typing import Self

from tests import loops
from tests.patience import PATIENCE_S
from tests.ports import port_for

ROUNDS = 10  # of the loop: what it accepted just now is a line that can be cut after three or four


class Proxy:
    """Forwards a port of its own to the target, in a thread of its own. `cut` and `mend` the line."""

    def __init__(self, target: int | Path) -> None:
        """`target`: the port of a daemon, or the socket that a database listens on."""
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._workers: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self.port = port_for(self)

    @property
    def origin(self) -> str:
        """Where the page is, by way of this wire."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        self._loop.run_forever()
        loops.close(self._loop)

    def cut(self) -> None:
        """Reset every connection and stop listening."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(PATIENCE_S)

    def mend(self) -> None:
        """Listen again, on the same port."""
        asyncio.run_coroutine_threadsafe(self._mend(), self._loop).result(PATIENCE_S)

    async def _mend(self) -> None:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", self.port)

    async def _cut(self) -> None:
        if self._server is not None:
            # A server that is closed while it accepts leaves that line open: let it accept no more, then finish.
            for listening in self._server.sockets:
                self._loop.remove_reader(listening.fileno())
            for _ in range(ROUNDS):
                await asyncio.sleep(0)
            self._server.close()
        for writer in self._open:
            writer.transport.abort()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, Path):
            return await asyncio.open_unix_connection(self._target)
        return await asyncio.open_connection("127.0.0.1", self._target)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        worker = asyncio.current_task()
        assert worker is not None
        self._workers.add(worker)
        self._open.add(writer)
        try:
            there, back = await self._reach()
            self._open.add(back)
            try:
                async with asyncio.TaskGroup() as ways:  # one that fails ends the other: nobody else holds its line
                    ways.create_task(_pour(reader, back))
                    ways.create_task(_pour(there, writer))
            except BaseException:
                back.transport.abort()
                raise
            finally:
                self._open.discard(back)
        except (ConnectionError, asyncio.CancelledError, ExceptionGroup):
            writer.transport.abort()
        finally:
            self._workers.discard(worker)
            self._open.discard(writer)


async def _pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Everything that comes, until one side ends."""
    try:
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
    finally:
        sink.close()
