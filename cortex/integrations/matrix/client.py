"""Cortex's account at Matrix as a messenger: what came since the last look, what goes out under words that hold once.

Nothing plain goes into an encrypted room, and nothing of one person's own into a room in which somebody else is: both
are looked up ahead of each message.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast
from urllib.parse import quote

from msgspec.structs import replace

from cortex.base import scan
from cortex.base.errors import ToolFailed
from cortex.base.ids import derived_id, new_id
from cortex.integrations.cards.matrix import MatrixForm
from cortex.integrations.matrix import events
from cortex.integrations.matrix.answers import EventPage, Joined, MadeRoom, SentEvent, Sync
from cortex.integrations.matrix.events import MatrixRoom, Me
from cortex.integrations.matrix.server import CLIENT, TOTAL_S, MatrixRefused, MatrixServer
from cortex.ports.integrations import LoginStore
from cortex.ports.messengers import Button, ChatClosed, Incoming, NotSent, Received, RemoteFile

PART_UNITS = 4_000  # drawn, plain and escaped it stays below the limit of an event
ROOMS_KNOWN = 200
PAGE, PAGES = 100, 50  # of what came while Cortex was away, in one room
TYPING_MS = 6_000
WRITER = "cortex.integrations.rich_text"  # markdown-it, with the first answer
ENCRYPTED = "Cortex cannot read encrypted rooms, and writes nothing into them."
FORCED = "This Matrix server makes every new room encrypted. Cortex cannot read those."
NOT_ALONE = "This is no room of Cortex and this person alone, so nothing of their own goes there."
_FILTER = {
    "presence": {"types": []},
    "account_data": {"types": []},
    "room": {
        "account_data": {"types": []},
        "ephemeral": {"types": []},
        "state": {"types": list(events.FACTS)},
        "timeline": {"types": list(events.TIMELINE), "limit": 50},
    },
}
_FIRST = {**_FILTER, "room": {"state": {"types": []}, "timeline": {"types": [], "limit": 1}}}
_PAGE_FILTER = {"types": list(events.TIMELINE)}
Row = Mapping[str, Any]


class MatrixAccount:
    """The account of a card."""

    is_repeatable, sign = True, "!"  # Element takes /new for an order of its own

    def __init__(self, form: MatrixForm, store: LoginStore, *, total_s: float = TOTAL_S) -> None:
        """total_s: how long one request may take."""
        self._form = form
        self._server = MatrixServer(form, store, total_s)
        self._me: Me | None = None
        self._rooms: dict[str, MatrixRoom] = {}

    async def test(self) -> str:
        """Reach it now: what answered, in a sentence. ToolFailed says what is wrong."""
        found = await self._server.try_login()
        if found.casefold() != self._form.user.casefold():
            raise ToolFailed(f"The access token belongs to {found}, and the form says {self._form.user}.")
        return f"Matrix answers: Cortex is {found}. People link themselves under MatrixUser, Messengers."

    async def close(self) -> None:
        """Nothing is held: each request has a connection of its own, and the login stays."""

    async def account(self) -> str:
        """The account's id."""
        return (await self._known()).id

    @property
    def groups(self) -> frozenset[str]:
        """Return the rooms in which it answers."""
        return frozenset(self._form.groups.split())

    @property
    def handle(self) -> str:
        """Return the account's id, by which people find it."""
        return self._form.user

    async def receive(self, after: int, wait_s: float, cursor: str = "") -> Received:
        """Return what came since; the first time only who asks Cortex into rooms: the rest was said to nobody."""
        me = await self._known()
        query = {
            "filter": json.dumps(_FILTER if cursor else _FIRST),
            "timeout": str(int(wait_s * 1000) if cursor else 0),
        }
        if cursor:
            query["since"] = cursor
        try:
            got = await self._server.call("GET", f"{CLIENT}/sync", shape=Sync, query=query, wait_s=wait_s)
        except MatrixRefused as refused:
            if refused.status != 400 or not cursor:
                raise
            return await self.receive(after, wait_s)  # a server that was set up anew does not know its old words
        asked = [events.invited(id, room.invite_state.rows, me.id) for id, room in got.rooms.invite.items()]
        found = [one for one in asked if one is not None]
        if cursor:
            for id, room in got.rooms.join.items():
                found += await self._heard(id, room, cursor)
        items = tuple(replace(item, position=after + at) for at, item in enumerate(found, 1))
        return Received(items=items, upto=after + len(items), cursor=got.next_batch)

    def parts(self, markdown: str) -> Sequence[str]:
        """The text in the HTML of Matrix, each part within the limit of an event."""
        return cast("Sequence[str]", scan.load(WRITER).html_parts(markdown, PART_UNITS))

    async def send(
        self, chat: str, part: str, *, buttons: Sequence[Button] = (), is_silent: bool = False, once: str = ""
    ) -> str:
        """Send one message; under buttons Cortex's own reactions stand, to be joined."""
        room, person = _place(chat)
        await self._must_be_open(room, person)
        word = once or new_id()
        sent = await self._put(room, "m.room.message", events.content_of(part, buttons, is_silent=is_silent), word)
        for sign, _ in zip(events.SIGNS, buttons, strict=False):
            relates = {"rel_type": "m.annotation", "event_id": sent, "key": sign}
            await self._put(room, "m.reaction", {"m.relates_to": relates}, f"{word}:{sign}")
        return sent

    async def send_picture(
        self, chat: str, name: str, content: bytes, *, is_silent: bool = False, once: str = ""
    ) -> str:
        """Send a picture; like a message, once under its word. No picture rings, so it is never silent."""
        room, person = _place(chat)
        await self._must_be_open(room, person)
        where = await self._server.keep(name, content)
        body = {"msgtype": "m.image", "body": name, "url": where, "info": {"size": len(content)}}
        return await self._put(room, "m.room.message", body, once or new_id())

    async def enter(self, chat: str) -> str:
        """Join; of an encrypted room say why not by leaving it, and meet the person in a room that is not.

        What is done again finds that room by its name, though the other one was left already.
        """
        room, person = _place(chat)
        try:
            await self._server.call("POST", f"{CLIENT}/rooms/{_quoted(room)}/join", {}, shape=dict)
        except MatrixRefused:
            with _closing():
                if person:
                    return f"{await self._named_room(room, person)} {person}"
                raise
        if not (await self._facts(room, is_fresh=True)).is_encrypted:
            return chat
        fresh = await self._other_room(room, person) if person else ""
        is_forced = bool(fresh) and (await self._facts(fresh, is_fresh=True)).is_encrypted
        if is_forced:
            await self._leave(fresh, FORCED)
        await self._leave(room, FORCED if is_forced else ENCRYPTED)
        if is_forced or not fresh:
            raise ChatClosed(FORCED if is_forced else ENCRYPTED)
        return f"{fresh} {person}"

    async def seen(self, item: Incoming) -> None:
        """Mark it as read."""
        if item.kind == "message":
            path = f"{CLIENT}/rooms/{_quoted(_place(item.chat)[0])}/receipt/m.read/{_quoted(item.message)}"
            await self._server.call("POST", path, {}, shape=dict)

    async def typing(self, chat: str) -> None:
        """Show that Cortex writes, for some seconds."""
        me, body = await self._known(), {"typing": True, "timeout": TYPING_MS}
        path = f"{CLIENT}/rooms/{_quoted(_place(chat)[0])}/typing/{_quoted(me.id)}"
        await self._server.call("PUT", path, body, shape=dict)

    async def settle(self, item: Incoming, words: str, *, is_over: bool) -> None:
        """Say it, and take Cortex's own reactions away."""
        room, person = _place(item.chat)
        await self._must_be_open(room, person)
        if item.press:
            await self._put(room, "m.room.message", {"msgtype": "m.notice", "body": words}, f"settled:{item.press}")
        if not is_over:
            return
        me = await self._known()
        with suppress(MatrixRefused):  # they stay where a server does not list them
            path = f"/_matrix/client/v1/rooms/{_quoted(room)}/relations/{_quoted(item.message)}/m.annotation"
            for one in (await self._server.call("GET", path, shape=EventPage)).rows:
                if one.get("sender") == me.id:
                    id = str(one.get("event_id"))
                    path = f"{CLIENT}/rooms/{_quoted(room)}/redact/{_quoted(id)}/{derived_id('redacted', id)}"
                    await self._server.call("PUT", path, {}, shape=dict)

    async def fetch(self, file: RemoteFile, most_bytes: int) -> bytes:
        """The file."""
        place = events.place_of(file)
        if place is None or file.size_bytes > most_bytes:
            raise ToolFailed(f"{file.name} is larger than {most_bytes // 1_000_000} MB.")
        try:
            content = await self._server.file(*place, most_bytes)
        except MatrixRefused:
            raise ToolFailed(f"The Matrix server does not give {file.name} any more. Send it once more.") from None
        if content is None:
            raise ToolFailed(f"{file.name} is larger than {most_bytes // 1_000_000} MB.")
        return content

    async def _known(self) -> Me:
        """Learn who Cortex is there. Rooms that an admin allowed in the meantime are joined with the first look."""
        if self._me is None:
            id = (await self._server.whoami()).user_id
            name = ""
            with suppress(MatrixRefused):
                shown = await self._server.call("GET", f"{CLIENT}/profile/{_quoted(id)}/displayname", shape=dict)
                name = str(shown.get("displayname") or "")
            for room in self.groups:
                with suppress(MatrixRefused):  # nobody asked it to come yet
                    await self._server.call("POST", f"{CLIENT}/rooms/{_quoted(room)}/join", {}, shape=dict)
            self._me = Me(id=id, name=name)
        return self._me

    async def _heard(self, id: str, found: Joined, since: str) -> list[Incoming]:
        """Return what people said in a room."""
        me, timeline, rows = await self._known(), found.timeline, found.timeline.rows
        if timeline.limited and timeline.prev_batch:
            rows = [*await self._between(id, timeline.prev_batch, since), *rows]
        if any(event.get("type") in events.FACTS for event in (*found.state.rows, *rows)):
            self._rooms.pop(id, None)
        room = await self._facts(id) if rows else MatrixRoom(id=id)
        items: list[Incoming] = []
        for event in events.heard_since(rows, me.id):
            try:
                item = await self._read(event, room, me)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue  # one of a shape that is not in the documents holds up none behind it
            if item is not None and not (item.kind == "invite" and any(one.kind == "invite" for one in items)):
                items.append(item)
        return items

    async def _between(self, room: str, until: str, since: str) -> list[Row]:
        """Return what a sync left out, because it was much."""
        rows: list[Row] = []
        for _ in range(PAGES):
            query = {"dir": "b", "from": until, "to": since, "limit": str(PAGE), "filter": json.dumps(_PAGE_FILTER)}
            path = f"{CLIENT}/rooms/{_quoted(room)}/messages"
            page = await self._server.call("GET", path, shape=EventPage, query=query)
            rows += page.rows
            until = page.end
            if not until or until == since:
                break
        return rows[::-1]

    async def _read(self, event: Row, room: MatrixRoom, me: Me) -> Incoming | None:
        """One event, with what must be looked up for it."""
        content = event.get("content") or {}
        if event.get("type") == "m.reaction" and event.get("sender") != me.id:
            return await self._pressed(event, room, me)
        item = events.read(event, room, me)
        if item is None or item.kind != "message" or not (item.is_own or room.id in self.groups):
            return item
        to = events.answered(content)
        if not to:
            return item
        there = await self._event(room.id, to)
        if there.get("sender") == me.id:
            return replace(item, is_addressed=True)
        return replace(item, quoted=events.words_of(there, content))

    async def _pressed(self, event: Row, room: MatrixRoom, me: Me) -> Incoming | None:
        """A reaction to a question of Cortex's own, in a room of the two alone."""
        sender, (to, sign) = str(event["sender"]), events.pressed(event.get("content") or {})
        if not to or not sign or not room.is_own(me.id, sender):
            return None
        asked = await self._event(room.id, to)
        answers = (asked.get("content") or {}).get(events.ANSWERS) or {}
        if asked.get("sender") != me.id or sign not in answers:
            return None
        return Incoming(
            position=0,
            kind="press",
            sender=sender,
            chat=events.chat_of(room, me.id, sender),
            message=to,
            name=sender,
            press=str(event["event_id"]),
            choice=str(answers[sign]),
            is_own=True,
        )

    async def _event(self, room: str, id: str) -> Row:
        with suppress(MatrixRefused):
            path = f"{CLIENT}/rooms/{_quoted(room)}/event/{_quoted(id)}"
            return await self._server.call("GET", path, shape=dict)
        return {}

    async def _facts(self, id: str, *, is_fresh: bool = False) -> MatrixRoom:
        if is_fresh or id not in self._rooms:
            with _closing():
                state = await self._server.call("GET", f"{CLIENT}/rooms/{_quoted(id)}/state", shape=list)
            while len(self._rooms) >= ROOMS_KNOWN:
                del self._rooms[next(iter(self._rooms))]
            self._rooms[id] = events.room_of(id, [event for event in state if isinstance(event, dict)])
        return self._rooms[id]

    async def _must_be_open(self, room: str, person: str) -> None:
        """Refuse an encrypted room, and one person's own words where somebody else reads. ChatClosed, NotSent."""
        if not person:
            with suppress(MatrixRefused):  # there is no such setting
                path = f"{CLIENT}/rooms/{_quoted(room)}/state/m.room.encryption/"
                await self._server.call("GET", path, shape=dict)
                raise ChatClosed(ENCRYPTED)
            return
        facts = await self._facts(room, is_fresh=True)
        if not facts.is_own((await self._known()).id, person):
            raise ChatClosed(NOT_ALONE)
        if facts.is_encrypted:  # the person is being met in another room
            raise NotSent(ENCRYPTED, wait_s=5.0)

    async def _put(self, room: str, kind: str, content: Mapping[str, Any], once: str) -> str:
        """Send an event under a word that holds once; its id."""
        with _closing():
            path = f"{CLIENT}/rooms/{_quoted(room)}/send/{kind}/{derived_id('matrix', once)}"
            return (await self._server.call("PUT", path, content, shape=SentEvent)).event_id

    async def _leave(self, room: str, reason: str) -> None:
        await self._server.call("POST", f"{CLIENT}/rooms/{_quoted(room)}/leave", {"reason": reason}, shape=dict)

    async def _other_room(self, room: str, person: str) -> str:
        """A room with this person in place of an encrypted one; always the same for the same."""
        me = await self._known()
        body = {
            "preset": "trusted_private_chat",
            "is_direct": True,
            "invite": [person],
            "name": me.name or "Cortex",
            "room_alias_name": _alias(me, room, person),
        }
        try:
            return (await self._server.call("POST", f"{CLIENT}/createRoom", body, shape=MadeRoom)).room_id
        except MatrixRefused as refused:
            if refused.code != "M_ROOM_IN_USE":
                raise ChatClosed(ENCRYPTED) from None
        found = await self._named_room(room, person)
        with suppress(MatrixRefused):  # they are there
            path = f"{CLIENT}/rooms/{_quoted(found)}/invite"
            await self._server.call("POST", path, {"user_id": person}, shape=dict)
        return found

    async def _named_room(self, room: str, person: str) -> str:
        """The room that was made in place of this one. MatrixRefused where there is none."""
        me = await self._known()
        name = _quoted(f"#{_alias(me, room, person)}:{me.id.partition(':')[2]}")
        return (await self._server.call("GET", f"{CLIENT}/directory/room/{name}", shape=MadeRoom)).room_id


@contextmanager
def _closing() -> Iterator[None]:
    """Take a no of the room for what it is."""
    try:
        yield
    except MatrixRefused as refused:
        if refused.status in (403, 404):
            raise ChatClosed("Cortex may not write in this Matrix room.") from None
        raise


def _alias(me: Me, room: str, person: str) -> str:
    return f"cortex-{derived_id(me.id, room, person)}"


def _place(chat: str) -> tuple[str, str]:
    """The room of a chat, and the person who alone may read there; "" for a group."""
    room, _, person = chat.partition(" ")
    return room, person


def _quoted(id: str) -> str:
    return quote(id, safe="")
