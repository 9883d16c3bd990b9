"""Arrays in a file that can be mapped: a line of JSON with names, types and shapes, then the arrays as they are.

What nobody reads of it takes no memory, and several processes share the pages that they read. Loaded late: numpy.
"""

import json
import zlib
from collections.abc import Mapping
from mmap import ACCESS_READ, MADV_DONTNEED, mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGNED = 64
Buffer = bytes | mmap
Arrays = Mapping[str, NDArray[Any]]


def to_bytes(facts: Mapping[str, Any], arrays: Arrays) -> bytes:
    """One file of both, the same bytes for the same content. `facts`: what JSON holds."""
    ordered = dict(sorted(arrays.items()))
    body = b"".join(_padded(np.ascontiguousarray(each).tobytes()) for each in ordered.values())
    told = {name: [each.dtype.str, list(each.shape)] for name, each in ordered.items()}
    head = {"facts": dict(facts), "arrays": told, "crc": zlib.crc32(body)}
    return _padded(json.dumps(head, sort_keys=True, ensure_ascii=False).encode() + b"\n", b" ") + body


def read(data: Buffer) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The facts, and the arrays as views of these bytes; ValueError where anything is damaged."""
    try:
        end = data.find(b"\n") + 1
        head = json.loads(data[:end])
        start = end + -end % ALIGNED
        if zlib.crc32(memoryview(data)[start:]) != head["crc"]:
            raise ValueError("its checksum is wrong")
        found = {}
        for name in head["arrays"]:
            kind, shape = head["arrays"][name]
            found[name] = np.frombuffer(data, dtype=kind, count=int(np.prod(shape)), offset=start).reshape(shape)
            start += found[name].nbytes + -found[name].nbytes % ALIGNED
        return head["facts"], found
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no such file ({error})") from error


def mapped(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The same of a file, mapped; ValueError where it is damaged, OSError where it cannot be read."""
    with path.open("rb") as file:
        data = mmap(file.fileno(), 0, access=ACCESS_READ)
    found = read(data)
    data.madvise(MADV_DONTNEED)  # the look through it brought all of it into memory
    return found


def _padded(data: bytes, by: bytes = b"\0") -> bytes:
    return data + by * (-len(data) % ALIGNED)
