"""My contacts, and those that others share: found, shown, added, changed, taken away, and the last of these undone."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Form
from fastapi.responses import Response
from msgspec.structs import replace
from pydantic import BaseModel

from cortex.base.errors import Conflict, UserError
from cortex.base.ids import new_id
from cortex.ports.contacts import Contact
from cortex.services.contacts.edits import CHANGED, ContactForm, form_of, version_of
from web.deps import Number, Text
from web.render import MORE, Context, NavEntry, address, described
from web.routes import PageRouter
from web.stretch import PAGE_ROWS, Stretch, part
from web.visit import UserVisit, Visit

router = PageRouter()
HREF = "/contacts"
ONE = HREF + "/{contact_id}"
NAV = NavEntry(
    title="Contacts",
    href=HREF,
    icon="people",
    order=14,
    under=MORE,
    about="Your address book: numbers, addresses, birthdays.",
)
QUERY_CHARACTERS = 200
STALE_MOST = 5  # silent servers that are named: Accounts has all of them
ACCESS: dict[str, Literal["off", "read", "write"]] = {"off": "off", "read": "read", "write": "write"}


class ContactFields(BaseModel):
    """A contact as its form sends it."""

    once: str = ""
    version: str = ""
    name: str = ""
    nickname: str = ""
    organization: str = ""
    emails: str = ""
    phones: str = ""
    addresses: str = ""
    birthday: str = ""
    note: str = ""
    book: str = ""

    @property
    def form(self) -> ContactForm:
        """The contact itself."""
        return ContactForm(**self.model_dump(exclude={"once", "version"}))


class ContactsContext(Context, frozen=True, kw_only=True):
    """The list."""

    contacts: Stretch[Contact] = described("by name, this page's")
    count: int = described("how many there are, of those that were searched for")
    query: str = described("what was searched for, or empty")
    has_book: bool = described("whether any address book is read")
    stale: Sequence[str] = described("address books whose server is silent, with why")


class ContactFormContext(Context, frozen=True, kw_only=True):
    """A contact to write."""

    form: ContactForm = described("the fields as they stand, or as typed when that was refused")


class NewContactContext(ContactFormContext, frozen=True, kw_only=True):
    """A new one."""

    once: str = described("by which the form is known, so that sent twice it adds once")
    books: Sequence[tuple[str, str]] = described("address books to choose from: id, name")


class ContactContext(ContactFormContext, frozen=True, kw_only=True):
    """One that stands."""

    shown: Contact = described("the contact")
    may_change: bool = described("whether this person may write it")
    version: str = described("what the form was filled of")


@router.get(HREF)
async def show(visit: UserVisit, q: str = "", start: Number = 0) -> Response:
    """Return the contacts by name, or those that are searched for."""
    query = " ".join(q.split())[:QUERY_CHARACTERS]
    contacts = visit.services.contacts_of(visit.user.id)
    books = await contacts.books()
    begin = max(0, start)
    rows = await contacts.find(query, most=PAGE_ROWS + 1, offset=begin) if books else []

    def place(**where: object) -> str:
        return address(HREF, q=query, **where)

    context = ContactsContext(
        contacts=part(rows, begin, place),
        count=await contacts.count(query) if books else 0,
        query=query,
        has_book=bool(books),
        stale=[f"{one.label}: {one.is_stale}" for one in books if one.is_stale][:STALE_MOST],
    )
    return await visit.show("contacts.html", context)


@router.get(HREF + "/new")
async def show_new(visit: UserVisit) -> Response:
    """Return the empty form."""
    return await visit.show("contact_new.html", await _new(visit, ContactForm()))


@router.post(HREF + "/new")
async def add(visit: UserVisit, sent: Annotated[ContactFields, Form()]) -> Response:
    """Write it, and lead back to the list."""
    try:
        done = await visit.services.contact_edits.add(visit.user, sent.once, sent.form)
    except UserError as refused:
        context = replace(await _new(visit, sent.form), once=sent.once or new_id())
        return await visit.show("contact_new.html", context, refused=refused)
    return visit.redirect(HREF, f"Added: {done.name}", undo_href=_undo(done.undo))


@router.post(HREF + "/undo/{change_id}")
async def undo(visit: UserVisit, change_id: str) -> Response:
    """Take the last change back."""
    await visit.services.contact_edits.undo(visit.user, change_id)
    return visit.redirect(HREF, "It is as it was before.")


@router.post(HREF + "/books/{book_id}")
async def save_book(visit: UserVisit, book_id: str, access: Text = "", is_shared: Text = "") -> Response:
    """Say what Cortex may do with an address book, and whether the household reads it."""
    await visit.services.contact_books.get(visit.user, book_id)  # another's is not there, whatever is sent
    if access not in ACCESS:
        raise UserError("Choose one of the values of the list.")
    await visit.services.contact_books.set_access(visit.user, book_id, ACCESS[access], is_shared=bool(is_shared))
    return visit.redirect("/calendar/accounts", "Saved.")


@router.get(ONE)
async def show_one(visit: UserVisit, contact_id: str) -> Response:
    """One contact, to read or to change."""
    return await visit.show("contact.html", await _one(visit, contact_id))


@router.post(ONE)
async def save(visit: UserVisit, contact_id: str, sent: Annotated[ContactFields, Form()]) -> Response:
    """Save it, unless it was changed in between: then what was typed stands beside what is there."""
    try:
        done = await visit.services.contact_edits.change(visit.user, contact_id, sent.version, sent.form)
    except (UserError, Conflict) as refused:
        context = replace(await _one(visit, contact_id), form=sent.form)
        said = refused if isinstance(refused, UserError) else Conflict(CHANGED)
        return await visit.show("contact.html", context, refused=said)
    return visit.redirect(f"{HREF}/{contact_id}", f"Saved: {done.name}", undo_href=_undo(done.undo))


@router.get(ONE + "/remove")
async def ask_remove(visit: UserVisit, contact_id: str) -> Response:
    """The question before it goes."""
    shown = await visit.services.contacts_of(visit.user.id).get(contact_id)
    return await visit.ask(
        title=f"Remove {shown.name}?",
        text=f"The contact is taken out of the address book {shown.book.name}. You can undo this.",
        words="Remove",
        back=f"{HREF}/{contact_id}",
    )


@router.post(ONE + "/remove")
async def remove(visit: UserVisit, contact_id: str) -> Response:
    """Take it away."""
    done = await visit.services.contact_edits.remove(visit.user, contact_id)
    return visit.redirect(HREF, f"Removed: {done.name}", undo_href=_undo(done.undo))


async def _new(visit: Visit, form: ContactForm) -> NewContactContext:
    books = await visit.services.contact_edits.writable(visit.user)
    return NewContactContext(form=form, once=new_id(), books=[(one.id, one.name) for one in books])


async def _one(visit: Visit, id: str) -> ContactContext:
    shown = await visit.services.contacts_of(visit.user.id).get(id)
    may_change = shown.book.access == "write" and not shown.book.owner
    return ContactContext(form=form_of(shown), shown=shown, may_change=may_change, version=version_of(shown))


def _undo(key: str) -> str:
    return f"{HREF}/undo/{key}" if key else ""
