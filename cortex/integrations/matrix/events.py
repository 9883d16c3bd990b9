"""Events of Matrix as what came from people, and text as events that go out. Pure."""

import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from cortex.ports.messengers import Button, Incoming, RemoteFile

EVENT_BYTES = 60_000  # of 65,536 for all of an event
ANSWERS = "cortex.answers"  # in our own events: what a reaction to them means
SIGNS = ("👍", "👎")
TIMELINE = (
    "m.room.message",
    "m.reaction",
    "m.room.redaction",
    "m.room.member",
    "m.room.encryption",
    "m.room.encrypted",
)
FACTS = ("m.room.member", "m.room.encryption", "m.room.name")  # who changes one changes what kind of room it is
_FILES = {"m.image": "photo.jpg", "m.file": "file", "m.audio": "audio.ogg", "m.video": "video.mp4"}
_SKIN = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
_TAG = re.compile(r"<[^>]*>")
_PRE = re.compile(r"(<pre>.*?</pre>)", re.DOTALL)
_MXC = re.compile(r"mxc://([^/\s]{1,255})/([A-Za-z0-9_-]{1,255})")
Row = Mapping[str, Any]


class MatrixRoom(Struct, frozen=True, kw_only=True):
    """The facts of a room: who is in it or asked to come, whether it is encrypted, its name."""

    id: str
    members: frozenset[str] = frozenset()
    is_encrypted: bool = False
    name: str = ""

    def is_own(self, me: str, sender: str) -> bool:
        """Tell whether nobody is in it but the two."""
        return self.members == {me, sender}


class Me(Struct, frozen=True, kw_only=True):
    """Cortex's account: its id, and the name that others see."""

    id: str
    name: str = ""


def room_of(id: str, state: Sequence[Row]) -> MatrixRoom:
    """The facts that a room's state holds."""
    members, name, is_encrypted = set(), "", False
    for event in state:
        content = _content(event)
        match event.get("type"):
            case "m.room.member" if content.get("membership") in ("join", "invite"):
                members.add(str(event.get("state_key")))
            case "m.room.encryption":
                is_encrypted = True
            case "m.room.name":
                name = " ".join(str(content.get("name") or "").split())[:80]
            case _:
                pass
    return MatrixRoom(id=id, members=frozenset(members), is_encrypted=is_encrypted, name=name)


def _content(event: Row, name: str = "content") -> Row:
    """Return what an event holds under this name; nothing where that is not of the documents' shape."""
    found = event.get(name)
    return found if isinstance(found, dict) else {}


def chat_of(room: MatrixRoom, me: str, sender: str) -> str:
    """The chat of a room: with the person's name where nobody else is in it, so that it is told to nobody else."""
    return f"{room.id} {sender}" if room.is_own(me, sender) else room.id


def invited(room_id: str, state: Sequence[Row], me: str) -> Incoming | None:
    """Tell who asked Cortex into a room; None for what is none."""
    mine = [one for one in state if one.get("type") == "m.room.member" and one.get("state_key") == me]
    if not mine or not isinstance(mine[-1].get("sender"), str):
        return None
    sender, is_own = mine[-1]["sender"], bool(_content(mine[-1]).get("is_direct"))
    return Incoming(
        position=0,
        kind="invite",
        sender=sender,
        chat=f"{room_id} {sender}" if is_own else room_id,
        name=sender,
        group="" if is_own else room_of(room_id, state).name or "group",
        is_own=is_own,
    )


def heard_since(events: Sequence[Row], me: str) -> Sequence[Row]:
    """Those behind the newest that asked or took Cortex into the room: what was said before was not said to it."""
    begin = 0
    for at, event in enumerate(events):
        if event.get("type") != "m.room.member" or event.get("state_key") != me:
            continue
        was = _content(_content(event, "unsigned"), "prev_content").get("membership")
        is_now = _content(event).get("membership")
        if is_now == "invite" or (is_now == "join" and was not in ("join", "invite")):
            begin = at + 1
    return events[begin:]


def read(event: Row, room: MatrixRoom, me: Me) -> Incoming | None:
    """Return what came, as far as the event itself says; None for what is passed over."""
    sender, kind, content = str(event["sender"]), event.get("type"), event.get("content") or {}
    if sender == me.id:
        return None
    is_own = room.is_own(me.id, sender)
    base = Incoming(
        position=0,
        kind="message",
        sender=sender,
        chat=chat_of(room, me.id, sender),
        message=str(event["event_id"]),
        name=sender,
        group="" if is_own else room.name or "group",
        is_own=is_own,
    )
    if kind in ("m.room.encrypted", "m.room.encryption"):
        return replace(base, kind="invite")
    if kind == "m.room.redaction":
        gone = str(content.get("redacts") or event.get("redacts") or "")
        return replace(base, kind="delete", message=gone)
    if kind != "m.room.message":
        return None
    relates = content.get("m.relates_to") or {}
    if relates.get("rel_type") == "m.replace":
        new = content["m.new_content"]
        text = _without_name(str(new.get("body") or ""), me)
        is_text = new.get("msgtype") in ("m.text", "m.emote")
        return replace(base, kind="edit", message=str(relates["event_id"]), text=text) if is_text else None
    return _message(base, content, me)


