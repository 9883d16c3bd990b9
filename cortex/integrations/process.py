"""Runs a program with a time limit and capped output, and never leaves a child of it behind.

No shell, no inherited environment. Isolation is `sandbox.py`'s matter; this is the hand that starts and kills.
"""

import asyncio
import os
import signal
import threading
import time
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from cortex.base.clock import ticks_s
from cortex.base.errors import ToolFailed

CHUNK_BYTES = 65_536
FLOOD_FACTOR = 64
GRACE_S = 2.0
KILL_S = 10.0  # a busy machine takes its time to end what was killed
KILL_AT_ONCE = 1_000
ROUND_S = 0.01

Watch = Callable[[int], Awaitable[str]]


class ProcessResult(Struct, frozen=True, kw_only=True):
    """The end of a program. `code` is negative for a signal; `killed`: why Cortex ended it, "" when it did not."""

    code: int
    out: str
    err: str
    killed: str = ""
    seconds: float = 0.0


class _Capture:
    """The first two thirds and the last third of `limit` bytes; what lies between is counted, not kept."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._head_bytes = limit_bytes * 2 // 3
        self._tail_bytes = limit_bytes - self._head_bytes
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total_bytes = 0

    def add(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail.append(chunk)
            self._tail_size += len(chunk)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_bytes:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        tail = b"".join(self._tail)[-self._tail_bytes :]
        left_out = self.total_bytes - len(self._head) - len(tail)
        middle = f"\n[... {left_out} bytes left out ...]\n".encode() if left_out else b""
        return (bytes(self._head) + middle + tail).decode("utf-8", "replace")


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    output_bytes: int = 65_536,
    watches: Sequence[Watch] = (),
    umask: int = -1,
    handles: Sequence[int] = (),
) -> ProcessResult:
    """Run `argv` and wait; after `timeout_s`, a flood of output, or a word from `watches`, its whole group is killed.

    A watch, given the pid, runs beside the program and returns a reason when it must die. ToolFailed when it cannot
    start. `umask`: of the program; -1 for the one that Cortex was started with. `handles`: descriptors it inherits.
    """
    started_s = ticks_s()
    process = await _start(argv, cwd, env, stderr=PIPE, umask=umask, pass_fds=handles)
    out, err = _Capture(output_bytes), _Capture(output_bytes)
    flood = asyncio.Event()
    helper = asyncio.ensure_future  # noqa: TID251 - `_end` lets every helper go
    pumps = helper(_pump(_feed(process, stdin), _drain(process.stdout, out, flood), _drain(process.stderr, err, flood)))
    waits = [helper(_wait_for_end(process, pumps)), helper(_flooded(flood))]
    waits += [helper(watch(process.pid)) for watch in watches]
    try:
        done, _ = await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        killed = next(iter(done)).result() if done else f"it ran longer than {timeout_s:g} s"
    finally:
        await _end(process, waits, pumps)
    code = process.returncode if process.returncode is not None else -signal.SIGKILL
    return ProcessResult(code=code, out=out.text(), err=err.text(), killed=killed, seconds=ticks_s() - started_s)


async def _start(argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None, **how: Any) -> Process:
    """The program, in a session of its own. `how`: as asyncio takes it. ToolFailed when it cannot start."""
    own: dict[str, Any] = {"cwd": cwd, "env": dict(env or {}), "start_new_session": True, **how}
    try:
        return await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE, **own)
    except OSError as error:
        raise ToolFailed(f"{argv[0]!r} could not be started: {error.strerror or error}.") from error


@asynccontextmanager
async def running(
    argv: Sequence[str],
    *,
    cwd: Path,
    line_bytes: int,
    env: Mapping[str, str] | None = None,
    umask: int = -1,
    handles: Sequence[int] = (),
    is_heard: bool = True,
) -> AsyncIterator[Process]:
    """The program, for as long as the block lasts; then its input is closed, and what still runs of it is killed.

    line_bytes: a longer line of its output cannot be read (`ValueError`). is_heard: its stderr is a pipe that the
    caller reads; else it is ours. ToolFailed when it cannot start.
    """
    stderr = PIPE if is_heard else None
    process = await _start(argv, cwd, env, stderr=stderr, limit=line_bytes, umask=umask, pass_fds=handles)
    try:
        yield process
    finally:
        try:
            if process.stdin is not None:
                process.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    await process.wait()
        finally:  # also when we are cancelled meanwhile
            nothing_to_read: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            nothing_to_read.set_result(None)
            await _end(process, (), nothing_to_read)
            # What nobody read of its output keeps the pipe open; asyncio's process has no way to say so.
            process._transport.close()  # type: ignore[attr-defined]


async def stop(process: Process) -> None:
    """Kill the program and all below it now, whoever still holds it; `running` clears up after it."""
    if process.returncode is None:
        await asyncio.to_thread(kill_below, process.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


async def _wait_for_end(process: Process, pumps: "asyncio.Future[None]") -> str:
    """Wait for the program, then a moment for its last words; a child that keeps the pipe open does not hold us."""
    await process.wait()
    with suppress(TimeoutError):
        async with asyncio.timeout(0.5):
            await asyncio.shield(pumps)
    return ""


async def _pump(*pipes: Coroutine[None, None, None]) -> None:
    await asyncio.gather(*pipes)


async def _flooded(flood: asyncio.Event) -> str:
    await flood.wait()
    return "it wrote far more output than is kept"


async def _end(process: Process, waits: "Sequence[asyncio.Future[str]]", pumps: "asyncio.Future[None]") -> None:
    """Kill the tree, whatever state it is in, and let every helper of this run go."""
    try:
        if process.returncode is None:
            await asyncio.to_thread(kill_below, process.pid)
    finally:  # also when we are cancelled once more
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # not process.kill(): it would reap beside asyncio's own watcher
    for waiting in waits:
        waiting.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    with suppress(TimeoutError):  # the pipes are read to their end, so that their transports close
        async with asyncio.timeout(GRACE_S):
            await asyncio.gather(pumps, process.wait(), return_exceptions=True)


def can_count() -> bool:
    """Tell whether this kernel tells a process's children (CONFIG_PROC_CHILDREN); without it no tree can be held."""
    return os.path.exists(f"/proc/self/task/{threading.get_native_id()}/children")


