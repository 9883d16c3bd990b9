"""Mail as tools see it: one person's accounts, read and arranged, drafts laid down. Implemented in `services/mail/`.

Nothing here sends: that is `ports/outgoing.py: Mail`. Looking marks nothing as read.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

FolderRole = Literal["", "inbox", "drafts", "sent", "archive", "junk", "trash"]


class MailFolder(Struct, frozen=True, kw_only=True):
    """A folder. `name`: as people see it, with its parents ("Work/Bills"); `role`: the part it plays, "" for none.

    `is_read`: the person chose it, so that its mails are found; others are only moved to.
    """

    id: str
    account_id: str
    name: str
    role: FolderRole = ""
    is_read: bool = True


class MailAccount(Struct, frozen=True, kw_only=True):
    """An account. `address`: whose mail it is, by which it writes; `is_stale`: why it is behind, in words.

    `reading`: mails that are still to be read into the index, 0 when it is whole.
    """

    id: str
    label: str
    address: str
    folders: Sequence[MailFolder] = ()
    is_stale: str = ""
    reading: int = 0


class MailPerson(Struct, frozen=True, kw_only=True):
    """Somebody who writes or is written to, as the mail says; anybody may write any name there."""

    address: str
    name: str = ""


class MailHead(Struct, frozen=True, kw_only=True):
    """A mail in a list. `id`: short, for calls; it is another one once the mail lies elsewhere.

    `at`: when the server received it. `thread`: the same for all mails of one conversation.
    """

    id: str
    account_id: str
    folder: MailFolder
    sender: MailPerson
    to: Sequence[MailPerson] = ()
    subject: str
    at: datetime
    size: int = 0
    thread: str = ""
    is_seen: bool = False
    is_flagged: bool = False
    is_answered: bool = False
    is_draft: bool = False
    has_files: bool = False


class MailFile(Struct, frozen=True, kw_only=True):
    """An attachment. `number`: counted from 1, by which it is fetched; `size`: bytes, about."""

    number: int
    name: str
    media_type: str
    size: int


class MailText(Struct, frozen=True, kw_only=True):
    """The whole of a mail in plain text. `note`: what could not be read of it, in words.

    `message_id`, `references`: for an answer in its thread; `reply_to`: whom an answer goes to.
    """

    head: MailHead
    text: str
    cc: Sequence[MailPerson] = ()
    reply_to: Sequence[MailPerson] = ()
    files: Sequence[MailFile] = ()
    message_id: str = ""
    references: Sequence[str] = ()
    note: str = ""


class MailWanted(Struct, frozen=True, kw_only=True):
    """Mails to be found: all that is said must hold. `words`: each somewhere in subject, people or folder's copy.

    `in_text`: the servers are asked too, for mails with these words in their text; slower. `before`: the id of the last
    one seen, for the next ones. `account_id`, `folder_id`: "" for all that are read.
    """

    words: str = ""
    sender: str = ""
    to: str = ""
    subject: str = ""
    since: datetime | None = None
    until: datetime | None = None
    account_id: str = ""
    folder_id: str = ""
    role: FolderRole = ""
    is_seen: bool | None = None
    is_flagged: bool | None = None
    has_files: bool | None = None
    in_text: bool = False
    most: int = 20
    before: str = ""


class MailsFound(Struct, frozen=True, kw_only=True):
    """Mails, the newest first. `count`: all that there are; `note`: what was not looked through, in words."""

    heads: Sequence[MailHead]
    count: int
    note: str = ""


class MailDraft(Struct, frozen=True, kw_only=True):
    """A mail to be laid among the drafts. `answers`: id of the mail that it answers, in its thread, "" for none.

    `account_id`: "" for the account of the mail that it answers, else the person's first. `to`: empty for whom an
    answer goes to. `subject`: "" for the one of the mail that it answers. `to_all`: those in To and Cc get it too.
    """

    to: Sequence[MailPerson] = ()
    cc: Sequence[MailPerson] = ()
    subject: str = ""
    text: str
    account_id: str = ""
    answers: str = ""
    to_all: bool = False


class MailPlace(Struct, frozen=True, kw_only=True):
    """Where a mail lies, by the server's own count, and what it is: `uids` of one folder are counted anew at times."""

    folder_id: str
    uidvalidity: int
    uid: int
    message_id: str


class MailChange(Struct, frozen=True, kw_only=True):
    """A change, made ready against what is there, so that a second try does the same.

    `data`: of a draft, the whole message; `message_id`: by which it finds itself. `folder_id`: where to. `marks`,
    `unmarks`: of "seen", "flagged", "answered". `places`: the mails; `before`: the marks of each, in that order.
    """

    kind: Literal["draft", "move", "mark"]
    account_id: str
    folder_id: str = ""
    data: str = ""
    message_id: str = ""
    places: Sequence[MailPlace] = ()
    before: Sequence[Sequence[str]] = ()
    marks: Sequence[str] = ()
    unmarks: Sequence[str] = ()


class MailReply(Struct, frozen=True, kw_only=True):
    """An answer in the making: what puts it into its thread stands in `headers`, In-Reply-To and References."""

    to: Sequence[MailPerson]
    subject: str
    headers: Mapping[str, str]


class Mailboxes(Protocol):
    """The mail of one person. ToolFailed, in words, where a server cannot be asked; NotFound for an id that is none."""

    async def accounts(self) -> Sequence[MailAccount]:
        """Every account, with its folders."""
        ...

    async def search(self, wanted: MailWanted) -> MailsFound:
        """The mails that are meant, from the local index; see `in_text`."""
        ...

    async def head(self, id: str) -> MailHead:
        """One mail as in a list."""
        ...

    async def read(self, id: str) -> MailText:
        """The whole of a mail, from its server. It stays as unread as it was."""
        ...

    async def read_all(self, ids: Sequence[str]) -> Mapping[str, MailText]:
        """The whole of several mails, by id: those that are there."""
        ...

    async def thread(self, id: str) -> Sequence[MailHead]:
        """All mails of its conversation that are in the index, the oldest first."""
        ...

    async def file(self, id: str, number: int) -> bytes:
        """An attachment's bytes; ToolFailed for one that is too large."""
        ...

    async def reply(self, id: str, *, to_all: bool = False) -> MailReply:
        """Whom an answer goes to, its subject, and what puts it into the thread."""
        ...

    async def ready_draft(self, key: str, draft: MailDraft) -> MailChange:
        """A draft, ready to be laid down. `key`: of the call; the same one makes the same draft."""
        ...

    async def ready_move(self, ids: Sequence[str], folder_id: str) -> MailChange:
        """Mails of one account, ready to be moved to this folder of it."""
        ...

    async def ready_marks(self, ids: Sequence[str], marks: Sequence[str], unmarks: Sequence[str]) -> MailChange:
        """Mails of one account, ready to be marked."""
        ...

    async def write(self, change: MailChange) -> str:
        """Do it, once however often it is called; what is needed to take it back (`put_back`)."""
        ...

    async def put_back(self, change: MailChange, done: str) -> str:
        """Have it as it was; what is needed to do it again. Conflict where it was changed since."""
        ...
