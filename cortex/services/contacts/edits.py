"""What a person changes in their contacts by the page: added, changed, taken away, and taken back again."""

import hashlib
import re
import secrets
from collections.abc import Callable, Sequence
from datetime import date

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.crypto import Vault
from cortex.base.errors import Conflict, UserError
from cortex.base.ids import derived_id
from cortex.base.user import User
from cortex.ports.calendars import Written
from cortex.ports.contacts import Contact, ContactBook, ContactDraft, Contacts
from cortex.services.calendars.edits import spoken
from cortex.services.calendars.last_change import LastChanges
from cortex.storage.db import Database

LAST = "contacts-undo"
NAME_CHARACTERS, LINE_CHARACTERS, TEXT_CHARACTERS, VALUES_MOST = 300, 300, 4_000, 20
CHANGED = "This contact was changed while you were writing. What stands now is above; saving replaces it."
_ADDRESS = re.compile(r"[^\s@,;<>\"]{1,64}@[^\s@,;<>\"]{1,190}")


class ContactForm(Struct, frozen=True, kw_only=True):
    """A contact as a form gives it: numbers and mail addresses one on a line, addresses with an empty line between.

    `birthday`: as 1980-12-24, or as 12-24 where the year is not known.
    """

    name: str = ""
    nickname: str = ""
    organization: str = ""
    emails: str = ""
    phones: str = ""
    addresses: str = ""
    birthday: str = ""
    note: str = ""
    book: str = ""


class MadeContact(Struct, frozen=True, kw_only=True):
    """A change that was made. `undo`: by which key it is taken back, "" where it was made before."""

    name: str
    undo: str


class ContactEdits(Struct, frozen=True, kw_only=True):
    """The changes of everybody by the page."""

    db: Database
    vault: Vault
    contacts_of: Callable[[str], Contacts]

    async def writable(self, user: User) -> Sequence[ContactBook]:
        """The address books that this person's contacts may be written to."""
        return [one for one in await self.contacts_of(user.id).books() if one.access == "write" and not one.owner]

    async def add(self, user: User, once: str, form: ContactForm) -> MadeContact:
        """Write a new one. `once`: names it, so that a form that is sent twice adds one."""
        draft = draft_of(form)
        books = await self.writable(user)
        if not books:
            raise UserError("Cortex may write to none of your address books: connect one, or choose *Read and write*.")
        chosen = next((one for one in books if one.id == form.book), None if form.book else books[0])
        if chosen is None:
            raise UserError("Choose one of your address books that Cortex may write to.", field="book")
        contacts = self.contacts_of(user.id)
        uid = f"{derived_id('contact', user.id, once or secrets.token_hex(12))}@cortex"
        written = await spoken(contacts.ready_new(chosen.id, uid, draft))
        try:
            return await self._write(user, contacts, written, draft.name or "")
        except Conflict:  # the same form a second time
            return MadeContact(name=draft.name or "", undo="")

    async def change(self, user: User, id: str, version: str, form: ContactForm) -> MadeContact:
        """Change one; Conflict where it is another than the one that was shown."""
        contacts = self.contacts_of(user.id)
        shown = await contacts.get(id)
        if version_of(shown) != version:
            raise Conflict(CHANGED)
        stands = replace(draft_of(form_of(shown), is_checked=False), birthday=shown.birthday)
        draft = _news(draft_of(form), stands)
        if draft == ContactDraft():
            return MadeContact(name=shown.name, undo="")
        written = await spoken(contacts.ready_change(shown, draft))
        return await self._write(user, contacts, written, draft.name or shown.name)

    async def remove(self, user: User, id: str) -> MadeContact:
        """Take one away."""
        contacts = self.contacts_of(user.id)
        shown = await contacts.get(id)
        return await self._write(user, contacts, await spoken(contacts.ready_removal(shown)), shown.name)

    async def undo(self, user: User, key: str) -> None:
        """Have it as it was ahead of the last change. NotFound where that is not the last one any more."""
        kept = await self._last.of(user.id, key)
        await spoken(self.contacts_of(user.id).put_back(kept.written, kept.version))
        await self._last.forget(user.id)

    async def _write(self, user: User, contacts: Contacts, written: Written, name: str) -> MadeContact:
        version = await spoken(contacts.write(written))
        return MadeContact(name=name, undo=await self._last.keep(user.id, written, version))

    @property
    def _last(self) -> LastChanges:
        return LastChanges(db=self.db, vault=self.vault, name=LAST)


