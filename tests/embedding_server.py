"""A strict server that makes embeddings by OpenAI's API, on 127.0.0.1, and refuses what a small one does.

It knows one model, wants its key and texts (no numbers of tokens, as Ollama), and no field that it does not know.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.patience import PATIENCE_S

MODEL, KEY = "tiny-embed", "embed-key"
KNOWN = {"model", "input", "encoding_format", "dimensions"}


def vector(text: str, size: int) -> list[float]:
    """What the model makes of a text: its length, then zeros and a half."""
    return [float(len(text)), *[0.0] * (size - 2), 0.5]


class EmbeddingServer:
    """The server; a context manager. `asked`, `paths`: what came, and where; `answer`: sent in place of its own."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.answer: tuple[int, Any] | None = None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE_S)

    def reply(self, path: str, key: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Status and body."""
        if not path.endswith("/embeddings"):
            return 404, {"error": {"message": "There is no such page."}}
        self.asked.append(body)
        inputs = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if self.answer is not None:
            return self.answer
        if body["model"] != MODEL:
            return 404, {"error": {"message": f"model {body['model']!r} not found"}}
        if key != f"Bearer {KEY}":
            return 401, {"error": {"message": "Incorrect API key provided."}}
        if body.keys() - KNOWN or not all(isinstance(one, str) for one in inputs):
            return 400, {"error": {"message": "invalid input type"}}
        size = body.get("dimensions", 4)
        rows = [{"object": "embedding", "index": n, "embedding": vector(one, size)} for n, one in enumerate(inputs)]
        usage = {"prompt_tokens": 7, "total_tokens": 7}
        return 200, {"object": "list", "data": rows[::-1], "model": MODEL, "usage": usage}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                bearer = self.headers.get("Authorization") or f"Bearer {self.headers.get('api-key', '')}"
                outer.paths += [self.path] if "/embeddings" in self.path else []
                status, body = outer.reply(self.path.partition("?")[0], bearer, json.loads(raw))
                sent = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        return Handler
