"""Stands before aider in the sandbox, which has no network: a port that leads to Cortex's door, a socket file.

A program of its own (`python -I box.py SOCKET FOLDER COMMAND...`), of the standard library only.
"""

import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress

CHUNK_BYTES = 65_536


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _serve(listening: socket.socket, door: str) -> None:
    while True:
        client, _ = listening.accept()
        inside = socket.socket(socket.AF_UNIX)
        inside.connect(door)
        for pair in ((client, inside), (inside, client)):
            threading.Thread(target=_pass_on, args=pair, daemon=True).start()


def main(door: str, folder: str, command: list[str]) -> int:
    """Run the command in the folder; its exit code."""
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(listening, door), daemon=True).start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    environment = {**os.environ, "OPENAI_API_BASE": address, "OPENAI_BASE_URL": address}
    ended = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, check=False)  # noqa: S603 - the point
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
