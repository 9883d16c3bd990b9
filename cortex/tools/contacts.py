"""The user's contacts, and those that others share: look somebody up, add, change, take away.

A change is made ready ahead of the question and kept (`aim`, `Ctx.target`), so what was asked about is what is written,
once. What stands in a card came from other programs and people: whoever reads it has read words from outside.
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from cortex.base.errors import ToolFailed
from cortex.base.ids import derived_id, short
from cortex.base.zone import local
from cortex.ports.calendars import Written
from cortex.ports.contacts import Contact, ContactBook, ContactDraft, Contacts, ContactValue
from cortex.ports.loop import Readers
from cortex.toolkit.contacts import ADDRESS, books_of, meant, writable
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.server_changes import make, readers_of, take_back, target_of
from cortex.toolkit.spec import Output
from cortex.toolkit.words import counted

SUMMARY = "contacts and birthdays"
PREFIXES = ("contact_",)
NEEDS = ("Contacts",)
ROLES = {"orchestrator": ("contacts",)}
TESTED = "Radicale and Xandikos, the real servers"
SHOWN, NOTE_CHARACTERS = 8, 300
NAME_CHARACTERS, VALUE_CHARACTERS, TEXT_CHARACTERS = 200, 300, 2_000
DAYS_MOST = 366
_NUMBER = re.compile(r"[+\d][\d\s()/.-]*")


@tool(
    words="Look up[ {name}][ birthdays of {birthday_days} days]",
    effect="read",
    reads_private=True,
    reads_untrusted=True,
)
async def contact_find(ctx: Ctx, name: str = "", birthday_days: int = 0) -> Output:
    """Look somebody up: number, addresses, birthday.

    Args:
        name: Name or company.
        birthday_days: Or birthdays of so many days.
    """
    await books_of(ctx)
    contacts = ctx.use(Contacts)
    if birthday_days > 0:
        return await _birthdays(ctx, min(birthday_days, DAYS_MOST))
    if not name.strip():
        raise ToolFailed("Say whom to look up: a name, a company or part of one.")
    found = await contacts.find(name.strip(), most=SHOWN)
    if not found:
        return Output(text=f"No contact fits {name[:80]!r}.", words="no contact")
    count = await contacts.count(name.strip())
    lines = [_said(one, is_whole=len(found) <= 2) for one in found]
    if count > len(found):
        lines.append(f"... and {count - len(found)} more: ask for more of the name.")
    return Output(text="\n".join(lines), words=counted(count, "contact"))


async def _birthdays(ctx: Ctx, days: int) -> Output:
    today = local(ctx.now, ctx.user.time_zone).date()
    coming = {f"{today + timedelta(days=count):%m-%d}": today + timedelta(days=count) for count in range(days)}
    found = await ctx.use(Contacts).born_on(list(coming))
    lines = [(coming[one.birthday[-5:]], f"{one.name}{_age(one, coming[one.birthday[-5:]])}") for one in found]
    if not lines:
        return Output(text="No birthday then.", words="no birthday")
    told = [f"- {day.isoformat()}: {said}" for day, said in sorted(lines)]
    return Output(text="\n".join(told[:60]), words=counted(len(lines), "birthday"))


async def _readers(ctx: Ctx, **_: Any) -> list[Readers]:
    return readers_of(writable(await books_of(ctx)))


async def _readers_of(ctx: Ctx, contact: str, **_: Any) -> list[Readers]:
    return readers_of((await meant(ctx, contact)).book)


async def _to_add(ctx: Ctx, given: dict[str, Any]) -> dict[str, Any]:
    async def ready() -> dict[str, Any]:
        book = writable(await books_of(ctx))
        draft = ContactDraft(
            name=_bounded(given["name"], NAME_CHARACTERS, "name"),
            emails=[_address(given["email"])] if given["email"] else None,
            phones=[_bounded(given["phone"], VALUE_CHARACTERS, "number")] if given["phone"] else None,
            addresses=[_bounded(given["address"], VALUE_CHARACTERS, "address")] if given["address"] else None,
            birthday=_birthday(given["birthday"]) if given["birthday"] else None,
            note=_bounded(given["note"], TEXT_CHARACTERS, "note") if given["note"] else None,
        )
        uid = f"{derived_id(ctx.call_id, 'contact')}@cortex"
        written = await ctx.use(Contacts).ready_new(book.id, uid, draft)
        values = [*(draft.emails or ()), *(draft.phones or ())]
        return _target(written, f"{draft.name}{': ' if values else ''}{', '.join(values)}", book)

    return await ctx.target(ready)


async def _where_added(ctx: Ctx, **given: Any) -> str:
    return str((await _to_add(ctx, given))["aim"])


@tool(
    words="Add {name} to the contacts[, {email}][, {phone}]",
    idempotent=True,
    read_by=_readers,
    aim=_where_added,
)
async def contact_add(
    ctx: Ctx,
    name: str,
    email: str = "",
    phone: str = "",
    address: str = "",
    birthday: str = "",
    note: str = "",
) -> str:
    """Put somebody into the address book.

    Args:
        name: Whole name.
        email: E-mail address.
        phone: Number.
        address: Where they live.
        birthday: 1980-12-24 or 12-24.
        note: More words.
    """
    given = {
        "name": name, "email": email, "phone": phone, "address": address, "birthday": birthday, "note": note,
    }  # fmt: skip
    return await _written(ctx, await _to_add(ctx, given), "Added", "Take it out again")


async def _to_change(ctx: Ctx, given: dict[str, Any]) -> dict[str, Any]:
    async def ready() -> dict[str, Any]:
        found = await meant(ctx, given["contact"])
        gone, (kind, new) = _key(given["remove"]), _kind(given["add"])
        draft = ContactDraft(
            name=_bounded(given["name"], NAME_CHARACTERS, "name") if given["name"] else None,
            emails=_others(found.emails, new if kind == "email" else "", gone),
            phones=_others(found.phones, new if kind == "phone" else "", gone),
            addresses=_others(found.addresses, new if kind == "address" else "", gone),
            birthday="" if gone == "birthday" else _birthday(given["birthday"]) if given["birthday"] else None,
            note="" if gone == "note" else _bounded(given["note"], TEXT_CHARACTERS, "note") if given["note"] else None,
        )
        known = {_key(one.value) for one in (*found.emails, *found.phones, *found.addresses)}
        if gone and gone not in {*known, "birthday", "note"}:
            raise ToolFailed("What is to go is not there. contact_find shows what there is; say it whole.")
        if draft == ContactDraft():
            raise ToolFailed("Say what is to change: name, add, remove, birthday, note.")
        written = await ctx.use(Contacts).ready_change(found, draft)
        said = ", ".join(_news(given))
        return _target(written, f"{given['contact']}: {said}", found.book, f"{found.name}: {said}")

    return await ctx.target(ready)


async def _where_changed(ctx: Ctx, **given: Any) -> str:
    return str((await _to_change(ctx, given))["aim"])


@tool(
    words="Change the contact {contact}[: {add}][, without {remove}]",
    idempotent=True,
    reads_private=True,
    read_by=_readers_of,
    aim=_where_changed,
)
async def contact_change(
    ctx: Ctx,
    contact: str,
    name: str = "",
    add: str = "",
    remove: str = "",
    birthday: str = "",
    note: str = "",
) -> str:
    """Change a contact.

    Args:
        contact: Id or name.
        name: New name.
        add: A number or address.
        remove: An old one; birthday; note.
        birthday: 1980-12-24 or 12-24.
        note: New note.
    """
    given = {
        "contact": contact, "name": name, "add": add, "remove": remove, "birthday": birthday, "note": note,
    }  # fmt: skip
    return await _written(ctx, await _to_change(ctx, given), "Changed", "Change it back")


async def _to_remove(ctx: Ctx, contact: str) -> dict[str, Any]:
    async def ready() -> dict[str, Any]:
        found = await meant(ctx, contact)
        return _target(await ctx.use(Contacts).ready_removal(found), contact.strip(), found.book, found.name)

    return await ctx.target(ready)


async def _where_removed(ctx: Ctx, contact: str) -> str:
    return str((await _to_remove(ctx, contact))["aim"])


@tool(
    words="Take {contact} out of the contacts",
    ends=True,
    idempotent=True,
    reads_private=True,
    read_by=_readers_of,
    aim=_where_removed,
)
async def contact_remove(ctx: Ctx, contact: str) -> str:
    """Take somebody out of the address book.

    Args:
        contact: Id or name.
    """
    return await _written(ctx, await _to_remove(ctx, contact), "Removed", "Put it back")


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Have a contact as it was. Conflict when it changed since."""
    return await take_back(ctx, ctx.use(Contacts), target, before, expected)


