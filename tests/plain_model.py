"""A model server that takes whatever it is sent, keeps it, and answers with the pieces it was given."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from tests.listening import listening

Delta = dict[str, Any]
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


class PlainModel:
    """`bodies`: what came, in order. `answers`: lists of deltas, one a request; "hello" where there is none.

    The delta {"cut": …} ends the stream without an end, {"finish": …} says how it ends.

    `gap_s`: between two pieces. `left`: set once a client went away in the middle of an answer.
    """

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.answers: deque[list[Delta] | Response] = deque()
        self.gap_s = 0.0
        self.left = asyncio.Event()
        self.base_url = ""

    def say(self, *texts: str) -> None:
        """Answer the next request with these pieces of text."""
        self.answers.append([{"content": text} for text in texts])

    async def _complete(self, request: Request) -> Response:
        self.bodies.append(await request.json())
        given = self.answers.popleft() if self.answers else [{"content": "hello"}]
        return (
            given
            if isinstance(given, Response)
            else StreamingResponse(self._stream(given), media_type="text/event-stream")
        )

    async def _stream(self, deltas: list[Delta]) -> AsyncIterator[str]:
        is_whole = False
        try:
            left = deque([{"role": "assistant", "content": ""}, *deltas])
            while left:
                delta = left.popleft()
                if "cut" in delta:
                    is_whole = True
                    return
                yield _event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
                await asyncio.sleep(self.gap_s)
            finish = next((delta["finish"] for delta in deltas if "finish" in delta), "stop")
            finish = "tool_calls" if any("tool_calls" in delta for delta in deltas) else finish
            yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
            yield _event({"choices": [], "usage": USAGE})
            yield "data: [DONE]\n\n"
            is_whole = True
        finally:
            if not is_whole:
                self.left.set()


def _event(data: dict[str, Any]) -> str:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "plain"}
    return f"data: {json.dumps({**head, **data})}\n\n"


def refusal(status: int, message: str, **more: Any) -> Response:
    """An answer that says why not."""
    return JSONResponse({"error": {"message": message, "type": "invalid_request_error", **more}}, status)


@asynccontextmanager
async def plain_model() -> AsyncIterator[PlainModel]:
    """It listens for as long as the block lasts."""
    model, app = PlainModel(), FastAPI()
    app.post("/v1/chat/completions", response_model=None)(model._complete)
    async with listening(app) as origin:
        model.base_url = f"{origin}/v1"
        yield model
