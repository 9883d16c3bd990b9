"""The line to one IMAP server: dialled to addresses that were vetted, bounded in what it reads, cut from any thread."""

import contextlib
import imaplib
import socket
import ssl
from collections.abc import Sequence
from threading import Lock
from typing import Any

from cortex.base.clock import ticks_s
from cortex.integrations.mail.server import MailServer

CONNECT_S = 15.0
DIAL_S = 30.0  # of all addresses together
ADDRESSES_MOST = 6
SOCKET_S = 30.0
LINE_BYTES = 4_000_000
LITERAL_BYTES = 32_000_000
ANSWER_BYTES = 64_000_000
LINE_COSTS = 200  # bytes of memory that a line takes beside its own
QUIET_S, PROBES_S, PROBES = 120, 30, 4  # a line that nobody answers on any more is found out
TOO_LONG = "the answer is too long"
NEWS = ("EXISTS", "EXPUNGE", "FETCH")


class Cord:
    """Cuts a line: from any thread, and also while it is still being dialled."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._lock = Lock()
        self._held: socket.socket | None = None
        self.is_cut = False

    def hold(self, made: socket.socket) -> None:
        """Be tied to a connection. OSError where it was cut meanwhile."""
        with self._lock:
            if self.is_cut:
                raise OSError("cut")
            self._held = made.dup()  # the same connection, however often it is wrapped

    def cut(self) -> None:
        """Have whoever waits on the line go on with an error."""
        with self._lock:
            self.is_cut = True
            if self._held is not None:
                with contextlib.suppress(OSError):
                    self._held.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of it."""
        with self._lock:
            held, self._held = self._held, None
            if held is not None:
                held.close()

    def has_ended(self) -> bool:
        """Tell whether the other side hung up; nothing is read."""
        with self._lock:
            if self._held is None:
                return True
            self._held.setblocking(False)
            try:
                return not self._held.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                return False
            except OSError:
                return True


class MailLine(imaplib.IMAP4):
    """A connection that reads no more than it may. `left`: bytes that the call which is under way may still read."""

    def __init__(
        self, server: MailServer, addresses: Sequence[str], context: ssl.SSLContext, cord: Cord | None = None
    ) -> None:
        """Dial, and hear the greeting. OSError, EOFError, IMAP4.error."""
        self._server, self._addresses, self._context = server, addresses, context
        self.cord = cord or Cord()
        self.left = ANSWER_BYTES
        self._idle = b""
        with contextlib.ExitStack() as stack:
            stack.callback(self.hang_up)
            super().__init__(server.host, server.port, CONNECT_S)
            if server.security == "starttls":
                self.starttls(context)
            stack.pop_all()

    def hang_up(self) -> None:
        """Close it, without a word."""
        self.cord.cut()
        self.cord.close()
        with contextlib.suppress(OSError, AttributeError):  # without a file where nobody answered
            self.shutdown()

    def _create_socket(self, timeout: float | None) -> socket.socket:
        failure, until = OSError("no address"), ticks_s() + DIAL_S
        for address in self._addresses[:ADDRESSES_MOST]:
            left_s = min(CONNECT_S, until - ticks_s())
            if left_s <= 0 or self.cord.is_cut:
                break
            try:
                made = socket.create_connection((address, self._server.port), left_s)
            except OSError as error:
                failure = error
                continue
            with contextlib.ExitStack() as stack:
                stack.callback(made.close)
                tied = self._tied(made)
                stack.pop_all()
                return tied
        raise failure

    def _tied(self, made: socket.socket) -> socket.socket:
        self.cord.hold(made)
        made.settimeout(SOCKET_S)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, QUIET_S)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBES_S)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
        if self._server.security != "tls":
            return made
        return self._context.wrap_socket(made, server_hostname=self._server.host)

    def read(self, size: int) -> bytes:
        """Read a literal; error for one that is too long."""
        self._take(size, LITERAL_BYTES)
        return super().read(size)

    def readline(self) -> bytes:
        """Read a line; error for one that is too long."""
        line = bytes(self.file.readline(LINE_BYTES + 1))  # type: ignore[arg-type]  # typeshed: text or bytes
        self._take(len(line), LINE_BYTES)
        return line

    def _take(self, size: int, most: int) -> None:
        self.left -= size + LINE_COSTS
        if size > most or self.left < 0:
            raise self.abort(TOO_LONG)

    def idle(self) -> bool:
        """Have the server say what comes into the open folder; whether something came while it began to."""
        self.untagged_responses.clear()
        tag = self._command("IDLE")
        while self._get_response() is not None:  # None: it listens
            told: Any = self.tagged_commands.pop(tag, None)
            if told:
                raise self.error(b" ".join(told[1]))
            self.tagged_commands[tag] = None
        self._idle = tag
        return not self.untagged_responses.keys().isdisjoint(NEWS)

    def heard(self) -> Sequence[bytes]:
        """Return the lines that came by now, without waiting. EOFError where the other side hung up."""
        lines = []
        while self._has_more():
            lines.append(self._get_line())
        if not lines and self.cord.has_ended():
            raise EOFError
        if any(line.startswith(b"* BYE") for line in lines):
            raise EOFError
        return lines

    def _has_more(self) -> bool:
        """Tell whether something can be read now, of TLS something for us."""
        self.sock.settimeout(0)
        try:
            file: Any = self.file
            return bool(file.peek(1))  # what is read ahead stays
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        finally:
            self.sock.settimeout(SOCKET_S)

    def end_idle(self) -> None:
        """Have it listen to commands again."""
        self.send(b"DONE\r\n")
        while not self.tagged_commands.get(self._idle):
            self._get_response()
        self.tagged_commands.pop(self._idle)
