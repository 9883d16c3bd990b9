"""What streaming markdown costs the server: CPU per flush, and bytes sent for each byte of the finished HTML."""

import time

from tests.bench.figure import Bench, Figure, median
from tests.bench.sample import ANSWER
from web.markdown import render
from web.markdown_stream import Stream

PIECE = 24  # characters a flush: a model of 75 tokens a second, looked at every 80 ms


def measure(bench: Bench) -> list[Figure]:
    """Two lines over an answer of headings, lists, a table and a listing."""
    text = ANSWER * 3
    flushes = len(range(0, len(text), PIECE)) + 1
    _streamed(text)  # reads lexers and compiles patterns
    cpu_ms = median(lambda _: _cost_ms(text), bench.runs) / flushes
    sent = _streamed(text)
    how = f"{len(text):,} characters, {PIECE} at a time"
    return [
        Figure(what="markdown, a flush", value=cpu_ms, unit="ms", how=f"{how}, CPU time", goal=0.5),
        Figure(
            what="markdown, bytes amplification", value=sent / len(render(text).encode()), unit="times", how=how, goal=7
        ),
    ]


def _cost_ms(text: str) -> float:
    start_s = time.process_time()
    _streamed(text)
    return (time.process_time() - start_s) * 1000


def _streamed(text: str) -> int:
    stream = Stream()
    sent = 0
    for start in range(0, len(text), PIECE):
        stream.feed(text[start : start + PIECE])
        sent += sum(len(change.html.encode()) for change in stream.flush())
    return sent + sum(len(change.html.encode()) for change in stream.finish())