def children_of(pid: int) -> list[int]:
    """The processes that `pid` has started and that live now."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def tree_of(root: int, most: int) -> list[int]:
    """`root` and the processes below it, nearest first; past `most` it looks no further: a tree may outgrow us."""
    found = [root]
    for pid in found:  # it grows as we go
        found += children_of(pid)
        if len(found) > most:
            break
    return found


def kill_below(root: int) -> None:
    """Kill what stands below `root` until nothing does; a group kill misses children that left the group.

    `root` is stopped, so that it starts nothing meanwhile; killing it is the caller's. Its own children go first,
    before it is asked what lives: one of them is the init of a PID namespace, and the kernel ends all of that at once,
    however fast it multiplies (pid_namespaces(7)). What stands below them was listed before: `root` adopts it only
    where it has asked for that (`landlock.py`). A look that finds only ended ones is not the last: one that ended
    while we looked has handed its children to `root`, whose own we had read before.
    """
    _send([root], signal.SIGSTOP)
    _send(tree_of(root, KILL_AT_ONCE)[1:], signal.SIGKILL)
    ended: set[int] = set()
    until_s = ticks_s() + KILL_S
    while ticks_s() < until_s:
        tree = tree_of(root, KILL_AT_ONCE)[1:]
        below = [pid for pid in tree if _lives(pid)]
        if not below and ended.issuperset(tree):
            return
        ended = set(tree).difference(below)
        _send(below, signal.SIGSTOP)
        _send(below, signal.SIGKILL)
        time.sleep(ROUND_S)


def _lives(pid: int) -> bool:
    """Tell whether it has not ended; one that only waits to be reaped has."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def _send(pids: Sequence[int], sign: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, sign)


async def _feed(process: Process, data: bytes) -> None:
    if process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _drain(stream: asyncio.StreamReader | None, capture: _Capture, flood: asyncio.Event) -> None:
    while stream is not None and (chunk := await stream.read(CHUNK_BYTES)):
        capture.add(chunk)
        if capture.total_bytes > capture.limit_bytes * FLOOD_FACTOR:
            flood.set()
