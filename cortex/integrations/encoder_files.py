"""Fetches a sentence model's two files through the egress rule: sizes capped, bytes held against a pinned SHA-256.

Puts both in place or neither. Loads no model; where it lies is decided by `services/tools/encoders.py`.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from cortex.base import private, scan
from cortex.base.address import PUBLIC, AddressPolicy, named
from cortex.base.errors import UserError
from cortex.base.web_address import web_place

TOTAL_S = 600.0
SIZE_MAX_BYTES = 200_000_000
PORTS = {"https": 443, "http": 80}


class PinnedFile(Struct, frozen=True, kw_only=True):
    """A file: its name in the folder, where it lies below the address, its digest, how long it may be."""

    name: str
    path: str
    sha256: str
    size_bytes: int = SIZE_MAX_BYTES


# all-MiniLM-L6-v2 (Apache-2.0) as int8 ONNX, at a commit that cannot move; both digests as several projects have them.
SHIPPED_FROM = "https://huggingface.co/Xenova/all-MiniLM-L6-v2/resolve/751bff37182d3f1213fa05d7196b954e230abad9"
SHIPPED = (
    PinnedFile(
        name="model.onnx",
        path="onnx/model_quantized.onnx",
        sha256="afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1",
        size_bytes=22_972_370,
    ),
    PinnedFile(
        name="tokenizer.json",
        path="tokenizer.json",
        sha256="da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
        size_bytes=711_661,
    ),
)


def policy_of(address: str) -> AddressPolicy:
    """Where a download from this typed address may go: its own host and port alone, which may stand inside."""
    try:
        place = web_place(address)
        is_bare = urlsplit(address).username is None
    except ValueError:
        is_bare = False
    if not is_bare:
        raise UserError(f"{address!r} is not an address such as https://example.org/model.")
    return named(place)


async def fetch(address: str, files: Sequence[PinnedFile], into: Path, policy: AddressPolicy = PUBLIC) -> None:
    """Get the files below the address into the folder, all or none.

    UserError for what is not the pinned bytes; NotAllowed and ToolFailed of `base/http.py` for what cannot be reached.
    """
    http = scan.load("cortex.base.http")
    got: dict[str, bytes] = {}
    async with http.open_client(policy) as client:
        for file in files:
            url = f"{address.rstrip('/')}/{file.path}"
            found = await http.fetch(client, url, max_bytes=file.size_bytes, total_s=TOTAL_S)
            if found.status != 200:
                raise UserError(f"{url} answered {found.status}.")
            if found.is_cut:
                raise UserError(f"{url} is longer than {file.size_bytes:,} bytes. Nothing was kept.")
            digest = hashlib.sha256(found.body).hexdigest()
            if digest != file.sha256:
                raise UserError(f"{url} has another checksum than expected (SHA-256 {digest}). Nothing was kept.")
            got[file.name] = found.body
    _put(into, got)


def _put(into: Path, files: dict[str, bytes]) -> None:
    """Write all beside their places, then move them there."""
    private.make_folder(into)
    beside = {name: into / f"{name}.{os.getpid()}" for name in files}
    try:
        for name, data in files.items():
            private.write_beside(beside[name], data)
        for name, path in beside.items():
            path.replace(into / name)
    finally:
        for path in beside.values():
            path.unlink(missing_ok=True)
