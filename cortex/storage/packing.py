"""Plans as bytes: their JSON, packed with a dictionary of what stands in every plan. Used by `storage/plans.py` alone.

The first byte says how. A form that rows are in stays readable: its dictionary `plans.1.dict` never changes, a better
one gets the next number. It is made of plans of a hello, of a tool and of other requests, as `pack` writes them. A
hello's plan, 13 KB of JSON, takes a quarter of a KB.
"""

import base64
import functools
import json
import zlib
from pathlib import Path
from typing import Any, cast

from cortex.base import memory

FORM = b"\x01"
DICTIONARY = "plans.1.dict"
LEVEL = 6


def pack(receipt: dict[str, Any], given: dict[str, Any]) -> bytes:
    """Return the two as bytes of a tenth of the size that zlib alone would give."""
    squeeze = _primed().copy()
    return FORM + squeeze.compress(_json([*_in_columns(receipt), given])) + squeeze.flush()


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what `pack` was given, made anew each time; ValueError where the bytes are damaged."""
    if data[:1] != FORM:
        raise ValueError("it is in no form that this version of Cortex knows")
    loosen = zlib.decompressobj(zdict=_dictionary())
    try:
        whole = loosen.decompress(data[1:])
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not loosen.eof or loosen.unused_data:
        raise ValueError("its end is missing")
    is_in_columns, receipt, given = json.loads(whole)
    if is_in_columns:
        columns = receipt["decisions"]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        receipt["decisions"] = rows
    return receipt, given


def earlier(kept: dict[str, Any]) -> dict[str, Any]:
    """Return what a version before packed as `{"zlib": base64}`, or had as it is; ValueError where it is damaged."""
    if kept.keys() != {"zlib"}:
        return kept
    try:
        whole = zlib.decompress(base64.b64decode(kept["zlib"]))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return cast("dict[str, Any]", json.loads(whole))


def _in_columns(receipt: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Write the decisions, rows with the same names in each, as columns: shorter, and sooner packed."""
    rows = receipt.get("decisions")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        return False, receipt
    names = list(rows[0])
    if not names or any(list(row) != names for row in rows):
        return False, receipt
    return True, {**receipt, "decisions": {name: [row[name] for row in rows] for name in names}}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@functools.cache
def _dictionary() -> bytes:
    path = Path(__file__).with_name(DICTIONARY)
    with memory.shipped(path):
        return path.read_bytes()


@functools.cache
def _primed() -> "zlib._Compress":
    """Return a compressor that has read the dictionary: a copy of it costs a fifth of reading that."""
    return zlib.compressobj(LEVEL, zdict=_dictionary())
