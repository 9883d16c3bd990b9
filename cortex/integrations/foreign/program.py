"""Reads foreign files in a process of its own: orders on its input, answers on its output.

An order is a line of JSON and the bytes of the file. The answer is lines that begin with `+`, as the reader gave them,
then one that begins with `.` and says how it ended. Each file is read by a fork with limits of its own, so that none
meets another and a crash ends one answer alone. `door.py` starts it, in the sandbox where there is one.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from msgspec import Struct

from cortex.base import scan
from cortex.base.clock import ticks_s
from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.limits import LINE_BYTES, SHARES, Share

ADDRESS_BYTES = 1_000_000_000
PIPE_BYTES = 1_048_576
NOT_DUMPABLE = 4  # PR_SET_DUMPABLE: a fork must not reach into us by /proc
ITEM, FAULT, MORE, END = b"i", b"w", b"+", b"."
TOO_LONG = "Reading this file took too long and was stopped."
TOO_LARGE = "This file needs too much memory to be read."
BROKEN = "This file is damaged or too complex to be read."

Emit = Callable[[dict[str, Any]], None]


class Source(Struct, frozen=True, kw_only=True):
    """The file as it came. `is_boxed`: whether we are shut in; without, no native parser is run."""

    data: bytes
    name: str
    is_boxed: bool


def main(*, is_boxed: bool) -> None:
    """Answer orders until the input ends."""
    ctypes.CDLL(None).prctl(NOT_DUMPABLE, 0, 0, 0, 0)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while line := source.readline():
        order = json.loads(line)
        file = Source(data=source.read(order["size_bytes"]), name=order["name"], is_boxed=is_boxed)
        ended = _answer(order["reader"], file, target)
        target.write(END + json.dumps(ended).encode() + b"\n")
        target.flush()


def _answer(name: str, file: Source, target: BinaryIO) -> dict[str, Any]:
    reader, share = scan.load(f"cortex.integrations.foreign.readers.{name}"), SHARES[name]
    try:
        if hasattr(reader, "ready"):
            reader.ready(file)
    except UnreadableError as error:
        return {"why": str(error)}
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            _shut(writing, share)
            _read(reader, file, writing)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    return _relayed(pid, reading, share, target)


def _shut(writing: int, share: Share) -> None:
    """Lay the limits on this fork, and leave it nothing open but its pipe."""
    for limit, most in ((resource.RLIMIT_CPU, share.processor_s), (resource.RLIMIT_AS, ADDRESS_BYTES)):
        resource.setrlimit(limit, (most, most))
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (0, 0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(nothing, handle)
    os.closerange(3, writing)
    os.closerange(writing + 1, 256)


def _read(reader: Any, file: Source, writing: int) -> None:  # Any: a module
    def emit(item: dict[str, Any]) -> None:
        _write(writing, ITEM, item)

    try:
        reader.read(file, emit)
    except UnreadableError as error:
        _write(writing, FAULT, str(error))
    except RecursionError:
        _write(writing, FAULT, BROKEN)
    except MemoryError:
        _write(writing, FAULT, TOO_LARGE)


def _write(handle: int, mark: bytes, value: Any) -> None:  # Any: what JSON can say
    left = memoryview(mark + json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    while left:
        left = left[os.write(handle, left) :]


def _relayed(pid: int, reading: int, share: Share, target: BinaryIO) -> dict[str, Any]:
    """Hand on what the fork writes, a whole line at a time; in words how it ended. It is gone behind this."""
    held, why, end_s, lines, total_bytes = bytearray(), "", ticks_s() + share.wall_s, 0, 0
    while not why:
        if not select.select([reading], [], [], max(end_s - ticks_s(), 0))[0]:
            why = TOO_LONG
        elif chunk := os.read(reading, PIPE_BYTES):
            held += chunk
            total_bytes += len(chunk)
            *whole, rest = held.split(b"\n") if b"\n" in chunk else [held]
            held = bytearray(rest)
            lines += len(whole)
            if len(held) > LINE_BYTES or total_bytes > share.total_bytes or lines > share.lines:
                why = TOO_LARGE
            else:
                target.writelines(MORE + line + b"\n" for line in whole)
        else:
            break
    if why:
        os.kill(pid, signal.SIGKILL)
    os.close(reading)
    _, status, used = os.wait4(pid, 0)
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if not why and ended_by in (signal.SIGXCPU, signal.SIGKILL):
        why = TOO_LONG
    return {"why": why or (BROKEN if status else ""), "processor_s": round(used.ru_utime + used.ru_stime, 3)}
