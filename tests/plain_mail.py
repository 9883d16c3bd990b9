"""A mailbox in memory, of one person with one account: what `services/mail` gives of a real one (`ports/mail.py`).

It outlives the process that asks it, and does each change once, as a real one finds what it did itself.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from cortex.base.errors import Conflict, NotFound, ToolFailed
from cortex.ports.mail import (
    FolderRole,
    MailAccount,
    MailChange,
    MailDraft,
    MailFile,
    MailFolder,
    MailHead,
    MailPerson,
    MailPlace,
    MailReply,
    MailsFound,
    MailText,
    MailWanted,
)

OWN = "ann@example.org"
FOLDERS: tuple[tuple[str, FolderRole], ...] = (
    ("INBOX", "inbox"), ("Drafts", "drafts"), ("Sent", "sent"), ("Archive", "archive"), ("Junk", "junk"),
    ("Trash", "trash"), ("Work/Bills", ""), ("Home/Bills", ""), ("School", ""),
)  # fmt: skip
FIRST = datetime(2026, 11, 20, 8, tzinfo=UTC)


@dataclass
class PlainMail:
    """Its mails by id; `files`: what is attached, by mail and number; `done`: changes by what they are."""

    texts: dict[str, MailText] = field(default_factory=dict)
    files: dict[tuple[str, int], bytes] = field(default_factory=dict)
    drafts: dict[str, str] = field(default_factory=dict)
    asked: list[MailWanted] = field(default_factory=list)
    stale: str = ""
    second: bool = False

    def hold(
        self, id: str, subject: str, text: str = "Hello.", *, sender: str = "ben@example.org", name: str = "Ben",
        folder: str = "INBOX", thread: str = "", files: Mapping[str, bytes] | None = None, account: str = "own",
    ) -> str:  # fmt: skip
        """Have a mail there, an hour after the one before."""
        attached = [
            MailFile(number=number, name=name, media_type="application/pdf", size=len(data))
            for number, (name, data) in enumerate((files or {}).items(), 1)
        ]
        self.files |= {(id, number): data for number, data in enumerate((files or {}).values(), 1)}
        head = MailHead(
            id=id, account_id=account, folder=_folder(folder, account), sender=MailPerson(address=sender, name=name),
            to=[MailPerson(address=OWN)], subject=subject, at=FIRST + timedelta(hours=len(self.texts)),
            thread=thread or id, has_files=bool(files),
        )  # fmt: skip
        self.texts[id] = MailText(head=head, text=text, files=attached, message_id=f"<{id}@example.org>")
        return id

    def where(self, id: str) -> str:
        return self.texts[id].head.folder.name

    async def accounts(self) -> Sequence[MailAccount]:
        made = [MailAccount(id="own", label=OWN, address=OWN, folders=_folders("own"), is_stale=self.stale)]
        if self.second:
            address = "office@example.com"
            made.append(MailAccount(id="office", label=address, address=address, folders=_folders("office")))
        return made

    async def search(self, wanted: MailWanted) -> MailsFound:
        self.asked.append(wanted)
        found = [
            one.head
            for one in self.texts.values()
            if (not wanted.words or wanted.words.casefold() in f"{one.head.subject} {one.head.sender.name}".casefold())
            and (not wanted.sender or wanted.sender in (one.head.sender.address, one.head.sender.name))
            and (not wanted.folder_id or wanted.folder_id == one.head.folder.id)
            and (not wanted.role or wanted.role == one.head.folder.role)
            and wanted.is_seen in (None, one.head.is_seen)
            and wanted.is_flagged in (None, one.head.is_flagged)
        ]
        found.sort(key=lambda one: one.at, reverse=True)
        if wanted.before:
            last = await self.head(wanted.before)
            found = [one for one in found if one.at < last.at]
        return MailsFound(heads=found[: wanted.most], count=len(found))

    async def head(self, id: str) -> MailHead:
        return (await self.read(id)).head

    async def read(self, id: str) -> MailText:
        if id not in self.texts:
            raise NotFound("There is no such mail.")
        return self.texts[id]

    async def read_all(self, ids: Sequence[str]) -> Mapping[str, MailText]:
        return {id: self.texts[id] for id in ids if id in self.texts}

    async def thread(self, id: str) -> Sequence[MailHead]:
        name = (await self.head(id)).thread
        return [one.head for one in self.texts.values() if one.head.thread == name]

    async def file(self, id: str, number: int) -> bytes:
        return self.files[id, number]

    async def reply(self, id: str, *, to_all: bool = False) -> MailReply:
        found = await self.read(id)
        headers = {"In-Reply-To": found.message_id, "References": found.message_id}
        return MailReply(
            to=[found.head.sender], subject=f"Re: {found.head.subject.removeprefix('Re: ')}", headers=headers
        )

    async def ready_draft(self, key: str, draft: MailDraft) -> MailChange:
        reply = await self.reply(draft.answers) if draft.answers else None
        to = [one.address for one in draft.to or (reply.to if reply else ())]
        data = {"to": to, "subject": draft.subject or (reply.subject if reply else ""), "text": draft.text}
        return MailChange(
            kind="draft", account_id=draft.account_id or "own", folder_id="own:Drafts", data=json.dumps(data),
            message_id=f"<{key}@cortex>",
        )  # fmt: skip

    async def ready_move(self, ids: Sequence[str], folder_id: str) -> MailChange:
        heads = [await self.head(id) for id in ids]
        return MailChange(
            kind="move", account_id=heads[0].account_id, folder_id=folder_id, places=[_place(one) for one in heads]
        )

    async def ready_marks(self, ids: Sequence[str], marks: Sequence[str], unmarks: Sequence[str]) -> MailChange:
        heads = [await self.head(id) for id in ids]
        before = [[name for name in ("seen", "flagged") if getattr(one, f"is_{name}")] for one in heads]
        places = [_place(one) for one in heads]
        return MailChange(
            kind="mark", account_id=heads[0].account_id, places=places, before=before, marks=marks, unmarks=unmarks
        )

    async def write(self, change: MailChange) -> str:
        if change.kind == "draft":
            self.drafts[change.message_id] = change.data
        for place in change.places:
            values: dict[str, object] = {f"is_{name}": True for name in change.marks}
            values |= {f"is_{name}": False for name in change.unmarks}
            if change.kind == "move":
                values["folder"] = _by_id(change.folder_id)
            self._set(place, values)
        return "done"

    async def put_back(self, change: MailChange, done: str) -> str:
        if done == "undone":
            return await self.write(change)
        if change.kind == "draft":
            if self.drafts.get(change.message_id) != change.data:
                raise Conflict("The draft was changed.")
            del self.drafts[change.message_id]
        for place, before in zip(change.places, change.before or [()] * len(change.places), strict=True):
            values: dict[str, object] = {f"is_{name}": name in before for name in (*change.marks, *change.unmarks)}
            if change.kind == "move":
                values["folder"] = _by_id(place.folder_id)
            self._set(place, values)
        return "undone"

    def _set(self, place: MailPlace, values: Mapping[str, object]) -> None:
        id = place.message_id.strip("<>").partition("@")[0]
        if id not in self.texts:
            raise ToolFailed("This mail is not on the server any more.")
        found = self.texts[id]
        self.texts[id] = replace(found, head=replace(found.head, **values))


def _place(head: MailHead) -> MailPlace:
    return MailPlace(folder_id=head.folder.id, uidvalidity=1, uid=1, message_id=f"<{head.id}@example.org>")


def _folders(account: str) -> list[MailFolder]:
    return [MailFolder(id=f"{account}:{name}", account_id=account, name=name, role=role) for name, role in FOLDERS]


def _folder(name: str, account: str) -> MailFolder:
    return next(one for one in _folders(account) if one.name == name)


def _by_id(id: str) -> MailFolder:
    account, _, name = id.partition(":")
    return _folder(name, account)
