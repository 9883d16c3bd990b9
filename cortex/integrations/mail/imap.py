"""One IMAP connection, spoken by imap-tools, which waits: it is used in a thread of its own (`client.py`).

Dialled to addresses that were vetted before, and bounded in what it reads: a server could send without end.
"""

import contextlib
import imaplib
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from imap_tools.errors import ImapToolsError, MailboxLoginError
from imap_tools.mailbox import BaseMailBox
from imap_tools.utils import encode_folder

from cortex.base.errors import Conflict, NotFound, ServiceDown, ToolFailed, UserError
from cortex.integrations.mail.answers import (
    FLAGS,
    UID,
    failed,
    folder_of,
    head_of,
    marks_of,
    must,
    number,
    numbers,
    placed,
    refused,
    uids_in,
)
from cortex.integrations.mail.server import MailServer
from cortex.integrations.mail.values import FolderState, Placed, RawHead, ServerFolder

CONNECT_S = 15.0
SOCKET_S = 30.0
LINE_BYTES = 4_000_000
LITERAL_BYTES = 32_000_000
ANSWER_BYTES = 64_000_000
FOLDERS_MOST = 300
HEADERS = "FROM SENDER REPLY-TO TO CC SUBJECT DATE MESSAGE-ID IN-REPLY-TO REFERENCES CONTENT-TYPE"
FAULTS = (ImapToolsError, imaplib.IMAP4.error, OSError, EOFError, ValueError)
MARKS = {"seen": "\\Seen", "flagged": "\\Flagged", "answered": "\\Answered"}


class _Bounded(imaplib.IMAP4):
    """A connection to an address that was vetted, which reads no more than it may."""

    def __init__(self, server: MailServer, addresses: Sequence[str], context: ssl.SSLContext) -> None:
        self._server, self._addresses, self._context = server, addresses, context
        self.left = ANSWER_BYTES
        super().__init__(server.host, server.port, CONNECT_S)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        failure: OSError = OSError("no address")
        for address in self._addresses:
            try:
                made = socket.create_connection((address, self._server.port), timeout)
            except OSError as error:
                failure = error
                continue
            made.settimeout(SOCKET_S)
            if self._server.security != "tls":
                return made
            return self._context.wrap_socket(made, server_hostname=self._server.host)
        raise failure

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
        self.left -= size
        if size > most or self.left < 0:
            raise self.abort("the answer is too long")


class _Box(BaseMailBox):
    def __init__(self, server: MailServer, addresses: Sequence[str], context: ssl.SSLContext) -> None:
        self._given = server, addresses, context
        super().__init__()

    def _get_mailbox_client(self) -> imaplib.IMAP4:
        made = _Bounded(*self._given)
        if self._given[0].security == "starttls":
            made.starttls(self._given[2])
        return made


