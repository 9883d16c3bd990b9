"""Carries words away: push to the user's own devices, a message to a housemate, mail, Nextcloud Talk.

Out of the house only after a yes.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from cortex.base.errors import NotFound, ToolFailed
from cortex.base.ids import derived_id
from cortex.base.zone import moment
from cortex.ports.mail import Mailboxes
from cortex.ports.outgoing import Mail, Post, Push, Room, Talk
from cortex.toolkit.contacts import ADDRESS, address_of
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.people import read_by_them, somebody, whom
from cortex.toolkit.words import short

SUMMARY = "push, e-mail, Nextcloud Talk"
PREFIXES = ("web_push", "email_", "nc_talk_")
ROLES = {"orchestrator": ("web_push",)}
ADMIN_ROLES = {"orchestrator": ("notifications",)}
TESTED = "aiosmtpd, a push endpoint that decrypts; Talk by a double of its documented API"
SAMPLES = {"web_push": {"text": "the wash is done"}}
TITLE_CHARACTERS = 100
PUSH_CHARACTERS = 1_000
SUBJECT_CHARACTERS = 200
MAIL_CHARACTERS = 50_000
RECIPIENTS = 10
OWN = ("me", "myself")
TALK_CHARACTERS = 32_000  # Talk refuses more
POST_CHARACTERS = 800
NO_ADDRESS = "{word!r} is not an e-mail address; ask the user for it. Nothing was sent."


async def _can_push(ctx: Ctx, text: str, title: str, person: str) -> None:
    _bounded(text, PUSH_CHARACTERS, "message")
    await somebody(ctx, person)


def _deed(arguments: Mapping[str, Any]) -> str:
    return f"Notify {whom(arguments, 'your devices')}: {short(arguments['text'])}"


@tool(words=_deed, idempotent=True, needs=("Push",), check=_can_push, read_by=read_by_them)
async def web_push(ctx: Ctx, text: str, title: str = "Cortex", person: str = "") -> str:
    """Send a push notification to the user's own devices.

    Args:
        text: The message.
        title: Its heading.
        person: Name of a housemate to tell instead.
    """
    words = _bounded(text, PUSH_CHARACTERS, "message")
    for_id, name = await somebody(ctx, person)
    if for_id:
        await ctx.use(Push).tell(derived_id(ctx.call_id, "push"), for_id, f"From {ctx.user.name}", words)
        return f"Told {name}: {words}"
    head = " ".join(title.split())[:TITLE_CHARACTERS] or "Cortex"
    pushed = await ctx.use(Push).push(derived_id(ctx.call_id, "push"), head, words)
    if not pushed.devices and not pushed.failed and not pushed.waiting:
        raise ToolFailed("The user has no device for push yet; they can add one under Notifications.")
    if not pushed.devices and not pushed.waiting:
        raise ToolFailed("No device could be reached; the message was not shown.")
    lost = f"; {pushed.failed} could not be reached" if pushed.failed else ""
    if not pushed.devices:
        return f"Not shown yet: {_devices(pushed.waiting)} will get it later (quiet hours, or no answer yet){lost}."
    later = f"; {_devices(pushed.waiting)} will get it later" if pushed.waiting else ""
    return f"Pushed to {_devices(pushed.devices)}{later}{lost}."


async def _meant(ctx: Ctx, to: str, answers: str = "") -> dict[str, Any]:
    """To whom it goes, names of contacts as their addresses, and in which thread, kept: this is what the person allows.

    ToolFailed where the user has no such mail to answer.
    """
    words = [word.strip() for word in re.split(r"[,;]", to) if word.strip()]

    async def find() -> dict[str, Any]:
        named = [word if word.casefold() in OWN else await _address(ctx, word) for word in words]
        return {"to": named, "thread": dict(await _thread(ctx, answers))}

    if answers.strip():
        ctx.note_private("which mail is answered")
    elif all(word.casefold() in OWN or ADDRESS.fullmatch(word) for word in words):
        return {"to": words, "thread": {}}
    return await ctx.target(find)


async def _address(ctx: Ctx, word: str) -> str:
    found = await address_of(ctx, word)
    if not found:
        raise ToolFailed(NO_ADDRESS.format(word=word[:80]))
    return found


async def _addressed(ctx: Ctx, to: str, answers: str = "", **_: object) -> str:
    return ", ".join((await _meant(ctx, to, answers))["to"]).lower()


async def _letter(ctx: Ctx, to: Sequence[str], subject: str, text: str) -> tuple[list[str], str, str]:
    """The addresses, the subject and the text as they are sent; ToolFailed for what no mail server would take."""
    addresses = await _addresses(ctx, to)
    head = " ".join(subject.split())
    if not 0 < len(head) <= SUBJECT_CHARACTERS:
        raise ToolFailed(f"A subject has 1 to {SUBJECT_CHARACTERS} characters; nothing was sent.")
    return addresses, head, _bounded(text, MAIL_CHARACTERS, "mail")


async def _can_mail(ctx: Ctx, to: str, subject: str, text: str, answers: str) -> None:
    await _letter(ctx, (await _meant(ctx, to, answers))["to"], subject, text)


async def _thread(ctx: Ctx, answers: str) -> Mapping[str, str]:
    """Return what puts an answer into the thread of this mail; ToolFailed where the user has no such mail."""
    if not answers.strip():
        return {}
    try:
        return (await ctx.use(Mailboxes).reply(answers.strip().removeprefix("#"))).headers
    except NotFound as error:
        raise ToolFailed("No mail has this id. mail_search finds ids; leave answers out for a new mail.") from error


@tool(
    words="Send e-mail to {to}: {subject}",
    risk="high",
    sends_out=True,
    needs=("Mail",),
    check=_can_mail,
    aim=_addressed,
)
async def email_send(ctx: Ctx, to: str, subject: str, text: str, answers: str = "") -> str:
    """Send an e-mail.

    Args:
        to: Addresses or contacts with commas between; me is the user.
        subject: Its subject.
        text: The mail, plain.
        answers: Id of the mail that it answers.
    """
    meant = await _meant(ctx, to, answers)
    addresses, head, words = await _letter(ctx, meant["to"], subject, text)
    await ctx.use(Mail).send_mail(derived_id(ctx.call_id, "mail"), addresses, head, words, meant["thread"])
    return f"Sent to {', '.join(addresses)}."


async def _aimed(ctx: Ctx, to: str, text: str) -> dict[str, Any]:
    """The room that is meant, kept: what the person allows is this room, whatever bears its name by then."""
    if to.strip().casefold() in OWN:  # the gate takes these words for the user; a room may bear any name
        raise ToolFailed("Say which room; web_push and email_send reach the user.")
    _bounded(text, TALK_CHARACTERS, "message")

    async def find() -> dict[str, Any]:
        # The room of exactly this name: one that only holds it may be anybody's.
        room = _room(await ctx.use(Talk).rooms(), to, is_whole=True)
        return {"token": room.token, "name": room.name}

    return await ctx.target(find)


async def _place(ctx: Ctx, to: str, text: str) -> str:
    room = await _aimed(ctx, to, text)
    return f"{room['name']} (room {room['token']})"


@tool(words="Post in {to}: {text}", risk="high", sends_out=True, reads_private=True, needs=("Talk",), aim=_place)
async def nc_talk_send(ctx: Ctx, to: str, text: str) -> str:
    """Post a message in a Nextcloud Talk room.

    Args:
        to: The room's name.
        text: The message.
    """
    room = await _aimed(ctx, to, text)
    await ctx.use(Talk).post(derived_id(ctx.call_id, "talk"), room["token"], text.strip())
    return f"Posted in {to.strip()!r}."


@tool(
    words="Read messages in Nextcloud Talk[: {room}]",
    risk="medium",
    effect="read",
    reads_private=True,
    reads_untrusted=True,
    needs=("Talk",),
)
async def nc_talk_history(
    ctx: Ctx, room: str = "", count: Annotated[int, Field(ge=1, le=50)] = 20, before: int | None = None
) -> str:
    """Read the latest messages of a Nextcloud Talk room.

    Args:
        room: Its name; empty lists the rooms.
        count: How many.
        before: Only those ahead of this message id.
    """
    talk = ctx.use(Talk)
    rooms = await talk.rooms()
    if not room.strip():
        lines = [f"- {one.name}" + (f" ({one.unread} unread)" if one.unread else "") for one in rooms[:50]]
        return "\n".join(lines) or "There is no room."
    found = _room(rooms, room)
    posts = await talk.history(found.token, count, before)
    if not posts:
        return f"Nothing {'earlier ' if before else ''}is in {found.name!r}."
    lines = [_line(ctx, post) for post in posts]
    more = [f"[earlier ones: before={posts[0].id}]"] if len(posts) == count else []
    return "\n".join([f"{found.name}:", *lines, *more])


def _devices(count: int) -> str:
    return f"{count} device{'' if count == 1 else 's'}"


def _bounded(text: str, most: int, what: str) -> str:
    words = text.strip()
    if not 0 < len(words) <= most:
        raise ToolFailed(f"A {what} has 1 to {most} characters; nothing was sent.")
    return words


async def _addresses(ctx: Ctx, to: Sequence[str]) -> list[str]:
    """The recipients, each once; ToolFailed for what is no address, and for "me" when the user has none."""
    found: list[str] = []
    for name in to:
        if name.casefold() in OWN:
            name = await ctx.use(Mail).own_address()
            ctx.note_private("the user's address")
            if not name:
                raise ToolFailed("The user has no address of their own set; ask for it.")
        found.append(name)
    wrong = [name for name in found if not ADDRESS.fullmatch(name)]
    if wrong or not found:
        raise ToolFailed(NO_ADDRESS.format(word=next(iter(wrong), "")[:80]))
    if len(set(found)) > RECIPIENTS:
        raise ToolFailed(f"A mail goes to {RECIPIENTS} addresses at most; nothing was sent.")
    return list(dict.fromkeys(found))


def _room(rooms: Sequence[Room], wanted: str, *, is_whole: bool = False) -> Room:
    """The one room that is meant, `is_whole`: by its whole name or token; ToolFailed names the candidates."""
    key = " ".join(wanted.casefold().split()).removeprefix("#")
    exact = [room for room in rooms if key in (room.name.casefold(), room.token.casefold())]
    hits = exact or [room for room in rooms if key and key in room.name.casefold()]
    if len(hits) == 1 and (exact or not is_whole):
        return hits[0]
    names = ", ".join(repr(room.name) for room in (hits or rooms)[:12])
    if hits:
        told = f"{len(hits)} rooms fit" if len(hits) > 1 else "One room holds"
        raise ToolFailed(f"{told} {wanted!r}: {names}. Say which, by its whole name.", is_tainted=True)
    raise ToolFailed(f"There is no room {wanted!r}. Rooms: {names or 'none'}.", is_tainted=bool(names))


def _line(ctx: Ctx, post: Post) -> str:
    cut = "..." if len(post.text) > POST_CHARACTERS else ""
    return f"- {moment(post.at, ctx.user.time_zone)} {post.author}: {post.text[:POST_CHARACTERS]}{cut}"
