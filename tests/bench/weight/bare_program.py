"""The least that such a daemon does: takes a message, stores it for sure, relays a model's stream, stores the answer.

`python -m tests.bench.weight.bare_program PORT MODEL_URL KEY FILE`: FastAPI, SQLite with `synchronous=FULL`, httpx.
"""

import json
import sqlite3
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, StreamingResponse

app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)


@app.get("/health")
async def health() -> PlainTextResponse:
    """It is ready."""
    return PlainTextResponse("ok")


@app.post("/v1/chat/completions")
async def chat(body: dict[str, Any]) -> StreamingResponse:
    """The model's answer to the last message and all that was said before, as it comes."""
    session = str(body["session_id"])
    _store(session, "user", body["messages"][-1]["content"])
    return StreamingResponse(_relayed(session), media_type="text/event-stream")


async def _relayed(session: str) -> AsyncIterator[str]:
    said = app.state.rows.execute("SELECT role, content FROM messages WHERE session = ? ORDER BY id", (session,))
    messages = [{"role": role, "content": content} for role, content in said]
    answer = ""
    asked = {"model": "scripted-1", "messages": messages, "stream": True}
    async with app.state.model.stream("POST", "/chat/completions", json=asked) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: {"):
                choices = json.loads(line[6:])["choices"]
                answer += (choices[0]["delta"].get("content") or "") if choices else ""
            if line:
                yield f"{line}\n\n"
    _store(session, "assistant", answer)


def _store(session: str, role: str, content: str) -> None:
    with app.state.rows as rows:
        rows.execute("INSERT INTO messages (session, role, content) VALUES (?, ?, ?)", (session, role, content))


def main(port: str, model_url: str, key: str, file: str) -> None:
    """Serve until it is ended."""
    rows = app.state.rows = sqlite3.connect(file)
    rows.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, session TEXT, role TEXT, content TEXT);"
        "CREATE INDEX IF NOT EXISTS by_session ON messages (session)"
    )
    app.state.model = httpx.AsyncClient(
        base_url=model_url, headers={"Authorization": f"Bearer {key}"}, timeout=60, trust_env=False
    )
    uvicorn.run(app, port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