def _message(base: Incoming, content: Row, me: Me) -> Incoming | None:
    kind, body = content.get("msgtype"), str(content.get("body") or "")
    if kind in _FILES:
        file, body = _file(content, str(kind), body)
        files = (file,) if file else ()
    elif kind in ("m.text", "m.emote"):
        body, files = _without_fallback(body, content), ()
    else:
        return None
    if not body.strip() and not files:
        return None
    is_addressed = not base.group or _is_addressed(content, body, me)
    return replace(base, text=_without_name(body, me), files=files, is_addressed=is_addressed)


def answered(content: Row) -> str:
    """The event that a message answers, "" for none; what stands in a thread answers only where it says so."""
    relates = content.get("m.relates_to") or {}
    if relates.get("rel_type") == "m.thread" and relates.get("is_falling_back", True):
        return ""
    return str((relates.get("m.in_reply_to") or {}).get("event_id") or "")


def pressed(content: Row) -> tuple[str, str]:
    """The event that a reaction is for, and its sign."""
    relates = content.get("m.relates_to") or {}
    return str(relates.get("event_id") or ""), _SKIN.sub("", str(relates.get("key") or ""))


def words_of(event: Row, content: Row) -> str:
    """The words of a message that another one answers; the older clients' copy where it cannot be read."""
    body = str((event.get("content") or {}).get("body") or "")
    if body:
        return _without_fallback(body, event.get("content") or {})
    copied = [line[2:] for line in str(content.get("body") or "").splitlines() if line.startswith("> ")]
    return "\n".join(copied) or "(a message that Cortex cannot read)"


def _file(content: Row, kind: str, body: str) -> tuple[RemoteFile | None, str]:
    """The file of a message and its words."""
    url = str(content.get("url") or "")
    if not _MXC.fullmatch(url):
        return None, ""
    name = str(content.get("filename") or body or _FILES[kind])
    size = (content.get("info") or {}).get("size")
    is_voice = kind == "m.audio" and "org.matrix.msc3245.voice" in content
    file = RemoteFile(id=url, name=name, size_bytes=size if isinstance(size, int) else 0, is_voice=is_voice)
    return file, body if content.get("filename") and body != name else ""


def place_of(file: RemoteFile) -> tuple[str, str] | None:
    """The server and the id of a file; None for what is none."""
    found = _MXC.fullmatch(file.id)
    return (found[1], found[2]) if found else None


def _without_fallback(body: str, content: Row) -> str:
    """The words without the copy of the answered message, which older clients put ahead of them."""
    if "m.in_reply_to" not in (content.get("m.relates_to") or {}) or not body.startswith("> <"):
        return body
    return body.partition("\n\n")[2]


def _is_addressed(content: Row, body: str, me: Me) -> bool:
    named = (content.get("m.mentions") or {}).get("user_ids") or ()
    return me.id in named or me.id.casefold() in body.casefold() or _begins(body, me)


def _begins(body: str, me: Me) -> bool:
    return bool(me.name) and re.match(rf"\s*{re.escape(me.name)}\b", body, re.IGNORECASE) is not None


def _without_name(body: str, me: Me) -> str:
    text = re.sub(re.escape(me.id), "", body, flags=re.IGNORECASE)
    text = re.sub(rf"^\s*@?{re.escape(me.name)}\s*[:,]", "", text, flags=re.IGNORECASE) if me.name else text
    return text.strip().lstrip(":,").strip()


def content_of(part: str, buttons: Sequence[Button], *, is_silent: bool) -> dict[str, Any]:
    """A part as an event: the words, drawn, and what reactions to it mean. A silent one rings nowhere."""
    kind: Literal["m.notice", "m.text"] = "m.notice" if is_silent else "m.text"
    if buttons:
        pairs = " · ".join(f"{sign} {one.words}" for sign, one in zip(SIGNS, buttons, strict=False))
        part = f"{part}\n\n{pairs}\n<i>React with one of the two.</i>"
    made: dict[str, Any] = {"msgtype": kind, "body": unescape(_TAG.sub("", part)), "m.mentions": {}}
    drawn = "".join(one if one.startswith("<pre>") else one.replace("\n", "<br>") for one in _PRE.split(part))
    if len(drawn.encode()) + len(made["body"].encode()) < EVENT_BYTES:
        made |= {"format": "org.matrix.custom.html", "formatted_body": drawn}
    if buttons:
        made[ANSWERS] = {sign: one.choice for sign, one in zip(SIGNS, buttons, strict=False)}
    return made