def version_of(shown: Contact) -> str:
    """A digest of all that is shown, to tell that it was changed meanwhile."""
    return hashlib.sha256(repr(form_of(shown)).encode()).hexdigest()[:16]


def form_of(shown: Contact) -> ContactForm:
    """The form as it is filled of what stands."""
    return ContactForm(
        name=shown.name,
        nickname=shown.nickname,
        organization=shown.organization,
        emails="\n".join(one.value for one in shown.emails),
        phones="\n".join(one.value for one in shown.phones),
        addresses="\n\n".join(one.value for one in shown.addresses),
        birthday=shown.birthday.removeprefix("--"),
        note=shown.note,
        book=shown.book.id,
    )


def draft_of(form: ContactForm, *, is_checked: bool = True) -> ContactDraft:
    """Return what a form wants written. UserError names the field, unless it is not to be checked."""
    name = " ".join(form.name.split())
    draft = ContactDraft(
        name=name,
        nickname=" ".join(form.nickname.split()),
        organization=" ".join(form.organization.split()),
        emails=_lines(form.emails),
        phones=_lines(form.phones),
        addresses=[one.strip() for one in re.split(r"\n\s*\n", form.addresses.replace("\r\n", "\n")) if one.strip()],
        birthday=form.birthday.strip(),
        note=form.note.replace("\r\n", "\n").strip(),
    )
    if not is_checked:
        return draft
    if not 0 < len(name) <= NAME_CHARACTERS:
        raise UserError(f"Give them a name of at most {NAME_CHARACTERS} characters.", field="name")
    for field in ("nickname", "organization"):
        if len(getattr(form, field)) > LINE_CHARACTERS:
            raise UserError(f"That is too long: at most {LINE_CHARACTERS} characters.", field=field)
    for field in ("emails", "phones", "addresses"):
        values = getattr(draft, field)
        if len(values) > VALUES_MOST or any(len(one) > LINE_CHARACTERS for one in values):
            raise UserError(f"At most {VALUES_MOST}, each of at most {LINE_CHARACTERS} characters.", field=field)
    wrong = next((one for one in draft.emails or () if not _ADDRESS.fullmatch(one)), "")
    if wrong:
        raise UserError(f"{wrong[:80]} is no e-mail address. Write one on each line.", field="emails")
    if len(form.note) > TEXT_CHARACTERS:
        raise UserError(f"That is too long: at most {TEXT_CHARACTERS:,} characters.", field="note")
    return _replaced_birthday(draft)


def _lines(text: str) -> list[str]:
    """The lines that say something, each once."""
    return list(dict.fromkeys(" ".join(line.split()) for line in text.splitlines() if line.strip()))


def day_said(typed: str) -> str:
    """A birthday as it is written into a card: 1980-12-24, or --12-24 without a year. ValueError for what is no day."""
    bare = typed.strip().removeprefix("--")
    if len(bare) == 5:
        return f"--{date.fromisoformat(f'2000-{bare}'):%m-%d}"
    return date.fromisoformat(bare).isoformat()


def _replaced_birthday(draft: ContactDraft) -> ContactDraft:
    if not draft.birthday:
        return draft
    try:
        said = day_said(draft.birthday)
    except ValueError:
        raise UserError("Write the day as 1980-12-24, or as 12-24 without the year.", field="birthday") from None
    return replace(draft, birthday=said)


def _news(draft: ContactDraft, stands: ContactDraft) -> ContactDraft:
    """Only what is said otherwise than it stands."""
    return ContactDraft(
        **{
            name: getattr(draft, name)
            for name in ContactDraft.__struct_fields__
            if getattr(draft, name) != getattr(stands, name)
        }
    )