class Imap:
    """A connection that is logged in. Every method raises ServiceDown, ToolFailed, NotFound or Conflict, in words."""

    def __init__(self, server: MailServer, addresses: Sequence[str], context: ssl.SSLContext) -> None:
        """Dial and log in. UserError where the key is not taken."""
        self._host = server.host
        self._box: Any = None  # Any: imap-tools lets its client's own methods through
        try:
            self._box = _Box(server, addresses, context)
            self._log_in(server)
            self._client._get_capabilities()  # what is offered to whoever is logged in
        except MailboxLoginError as error:
            self.close()
            raise UserError(refused(server, error), field="password") from None
        except FAULTS as error:
            self.close()
            raise failed(server.host, error) from None

    @property
    def _client(self) -> Any:
        return self._box.client

    @property
    def can_idle(self) -> bool:
        """Tell whether the server says by itself that something came."""
        return "IDLE" in self._client.capabilities

    @property
    def handle(self) -> int:
        """The socket's number, on which something can be waited for."""
        return int(self._client.sock.fileno())

    def abort(self) -> None:
        """Cut the line, from any thread: whoever waits on it goes on with an error."""
        try:
            self._client.sock.shutdown(socket.SHUT_RDWR)
        except (AttributeError, OSError):
            return

    def close(self) -> None:
        """Leave, without waiting for an answer."""
        if self._box is None:
            return
        with contextlib.suppress(*FAULTS):
            self._client.send(b"BYE LOGOUT\r\n")
        with contextlib.suppress(*FAULTS):
            self._client.shutdown()

    def folders(self) -> Sequence[ServerFolder]:
        """Every folder that can be opened."""
        found = self._do(self._box.folder.list)
        made = [
            folder_of(one.name, one.delim, one.flags)
            for one in found
            if one.name.isprintable() and "\\noselect" not in map(str.lower, one.flags)
        ]
        return made[:FOLDERS_MOST]

    def examine(self, path: str) -> FolderState:
        """Open a folder to read; how it stands. NotFound where there is none of this name."""
        return self._opened(path, readonly=True)

    def _opened(self, path: str, *, readonly: bool) -> FolderState:
        client = self._client
        try:
            self._do(lambda: self._box.folder.set(path, readonly))
        except ToolFailed as error:
            if isinstance(error, ServiceDown):
                raise
            raise NotFound(f"The folder {path} is not on the server any more.") from None
        values = {
            name: number(client.untagged_responses.get(name))
            for name in ("UIDVALIDITY", "UIDNEXT", "EXISTS", "HIGHESTMODSEQ")
        }
        return FolderState(
            uidvalidity=values["UIDVALIDITY"],
            uidnext=values["UIDNEXT"],
            count=values["EXISTS"],
            modseq=values["HIGHESTMODSEQ"],
        )

    def changing(self, path: str, uidvalidity: int) -> None:
        """Open a folder to change what lies there. Conflict where its mails are counted anew."""
        if self._opened(path, readonly=False).uidvalidity != uidvalidity:
            raise Conflict("The server counts the mails of this folder anew. Search for them again.")

    def looking(self, path: str, uidvalidity: int) -> None:
        """Open a folder to read mails that are known. Conflict where its mails are counted anew."""
        if self.examine(path).uidvalidity != uidvalidity:
            raise Conflict("The server counts the mails of this folder anew. Search for them again.")

    def uids(self, criteria: str = "ALL") -> Sequence[int]:
        """The numbers of mails in the open folder, by a criterion without words."""
        return uids_in(self._do(lambda: self._box.uids(criteria, charset=None)))

    def search(self, words: Sequence[str]) -> Sequence[int]:
        """Find the mails in whose text all these words stand; their numbers."""
        plain = [" ".join("".join(sign for sign in word if sign.isprintable()).split()) for word in words]
        quoted = " ".join('TEXT "' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in plain if word)
        charset = None if quoted.isascii() else "UTF-8"
        return uids_in(self._do(lambda: self._box.uids(quoted.encode(), charset=charset)))

    def with_id(self, message_id: str) -> Sequence[int]:
        """The numbers of mails of this id in the open folder, the newest first."""
        if not message_id or not message_id.isascii() or not message_id.isprintable() or set('"\\') & set(message_id):
            return []
        return sorted(self.uids(f'HEADER Message-ID "{message_id}"'), reverse=True)

    def heads(self, uids: Sequence[int]) -> Sequence[RawHead]:
        """List these mails: number, marks, size, time, and the headers as they came."""
        parts = f"(UID FLAGS RFC822.SIZE INTERNALDATE BODY.PEEK[HEADER.FIELDS ({HEADERS})])"
        return [head for head in map(head_of, self._fetched(uids, parts)) if head is not None]

    def message(self, uid: int, most_bytes: int) -> bytes:
        """The bytes of a mail, the first of them where there are more. NotFound."""
        for _, data in self._fetched([uid], f"(UID BODY.PEEK[]<0.{most_bytes}>)"):
            return data
        raise NotFound("This mail is not there any more.")

    def flags(self, uids: Sequence[int]) -> Mapping[int, Sequence[str]]:
        """The marks of those of these mails that are there."""
        found = {}
        for told, _ in self._fetched(uids, "(UID FLAGS)"):
            uid, flags = UID.search(told), FLAGS.search(told)
            if uid and flags:
                found[int(uid[1])] = marks_of(flags[1])
        return {uid: found[uid] for uid in uids if uid in found}

    def append(self, path: str, data: bytes, flags: Iterable[str]) -> Placed:
        """Lay a mail into a folder."""
        client = self._client
        client.untagged_responses.pop("APPENDUID", None)
        marks = f"({' '.join(flags)})"
        self._do(lambda: must(client.append(encode_folder(path), marks, None, data)))
        return next(iter(placed(client.response("APPENDUID")[1])), Placed())

    def mark(self, uids: Sequence[int], marks: Sequence[str], *, is_set: bool) -> None:
        """Set or take away marks of mails in the open folder; nothing else happens to them."""
        if uids and marks:
            names = f"({' '.join(MARKS[one] for one in marks)})"
            sign = "+" if is_set else "-"
            self._do(lambda: must(self._client.uid("STORE", numbers(uids), f"{sign}FLAGS.SILENT", names)))

    def move(self, uids: Sequence[int], path: str) -> Sequence[Placed]:
        """Move mails of the open folder; where they lie now, as far as the server says. ToolFailed where it cannot."""
        client = self._client
        client.untagged_responses.pop("COPYUID", None)
        target = encode_folder(path)
        if "MOVE" in client.capabilities:
            self._do(lambda: must(client.uid("MOVE", numbers(uids), target)))
            return placed(client.response("COPYUID")[1])
        if "UIDPLUS" not in client.capabilities:  # others' deleted mails would be taken away with these
            raise ToolFailed(f"{self._host} cannot move mails.")
        self._do(lambda: must(client.uid("COPY", numbers(uids), target)))
        copies = placed(client.response("COPYUID")[1])
        self.discard(uids)
        return copies

    def discard(self, uids: Sequence[int]) -> None:
        """Take these mails away for good, and no others. ToolFailed where the server cannot."""
        client = self._client
        if "UIDPLUS" not in client.capabilities:
            raise ToolFailed(f"{self._host} cannot take away single mails.")
        self._do(lambda: must(client.uid("STORE", numbers(uids), "+FLAGS.SILENT", "(\\Deleted)")))
        self._do(lambda: must(client.uid("EXPUNGE", numbers(uids))))

    def wait(self) -> None:
        """Have the server say what comes into the open folder."""
        self._do(self._box.idle.start)

    def news(self) -> bool:
        """Tell whether what it said meanwhile is news; EOFError where the line ended."""
        said = self._do(lambda: self._box.idle.poll(timeout=0))
        if not said:
            raise EOFError
        return any(b"EXISTS" in one or b"EXPUNGE" in one or b"FETCH" in one for one in said)

    def has_more(self) -> bool:
        """Tell whether something that came already waits to be read."""
        pending = getattr(self._client.sock, "pending", None)
        return bool(pending and pending())

    def stop_waiting(self) -> None:
        """Have it listen to commands again."""
        self._do(self._box.idle.stop)

    def _fetched(self, uids: Sequence[int], parts: str) -> Sequence[tuple[bytes, bytes]]:
        """Return what is said of each of these mails, and the bytes that came with it."""
        if not uids:
            return []
        answer = self._do(lambda: must(self._client.uid("FETCH", numbers(uids), parts)))
        found: list[tuple[bytes, bytes]] = []
        for piece in answer:
            if isinstance(piece, tuple):
                found.append((piece[0], piece[1]))
            elif isinstance(piece, bytes) and piece[:1].isdigit():
                found.append((piece, b""))
            elif isinstance(piece, bytes) and found:  # what stands behind the bytes
                found[-1] = found[-1][0] + b" " + piece, found[-1][1]
        return found

    def _do(self, work: Callable[[], Any]) -> Any:
        self._client.left = ANSWER_BYTES
        try:
            return work()
        except FAULTS as error:
            raise failed(self._host, error) from None

    def _log_in(self, server: MailServer) -> None:
        if server.token:
            self._box.xoauth2(server.username, server.token, None)
        elif server.username.isascii() and server.password.isascii():
            self._box.login(server.username, server.password, None)
        else:
            self._box.login_utf8(server.username, server.password, None)
