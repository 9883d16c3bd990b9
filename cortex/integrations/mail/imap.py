"""One IMAP connection, spoken by imap-tools and imaplib, which wait: used in a thread of its own (`client.py`)."""

import contextlib
import imaplib
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from imap_tools.errors import ImapToolsError, MailboxLoginError
from imap_tools.mailbox import BaseMailBox
from imap_tools.utils import encode_folder

from cortex.base.errors import Conflict, NotFound, ServiceDown, ToolFailed, UserError
from cortex.integrations.mail.answers import (
    BROKEN,
    FLAGS,
    failed,
    fetched,
    folders_of,
    heads_of,
    listed,
    marks_of,
    must,
    number,
    numbers,
    placed,
    refused,
    uids_in,
    words_of,
)
from cortex.integrations.mail.line import ANSWER_BYTES, NEWS, Cord, MailLine
from cortex.integrations.mail.line import LITERAL_BYTES as LITERAL_BYTES
from cortex.integrations.mail.server import MailServer
from cortex.integrations.mail.values import Fetched, FolderState, Placed, RawHead, ServerFolder, TextHits

FOLDERS_MOST = 300
HEAD_BYTES = 32_768
CHALLENGES_MOST = 3
HEADERS = "FROM SENDER REPLY-TO TO CC SUBJECT DATE MESSAGE-ID IN-REPLY-TO REFERENCES CONTENT-TYPE"
ABOUT = "UID FLAGS RFC822.SIZE INTERNALDATE"
FAULTS = (ImapToolsError, imaplib.IMAP4.error, OSError, EOFError, *BROKEN)
MARKS = {"seen": "\\Seen", "flagged": "\\Flagged", "answered": "\\Answered"}
GONE = "This mail is not there any more."


class _Box(BaseMailBox):
    def __init__(self, line: MailLine) -> None:
        self._line = line
        super().__init__()

    def _get_mailbox_client(self) -> imaplib.IMAP4:
        return self._line


