"""Reads documents in a process of its own: orders on its input, answers on its output, a line of JSON each.

Each document is read by a fork with limits of its own, so that none meets another and a crash ends one answer alone;
what is imported is imported once. `reader.py` starts it, in the sandbox where there is one.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
from typing import Any

from cortex.base import scan
from cortex.base.clock import ticks_s
from cortex.integrations.documents.kinds import HEAD_BYTES, Kind, UnreadableError, kind_of
from cortex.integrations.documents.pages import FullError, Pages

PROCESSOR_S = 20
WALL_S = 40.0
ADDRESS_BYTES = 1_000_000_000
ANSWER_BYTES = 16_000_000
PIPE_BYTES = 1_048_576
NOT_DUMPABLE = 4  # PR_SET_DUMPABLE: a fork must not reach into us by /proc
READERS: dict[Kind, str] = {"pdf": "pdf", "docx": "docx", "odt": "odt", "mail": "mail"}
TOO_LONG = "Reading this file took too long and was stopped."
TOO_LARGE = "This file needs too much memory to be read."
BROKEN = "This file is damaged or too complex to be read."
LOCKED_OUT = "PDF files are read in a sandbox only, and this server has none: an administrator can install bubblewrap."
EMPTY = "This file contains no text."
SHORTENED = "Only the beginning was read: the document is very long."


def main(*, is_boxed: bool) -> None:
    """Answer orders until the input ends. `is_boxed`: whether we are shut in; without, no native parser is run."""
    ctypes.CDLL(None).prctl(NOT_DUMPABLE, 0, 0, 0, 0)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while line := source.readline():
        order = json.loads(line)
        answer = _answer(source.read(order["size_bytes"]), order["name"], is_boxed=is_boxed)
        target.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        target.flush()


def _answer(data: bytes, name: str, *, is_boxed: bool) -> dict[str, Any]:
    try:
        kind = kind_of(data[:HEAD_BYTES], name)
    except UnreadableError as error:
        return {"note": str(error)}
    if kind == "pdf" and not is_boxed:
        return {"note": LOCKED_OUT}
    reader = scan.load(f"cortex.integrations.documents.{READERS.get(kind, 'plain')}")  # here: once for all forks
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            _shut(writing)
            _write(writing, _found(reader, data, kind))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    return _collected(pid, reading)


def _shut(writing: int) -> None:
    """Lay the limits on this fork, and leave it nothing open but its pipe."""
    for limit, most in ((resource.RLIMIT_CPU, PROCESSOR_S), (resource.RLIMIT_AS, ADDRESS_BYTES)):
        resource.setrlimit(limit, (most, most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(nothing, handle)
    os.closerange(3, writing)
    os.closerange(writing + 1, 256)


def _found(reader: Any, data: bytes, kind: Kind) -> bytes:  # Any: a module
    pages = Pages()
    note = ""
    try:
        reader.read(data, pages, *(() if kind in READERS else (kind,)))
    except FullError:
        note = SHORTENED
    except UnreadableError as error:
        return json.dumps({"note": str(error)}).encode()
    except RecursionError:
        note = BROKEN
    except MemoryError:
        return json.dumps({"note": TOO_LARGE}).encode()
    made = pages.found()
    note = note or ("" if made.pages else EMPTY)
    whole = {"pages": made.pages, "outline": made.outline, "note": note or made.note, "is_paged": made.is_paged}
    return json.dumps(whole).encode()


def _write(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def _collected(pid: int, reading: int) -> dict[str, Any]:
    """What the fork wrote, or in words how it ended; it is gone behind this."""
    data, why, end_s = bytearray(), "", ticks_s() + WALL_S
    while True:
        if not select.select([reading], [], [], max(end_s - ticks_s(), 0))[0]:
            why = TOO_LONG
        elif chunk := os.read(reading, PIPE_BYTES):
            data += chunk
            why = TOO_LARGE if len(data) > ANSWER_BYTES else ""
        else:
            break
        if why:
            os.kill(pid, signal.SIGKILL)
            break
    os.close(reading)
    _, status, used = os.wait4(pid, 0)
    seconds = {"processor_s": round(used.ru_utime + used.ru_stime, 3)}
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if not why and ended_by in (signal.SIGXCPU, signal.SIGKILL):
        why = TOO_LONG
    if why or status:
        return {"note": why or BROKEN, **seconds}
    return {**json.loads(data), **seconds}
