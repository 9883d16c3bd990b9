"""A speech service by OpenAI's documented API for transcriptions; it refuses what that refuses."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

KEY = "sk-speech"


class SpeechDouble:
    """The server; a context manager. `heard`: the recordings that came; it says of each what `says` holds."""

    def __init__(self, says: str = "") -> None:
        self.says = says
        self.heard: list[bytes] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def form(self) -> dict[str, str]:
        return {"address": f"http://127.0.0.1:{self._server.server_port}/v1", "model": "whisper-1", "key": KEY}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, key: str, kind: str, raw: bytes) -> tuple[int, dict[str, object]]:
        mark = re.fullmatch(r"multipart/form-data; boundary=(\S+)", kind)
        if path != "/v1/audio/transcriptions" or mark is None:
            return 404, {"error": {"message": "Invalid URL"}}
        if key != f"Bearer {KEY}":
            return 401, {"error": {"message": "Incorrect API key provided"}}
        parts = raw.split(f"--{mark[1]}".encode())
        fields = {found[1].decode(): part for part in parts if (found := re.search(rb'name="(\w+)"', part))}
        if set(fields) != {"model", "response_format", "file"} or not parts[-1].startswith(b"--"):
            return 400, {"error": {"message": "the form is not whole"}}
        self.heard.append(fields["file"].partition(b"\r\n\r\n")[2].removesuffix(b"\r\n"))
        return 200, {"text": self.says}


def _handler(double: SpeechDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            key, kind = self.headers.get("Authorization", ""), self.headers.get("Content-Type", "")
            status, said = double.answer(self.path, key, kind, raw)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: object) -> None:
            return

    return Handler
