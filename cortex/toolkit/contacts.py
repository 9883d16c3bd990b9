"""Finds the contact that words mean, and the mail address behind a name; where several fit, the user is asked.

What is said then quotes no contact: how many fit is enough to ask for the whole name.
"""

import re
import unicodedata
from collections.abc import Sequence

from cortex.base.errors import ToolFailed
from cortex.base.ids import SHORT_CHARACTERS
from cortex.ports.contacts import Contact, ContactBook, Contacts
from cortex.toolkit.context import Ctx

LOOKED_AT = 200
NO_BOOK = "No address book is connected. The user connects one on the page Contacts."
KINDS = ("home", "work", "school", "other", "mobile")  # labels that may be said: the rest is somebody's own words
ADDRESS = re.compile(r"[^\s@,;<>\"]{1,64}@[^\s@,;<>\"]{1,190}\.[^\s@,;<>\".]{2,24}")
_KIND = re.compile(r"(.+?)\s*\(([^()]+)\)")


async def books_of(ctx: Ctx) -> Sequence[ContactBook]:
    """Every address book that the user may read, their own first; ToolFailed where there is none."""
    books = await ctx.use(Contacts).books()
    if not books:
        raise ToolFailed(NO_BOOK)
    return books


def writable(books: Sequence[ContactBook]) -> ContactBook:
    """The first of the user's own address books that Cortex may write to; ToolFailed where there is none."""
    open_ones = [one for one in books if not one.owner and one.access == "write"]
    if not open_ones:
        raise ToolFailed("Cortex may not write there: the user sets that on the page Contacts.")
    return open_ones[0]


async def meant(ctx: Ctx, wanted: str) -> Contact:
    """The one contact that is meant: of the user's own before others'. ToolFailed where none or several fit."""
    key = " ".join(wanted.casefold().split()).removeprefix("#")
    if not key:
        raise ToolFailed("Say which contact: the id, or the name.")
    hits = await _named(ctx, key)
    if not hits:
        raise ToolFailed(f"No contact is called {wanted[:80]!r}. contact_find shows who there is.")
    if len(hits) > 1:
        raise ToolFailed(f"{len(hits)} contacts fit {wanted[:80]!r}: take the id that contact_find says.")
    return hits[0]


async def address_of(ctx: Ctx, wanted: str) -> str:
    """The mail address that a word means: itself, or of the one contact of this name; "" where it means none.

    ToolFailed where several fit, or the contact has none; "Mia (work)" says which of several addresses.
    """
    text = " ".join(wanted.split())
    if ADDRESS.fullmatch(text):
        return text
    split = _KIND.fullmatch(text)
    name, kind = (split[1], split[2].casefold()) if split else (text, "")
    if not name or "@" in name:
        return ""
    hits = await _named(ctx, name.casefold())
    if not hits:
        return ""
    own = {tuple(sorted(one.value.casefold() for one in hit.emails)): hit for hit in hits if hit.emails}
    if not own:
        raise ToolFailed(f"The contact {name[:80]!r} has no e-mail address; ask the user for it.")
    if len(own) > 1:
        raise ToolFailed(f"{len(own)} contacts fit {name[:80]!r}; ask the user for the whole name. Nothing was sent.")
    ctx.note_private("the address of a contact")
    return _one_of(name, kind, next(iter(own.values())))


def _one_of(name: str, kind: str, contact: Contact) -> str:
    found = [one for one in contact.emails if not kind or kind in one.label.split(", ")]
    if len(found) == 1 and ADDRESS.fullmatch(found[0].value):
        return found[0].value
    known = sorted({label for one in contact.emails for label in one.label.split(", ") if label in KINDS})
    ways = f", such as {name[:80]} ({known[0]}). There are: {', '.join(known)}" if known else ""
    raise ToolFailed(f"{name[:80]!r} has {len(contact.emails)} addresses; ask the user which{ways}. Nothing was sent.")


async def _named(ctx: Ctx, key: str) -> Sequence[Contact]:
    """Those that the words name: by name of the user's own before others', else by the id."""
    contacts = ctx.use(Contacts)
    rows = await contacts.find(key, most=LOOKED_AT)
    hits = _hits([row for row in rows if not row.book.owner], key) or _hits(rows, key)
    if not hits and key.isalnum() and len(key) >= SHORT_CHARACTERS:
        return await contacts.of_id(key)
    return hits


def _hits(rows: Sequence[Contact], key: str) -> list[Contact]:
    wanted = _plain(key)
    words = set(wanted.split())
    ways = (
        [row for row in rows if _plain(row.name) == wanted],
        [row for row in rows if _plain(row.nickname) == wanted or words <= set(_plain(row.name).split())],
        [row for row in rows if wanted in _plain(row.name)],
    )
    return next((one for one in ways if one), [])


def _plain(text: str) -> str:
    """The text without case and accents."""
    spread = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in spread if not unicodedata.combining(sign))