async def _written(ctx: Ctx, target: dict[str, Any], said: str, label: str) -> str:
    return await make(ctx, ctx.use(Contacts), Written, target, said, label)


def _target(written: Written, fact: str, book: ContactBook, shown: str = "") -> dict[str, Any]:
    """Return what a call does. `fact`: in words of the call itself; `shown`: with the name as it stands in the card."""
    return target_of(written, fact, f"{book.label}: {shown or fact}", book)


def _said(one: Contact, *, is_whole: bool) -> str:
    """One contact, in a line; `is_whole`: with the note, and where they live."""
    parts = [
        f"also {one.nickname}" if one.nickname else "",
        ", ".join(filter(None, (one.role, one.organization))),
        *(_value("phone", value) for value in one.phones[:6]),
        *(_value("email", value) for value in one.emails[:6]),
        *(_value("address", value) for value in one.addresses[: 6 if is_whole else 0]),
        f"birthday {one.birthday.removeprefix('--')}" if one.birthday else "",
        f"note: {' '.join(one.note.split())[:NOTE_CHARACTERS]}" if one.note and is_whole else "",
        f"in {one.book.label}" if one.book.owner else "",
        f"as of its last reading: {one.book.is_stale}" if one.book.is_stale and is_whole else "",
    ]
    return f"- {one.name} (#{short(one.id)}): {'; '.join(filter(None, parts)) or 'nothing else is known'}"


