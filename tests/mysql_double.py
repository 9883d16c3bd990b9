"""A double of MySQL at the wire, where no real one can be had: greets as its version, keeps and answers statements."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

SALT = b"12345678901234567890"
CAPABILITIES = 0x000A_A20B  # PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH, CONNECT_WITH_DB, MULTI_RESULTS and the like
OK, EOF = b"\0\0\0\2\0\0\0", b"\xfe\0\0\2\0"
QUERY = 3


@dataclass(frozen=True)
class Refusal:
    """The server's number and words for what it refuses."""

    number: int
    words: str


Rows = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]
Answer = Callable[[str], "Rows | Refusal | None"]


@dataclass
class MySqlDouble:
    """`asked`: the statements, in order. `answer`: columns and rows, a refusal, or None for a plain OK."""

    version: str
    answer: Answer
    asked: list[str] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until it is closed."""
        number = 0

        def send(payload: bytes) -> None:
            nonlocal number
            writer.write(len(payload).to_bytes(3, "little") + bytes([number]) + payload)
            number = (number + 1) % 256

        async def read() -> bytes:
            nonlocal number
            head = await reader.readexactly(4)
            number = head[3] + 1
            return await reader.readexactly(int.from_bytes(head[:3], "little"))

        try:
            send(_greeting(self.version))
            await read()  # who logs in; anybody may
            send(OK)
            while (packet := await read())[0] == QUERY:
                self.asked.append(packet[1:].decode())
                for payload in _payloads(self.answer(self.asked[-1])):
                    send(payload)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def mysql_double(version: str, answer: Answer) -> AsyncIterator[MySqlDouble]:
    """A double that listens."""
    double = MySqlDouble(version, answer)
    server = await asyncio.start_server(double.serve, "127.0.0.1", 0)
    double.port = server.sockets[0].getsockname()[1]
    try:
        yield double
    finally:
        server.close()
        await server.wait_closed()


def _greeting(version: str) -> bytes:
    low, high = CAPABILITIES.to_bytes(4, "little")[:2], CAPABILITIES.to_bytes(4, "little")[2:]
    head = b"\x0a" + version.encode() + b"\0" + (7).to_bytes(4, "little") + SALT[:8] + b"\0"
    return head + low + b"\x2d\2\0" + high + b"\x15" + bytes(10) + SALT[8:] + b"\0mysql_native_password\0"


def _payloads(answer: "Rows | Refusal | None") -> list[bytes]:
    if answer is None:
        return [OK]
    if isinstance(answer, Refusal):
        return [b"\xff" + answer.number.to_bytes(2, "little") + b"#HY000" + answer.words.encode()]
    columns, rows = answer
    told = [_text("def") + _text("") * 3 + _text(name) * 2 + _ABOUT for name in columns]
    return [bytes([len(columns)]), *told, EOF, *(b"".join(map(_text, row)) for row in rows), EOF]


_ABOUT = b"\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0"  # utf8mb4, a VARCHAR


def _text(value: str) -> bytes:
    data = value.encode()
    assert len(data) < 251, "longer ones have another head"
    return bytes([len(data)]) + data
