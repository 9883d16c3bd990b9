"""A file of 100 MB that is given to Cortex: memory, processor, what others wait, what half of one leaves behind."""

import time
from collections.abc import Iterator
from contextlib import suppress

import httpx

from tests.bench.figure import Bench, Figure
from tests.bench.houses import House, MostMemory, Onlooker, house, size_mb
from tests.e2e.caller import Caller

SIZE_MB, PIECE = 100, 1 << 16
EDGE = "bench-edge-of-a-part"
HEAD = f'--{EDGE}\r\nContent-Disposition: form-data; name="files"; filename="big.bin"\r\n\r\n'.encode()
TAIL = f"\r\n--{EDGE}--\r\n".encode()
LINE = b"name,amount,of what\n"


def measure(bench: Bench) -> list[Figure]:
    """Memory at its most and behind it, processor, pages meanwhile, and what is left when the sender goes half way."""
    return [figure for kind in bench.databases for figure in _measured(bench, kind)]


def _measured(bench: Bench, kind: str) -> list[Figure]:
    size_bytes = bench.count(SIZE_MB * 1_000_000)
    with house(bench, kind, upload_mb=SIZE_MB + 10) as opened, Caller(opened.door) as ada:
        ada.set_up()
        _send(opened, ada, "small.csv", 1_000, 1_000)  # what is loaded with the first
        before_mb = opened.memory_mb()
        with Onlooker(opened, ada) as onlooker, MostMemory(opened) as most:
            used_s, began_s = opened.cpu_s(), time.perf_counter()
            status = _send(opened, ada, "big.csv", size_bytes, size_bytes)
            took_s, used_s = time.perf_counter() - began_s, opened.cpu_s() - used_s
        if status != 303:
            raise RuntimeError(f"the upload was answered with {status}")
        after_mb, stored_mb = opened.memory_mb(), size_mb(opened.door.home)
        with suppress(httpx.HTTPError):
            _send(opened, ada, "half.csv", size_bytes, size_bytes // 2)
        time.sleep(2)
        litter_mb = size_mb(opened.door.home) - stored_mb
        how = f"{opened.name}, {size_bytes / 1e6:,.0f} MB"
        return [
            Figure(what="upload, all told", value=took_s, unit="s", how=how),
            Figure(what="upload, CPU", value=used_s, unit="s", how=how),
            Figure(what="upload, memory at its most", value=most.mb - before_mb, unit="MB", how=f"{how}; more"),
            Figure(what="upload, memory that stays", value=after_mb - before_mb, unit="MB", how=how),
            Figure(what="upload, left behind by half of one", value=max(0.0, litter_mb), unit="MB", how=how),
            *onlooker.figures("upload", how),
        ]


def _send(opened: House, ada: Caller, name: str, said_bytes: int, sent_bytes: int) -> int:
    """The status that a file of so many bytes is answered with; one that is said to be longer ends in the middle."""
    head = HEAD.replace(b"big.bin", name.encode())

    def body() -> Iterator[bytes]:
        yield head
        left = sent_bytes
        while left:
            piece = (LINE * (PIECE // len(LINE)))[: min(left, PIECE)]
            left -= len(piece)
            yield piece
        if sent_bytes < said_bytes:
            raise httpx.WriteError("gone")
        yield TAIL

    headers = {
        "Cookie": f"cortex={ada.token}",
        "Origin": opened.door.origin,
        "Content-Type": f"multipart/form-data; boundary={EDGE}",
        "Content-Length": str(len(head) + said_bytes + len(TAIL)),
    }
    with httpx.Client(timeout=600, trust_env=False) as http:
        return http.post(f"{opened.door.origin}/files", content=body(), headers=headers).status_code