class Imap:
    """A connection that is logged in. Every method raises ServiceDown, ToolFailed, NotFound or Conflict, in words."""

    def __init__(
        self, server: MailServer, addresses: Sequence[str], context: ssl.SSLContext, cord: Cord | None = None
    ) -> None:
        """Dial and log in. UserError where the key is not taken."""
        self._host = server.host
        self._client: Any = None  # Any: what imaplib keeps to itself is used
        try:
            self._client = MailLine(server, addresses, context, cord)
            self._log_in(server)
            self._client._get_capabilities()  # what is offered to whoever is logged in
        except MailboxLoginError as error:
            self.close()
            raise UserError(refused(server, words_of(error)), field="password") from None
        except FAULTS as error:
            self.close()
            raise failed(server.host, error) from None

    @property
    def can_idle(self) -> bool:
        """Tell whether the server says by itself that something came."""
        return "IDLE" in self._client.capabilities

    @property
    def handle(self) -> int:
        """The socket's number, on which something can be waited for."""
        return int(self._client.sock.fileno())

    @property
    def can_move(self) -> bool:
        """Tell whether it moves mails in one go."""
        return "MOVE" in self._client.capabilities

    def abort(self) -> None:
        """Cut the line, from any thread: whoever waits on it goes on with an error."""
        self._client.cord.cut()

    def close(self) -> None:
        """Leave, without waiting for an answer."""
        if self._client is None:
            return
        if not self._client.cord.is_cut:
            with contextlib.suppress(*FAULTS):
                self._client.send(b"BYE LOGOUT\r\n")
        with contextlib.suppress(*FAULTS):
            self._client.hang_up()

    def folders(self) -> Sequence[ServerFolder]:
        """Every folder that can be opened, the inbox and those that play a part first; of very many the first."""
        return folders_of(self._listed('"*"'))[:FOLDERS_MOST]

    def _listed(self, pattern: str | bytes) -> Sequence[tuple[str, str, Sequence[str]]]:
        """List the folders of a pattern: path, sign between parts, flags. What cannot be read is passed over."""
        client = self._client

        def work() -> Any:
            answer = client._untagged_response(*client._simple_command("LIST", '""', pattern), "LIST")
            return must(answer)

        return [one for one in map(listed, self._do(work)) if one is not None]

    def examine(self, path: str) -> FolderState:
        """Open a folder to read; how it stands. NotFound where there is none of this name."""
        return self._opened(path, readonly=True)

    def _opened(self, path: str, *, readonly: bool) -> FolderState:
        client, name = self._client, encode_folder(path)
        try:
            self._do(lambda: must(client.select(name, readonly)))
        except ServiceDown:
            raise
        except ToolFailed as error:
            if "[NONEXISTENT]" in error.message.upper() or not self._listed(name):
                raise NotFound(f"The folder {path} is not on the server any more.") from None
            raise  # it stands, and cannot be opened now: its server says why
        values = {
            name: number(client.untagged_responses.get(name), 63 if name == "HIGHESTMODSEQ" else 32)
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
        return uids_in(self._do(lambda: must(self._client.uid("SEARCH", criteria))))

    def search(self, words: Sequence[str]) -> TextHits:
        """Find the mails in whose text all these words stand. Words that the server cannot look for are passed over."""
        plain = [" ".join("".join(sign for sign in word if sign.isprintable()).split()) for word in words]
        quoted = [word.replace("\\", "\\\\").replace('"', '\\"') for word in plain if word and word.isascii()]
        ways = [lambda: self.uids(" ".join(f'TEXT "{word}"' for word in quoted))] if quoted else []
        others = [word for word in plain if not word.isascii()]
        found = set(ways[0]()) if ways else None
        passed = list[str]()
        for word in others:
            try:
                there = set(self._with_word(word))
            except ServiceDown:
                raise
            except ToolFailed as error:
                if "BADCHARSET" not in error.message.upper():
                    raise
                passed.append(word)
                continue
            found = there if found is None else found & there
        return TextHits(uids=sorted(found or ()), passed=passed)

    def _with_word(self, word: str) -> Sequence[int]:
        """Find the mails with a word of any script, which travels as it is."""
        client = self._client

        def work() -> Any:
            client.literal = word.encode()
            return must(client.uid("SEARCH", "CHARSET", "UTF-8", "TEXT"))

        return uids_in(self._do(work))

    def with_id(self, message_id: str) -> Sequence[int]:
        """The numbers of mails of this id in the open folder, the newest first."""
        if not message_id or not message_id.isascii() or not message_id.isprintable() or set('"\\') & set(message_id):
            return []
        return sorted(self.uids(f'HEADER Message-ID "{message_id}"'), reverse=True)

    def heads(self, uids: Sequence[int]) -> Sequence[RawHead]:
        """List these mails: number, marks, size, time, and the headers as they came, the first of very long ones.

        Of one that its server cannot give, the headers are empty.
        """
        asked = f"{ABOUT} BODY.PEEK[HEADER.FIELDS ({HEADERS})]"
        for parts in (f"({asked}<0.{HEAD_BYTES}>)", f"({asked})"):
            try:
                return heads_of(self._fetched(uids, parts), HEAD_BYTES)
            except ServiceDown:
                raise
            except ToolFailed:  # a mail that is broken there has the whole command refused
                continue
        if len(uids) > 1:
            half = len(uids) // 2
            return [*self.heads(uids[:half]), *self.heads(uids[half:])]
        return heads_of(self._fetched(uids, f"({ABOUT})"), HEAD_BYTES, is_bare=True)

    def message(self, uid: int, most_bytes: int) -> bytes:
        """The bytes of a mail, the first of them where there are more. NotFound."""
        for one in self._fetched([uid], f"(UID BODY.PEEK[]<0.{most_bytes}>)"):
            if one.uid == uid and one.data is not None:
                return one.data
        raise NotFound(GONE)

    def flags(self, uids: Sequence[int]) -> Mapping[int, Sequence[str]]:
        """The marks of those of these mails that are there."""
        found = {}
        for one in self._fetched(uids, "(UID FLAGS)"):
            flags = FLAGS.search(one.told)
            if flags:
                found[one.uid] = marks_of(flags[1])
        return {uid: found[uid] for uid in uids if uid in found}

    def append(self, path: str, data: bytes, flags: Iterable[str]) -> Placed:
        """Lay a mail into a folder."""
        client = self._client
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
        """Move mails of the open folder in one go (`can_move`); where they lie now, as far as the server says."""
        self._do(lambda: must(self._client.uid("MOVE", numbers(uids), encode_folder(path))))
        return placed(self._client.response("COPYUID")[1])

    def copy(self, uids: Sequence[int], path: str) -> Sequence[Placed]:
        """Copy mails of the open folder; where the copies lie. ToolFailed where the first ones could not be removed."""
        if "UIDPLUS" not in self._client.capabilities:  # others' deleted mails would be taken away with these
            raise ToolFailed(f"{self._host} cannot move mails.")
        self._do(lambda: must(self._client.uid("COPY", numbers(uids), encode_folder(path))))
        return placed(self._client.response("COPYUID")[1])

    def discard(self, uids: Sequence[int]) -> None:
        """Take these mails away for good, and no others. ToolFailed where the server cannot."""
        client = self._client
        if "UIDPLUS" not in client.capabilities:
            raise ToolFailed(f"{self._host} cannot take away single mails.")
        self._do(lambda: must(client.uid("STORE", numbers(uids), "+FLAGS.SILENT", "(\\Deleted)")))
        self._do(lambda: must(client.uid("EXPUNGE", numbers(uids))))

    def wait(self) -> bool:
        """Have the server say what comes into the open folder; whether something came while it began to."""
        return bool(self._do(self._client.idle))

    def news(self) -> bool:
        """Tell whether what it said by now is news; EOFError where it hung up."""
        self._client.left = ANSWER_BYTES
        try:
            said = self._client.heard()
        except EOFError:
            raise
        except FAULTS as error:
            raise failed(self._host, error) from None
        return any(word.encode() in one.split(b" ", 3)[2:3] for one in said for word in NEWS)

    def stop_waiting(self) -> None:
        """Have it listen to commands again."""
        self._do(self._client.end_idle)

    def _fetched(self, uids: Sequence[int], parts: str) -> Sequence[Fetched]:
        """Return what is said of these mails, each time that something is."""
        if not uids:
            return []
        asked = set(uids)
        answer = self._do(lambda: must(self._client.uid("FETCH", numbers(uids), parts)))
        return [one for one in fetched(answer) if one.uid in asked]

    def _do(self, work: Callable[[], Any]) -> Any:
        self._client.left = ANSWER_BYTES
        self._client.untagged_responses.clear()  # what was said behind an earlier answer
        try:
            return work()
        except FAULTS as error:
            raise failed(self._host, error) from None

    def _log_in(self, server: MailServer) -> None:
        box: Any = _Box(self._client)
        if server.token:
            self._by_token(server)
        elif server.username.isascii() and server.password.isascii():
            box.login(server.username, server.password, None)
        else:
            box.login_utf8(server.username, server.password, None)

    def _by_token(self, server: MailServer) -> None:
        """Log in by XOAUTH2. A refusal comes as a challenge first, which is answered by nothing."""
        asked = list[bytes]()

        def answer(challenge: bytes) -> bytes:
            asked.append(challenge)
            if len(asked) > CHALLENGES_MOST:
                raise imaplib.IMAP4.abort("it asks without end")
            return b"" if len(asked) > 1 else f"user={server.username}\1auth=Bearer {server.token}\1\1".encode()

        try:
            self._client.authenticate("XOAUTH2", answer)
        except imaplib.IMAP4.abort:
            raise
        except imaplib.IMAP4.error as error:
            raise MailboxLoginError(("NO", [str(error).encode()]), "OK") from None
