"""What Telegram's updates say, as messengers' things that come in. Pure.

The contract: https://core.telegram.org/bots/api (10.x, read 2026-11). Offsets in a text count UTF-16 units there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cortex.base.hidden import is_hiding
from cortex.ports.messengers import Incoming, RemoteFile

LONG_UNITS = 4_000  # Telegram's programs cut a longer text into messages
UNREAD = ("sticker", "location", "contact", "venue", "poll", "dice", "game", "story", "checklist", "paid_media")
OTHERS_WORDS = ("forward_origin", "forward_date", "forward_from", "via_bot")  # two of them from servers before 7.0
FILES = {
    "voice": "voice.ogg",
    "audio": "audio.mp3",
    "document": "file",
    "video": "video.mp4",
    "video_note": "video.mp4",
}


class UpdateReader(Struct, frozen=True, kw_only=True):
    """Reads updates as the bot of this id, which people address by its `handle`."""

    id: str
    handle: str

    def read(self, update: Mapping[str, Any]) -> Incoming | None:
        """One update as it is used here; None for what is passed over."""
        try:
            if query := update.get("callback_query"):
                return _press(update["update_id"], query)
            for name in ("message", "edited_message"):
                if message := update.get(name):
                    return self._message(update["update_id"], message, is_edit=name != "message")
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # one of a shape that is not in the documents holds up none behind it
        return None

    def _message(self, position: int, message: Mapping[str, Any], *, is_edit: bool) -> Incoming | None:
        chat, sender = message["chat"], message.get("from")
        if not sender or sender.get("is_bot") or chat["type"] not in ("private", "group", "supergroup"):
            return None
        written = str(message.get("text") or message.get("caption") or "")
        marks = message.get("entities") or message.get("caption_entities") or ()
        text = "\n".join(filter(None, (self._without_handle(written, marks), *_addresses(written, marks))))
        files = tuple(_files(message))
        is_unread = not written and not files and not is_edit and any(kind in message for kind in UNREAD)
        if not text and not files and not is_unread:
            return None
        is_group = chat["type"] != "private"
        thread = message.get("message_thread_id") if is_group and message.get("is_topic_message") else None
        return Incoming(
            position=position,
            kind="edit" if is_edit else "message",
            sender=str(sender["id"]),
            chat=f"{chat['id']}/{thread}" if thread else str(chat["id"]),
            message=str(message["message_id"]),
            name=_name(sender),
            group=str(chat.get("title") or "group") if is_group else "",
            place=str(chat["id"]),
            is_addressed=not is_group or self._is_addressed(message, written, marks),
            text=text,
            is_forwarded=any(name in message for name in OTHERS_WORDS),
            quoted=self._quoted(message),
            files=files,
            batch=str(message.get("media_group_id") or ""),
            goes_on=_units(written) >= LONG_UNITS,
            is_unread=is_unread,
        )

    def _is_addressed(self, message: Mapping[str, Any], text: str, marks: Sequence[Mapping[str, Any]]) -> bool:
        answered = message.get("reply_to_message") or {}
        to_bot = _writer(answered) == self.id
        return to_bot or any(self._names_bot(_marked(text, mark), mark) for mark in marks)

    def _names_bot(self, word: str, mark: Mapping[str, Any]) -> bool:
        """Tell whether this is the bot's name, by itself or behind an order."""
        named = word.casefold().partition("@")[2]
        return mark.get("type") in ("mention", "bot_command") and f"@{named}" == self.handle.casefold()

    def _without_handle(self, text: str, marks: Sequence[Mapping[str, Any]]) -> str:
        for mark in reversed(marks):
            if self._names_bot(_marked(text, mark), mark):
                at = _at(text, int(mark["offset"])), _at(text, int(mark["offset"]) + int(mark["length"]))
                kept = _marked(text, mark).partition("@")[0]
                text = text[: at[0]] + kept + text[at[1] :]
        return text.strip()

    def _quoted(self, message: Mapping[str, Any]) -> str:
        """Words of others that it answers; its writer's own and the bot's stand in the chat already."""
        if quote_of := message.get("quote"):
            return str(quote_of.get("text") or "")
        answered = message.get("reply_to_message") or {}
        is_own = _writer(answered) == _writer(message) and not any(name in answered for name in OTHERS_WORDS)
        if is_own or _writer(answered) == self.id:
            return ""
        return str(answered.get("text") or answered.get("caption") or "")


def _press(position: int, query: Mapping[str, Any]) -> Incoming:
    below = query.get("message") or {}
    return Incoming(
        position=position,
        kind="press",
        sender=str(query["from"]["id"]),
        chat=str((below.get("chat") or {}).get("id", "")),
        message=str(below.get("message_id", "")),
        name=_name(query["from"]),
        press=str(query["id"]),
        choice=str(query.get("data") or ""),
    )


def _files(message: Mapping[str, Any]) -> list[RemoteFile]:
    """The files of a message; of a photo the largest size that there is."""
    if photos := message.get("photo"):
        best = max(photos, key=lambda one: int(one.get("width", 0)))
        size = int(best.get("file_size") or 0)
        return [RemoteFile(id=str(best["file_id"]), name=f"photo-{message['message_id']}.jpg", size_bytes=size)]
    for kind, name in FILES.items():
        if found := message.get(kind):
            given = str(found.get("file_name") or name)
            size = int(found.get("file_size") or 0)
            length_s, is_voice = int(found.get("duration") or 0), kind == "voice"
            id = str(found["file_id"])
            return [RemoteFile(id=id, name=given, size_bytes=size, is_voice=is_voice, length_s=length_s)]
    return []


def _name(sender: Mapping[str, Any]) -> str:
    """The sender as others see them: their name, which anybody may choose, and the handle that is theirs alone."""
    chosen = f"{sender.get('first_name', '')} {sender.get('last_name', '')}"
    seen = "".join(sign for sign in chosen if not is_hiding(sign) and sign not in "@()")
    words = " ".join(seen.split())[:80]
    handle = str(sender.get("username") or "")
    return f"{words} (@{handle})".strip() if handle else f"{words} (no handle, number {sender['id']})".strip()


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _at(text: str, units: int) -> int:
    """Tell which sign stands behind so many UTF-16 units, in which Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore"))


def _marked(text: str, mark: Mapping[str, Any]) -> str:
    start = int(mark["offset"])
    return text[_at(text, start) : _at(text, start + int(mark["length"]))]


def _addresses(text: str, marks: Sequence[Mapping[str, Any]]) -> list[str]:
    """The addresses that stand behind words, which the text does not show."""
    return [f"{_marked(text, mark)}: {mark['url']}" for mark in marks if mark.get("type") == "text_link"]


def _writer(message: Mapping[str, Any]) -> str:
    return str((message.get("from") or {}).get("id", ""))