def _value(kind: str, one: ContactValue) -> str:
    return f"{kind}{f' ({one.label})' if one.label else ''} {', '.join(one.value.splitlines())}"


def _age(one: Contact, day: date) -> str:
    return "" if one.birthday.startswith("--") else f", {day.year - int(one.birthday[:4])}"


def _others(stands: Sequence[ContactValue], new: str, gone: str) -> list[str] | None:
    """The values without the one that goes, and with a new one; None where that is as it is."""
    kept = [one.value for one in stands if _key(one.value) != gone]
    added = [new] if new and _key(new) not in {_key(value) for value in kept} else []
    return [*kept, *added] if added or len(kept) < len(stands) else None


def _kind(text: str) -> tuple[str, str]:
    """Return what a new value is, by its signs, and how it is written. ToolFailed for a mail address that is none."""
    if not text.strip():
        return "", ""
    if "@" in text:
        return "email", _address(text)
    said = _bounded(text, VALUE_CHARACTERS, "value")
    return ("phone" if _NUMBER.fullmatch(said) else "address"), said


def _news(given: dict[str, Any]) -> list[str]:
    fields = ("name", "add", "birthday", "note")
    said = [given[name] if name == "add" else f"{name} {given[name]}" for name in fields if given[name]]
    return [*said, *([f"without {given['remove']}"] if given["remove"] else [])]


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()


def _address(text: str) -> str:
    if not ADDRESS.fullmatch(text.strip()):
        raise ToolFailed(f"{text[:80]!r} is no e-mail address.")
    return text.strip()


def _birthday(text: str) -> str:
    """The day as it is kept. ToolFailed for what is none."""
    bare = text.strip().removeprefix("--")
    try:
        if len(bare) == 5:
            return f"--{date.fromisoformat(f'2000-{bare}'):%m-%d}"
        return date.fromisoformat(bare).isoformat()
    except ValueError:
        raise ToolFailed(f"{text[:40]!r} is no birthday: write 1980-12-24, or 12-24 without the year.") from None


def _bounded(text: str, most: int, what: str) -> str:
    words = text.strip()
    if not 0 < len(words) <= most:
        raise ToolFailed(f"The {what} of a contact has 1 to {most} characters.")
    return words
