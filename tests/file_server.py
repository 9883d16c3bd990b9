"""A web server on this machine that has a few files, and counts who asked for what."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class FileServer:
    """`files`: path -> bytes; `moved`: path -> where to; everything else is 404."""

    def __init__(self, files: Mapping[str, bytes], moved: Mapping[str, str]) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                body = files.get(self.path, b"")
                self.send_response(302 if self.path in moved else 200 if self.path in files else 404)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Location", moved.get(self.path, ""))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def file_server(files: Mapping[str, bytes], moved: Mapping[str, str] | None = None) -> Iterator[FileServer]:
    """Serve them until the block ends."""
    made = FileServer(files, moved or {})
    thread = Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        thread.join()
        made.server.server_close()
