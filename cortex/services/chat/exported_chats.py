"""Reads the chats that Open WebUI and ChatGPT export: pure, bytes in, conversations out.

Both keep a tree of messages and say which leaf is shown: the way from there to the root is the conversation. Shapes as
their own exports have them: https://help.openai.com/en/articles/7260999 (an archive with conversations.json) and Open
WebUI, Settings, Chats, Export (an array of chats); read 2026-11-24.
"""

import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cortex.base.errors import UserError
from cortex.base.ids import digest

MEMBER_BYTES = 100_000_000  # of one JSON file, unpacked
MOST_CHATS = 20_000
MOST_MESSAGES = 5_000  # of one chat: the newest
TEXT_CHARACTERS = 200_000  # of one message
TITLE_CHARACTERS = 120
UNANSWERED = "(not answered)"
UNSAID = "(no words)"
PICTURE = "(a picture)"
NO_EXPORT = "This is not a chat export Cortex can read. Use the .json from Open WebUI or the .zip from ChatGPT."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedChat:
    """A conversation out of an export. `key`: the same for the same chat, whenever it is read. Times in UTC.

    `exchanges`: the person's words, the answer, and when the words were said, None where that is not known.
    """

    key: str
    title: str
    at: datetime | None
    exchanges: tuple[tuple[str, str, datetime | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadExport:
    """What an export held. `left_out`: how many entries had no words, or are no chats."""

    chats: tuple[ExportedChat, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class _Said:
    speaker: str
    text: str
    at: datetime | None


def read_export(data: bytes) -> ReadExport:
    """The chats of an export: a JSON file, or an archive that holds some. UserError for anything else."""
    chats: dict[str, ExportedChat] = {}
    left_out = 0
    for text in _texts(data):
        for entry in _entries(text):
            chat = _chat(entry)
            if chat is None:
                left_out += 1
            elif len(chats) >= MOST_CHATS:
                raise UserError(f"More than {MOST_CHATS:,} chats in one file.")
            else:
                chats[chat.key] = chat
    if not chats:
        raise UserError(NO_EXPORT if not left_out else f"{NO_EXPORT} It holds {left_out:,} entries without words.")
    return ReadExport(chats=tuple(chats.values()), left_out=left_out)


def _texts(data: bytes) -> Iterator[str]:
    if not data.startswith(b"PK"):
        yield _decoded(data)
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = [info for info in archive.infolist() if info.filename.endswith(".json")]
            chats = [info for info in infos if info.filename.rpartition("/")[2].startswith("conversations")]
            for info in chats or infos[:1]:
                with archive.open(info) as member:  # what the archive says of its size is not believed
                    content = member.read(MEMBER_BYTES + 1)
                if len(content) > MEMBER_BYTES:
                    raise UserError(f"{info.filename} is larger than {MEMBER_BYTES // 1_000_000} MB unpacked.")
                yield _decoded(content)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise UserError("The archive is damaged or password protected.") from error


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(NO_EXPORT) from error


def _entries(text: str) -> Iterator[Any]:
    """The elements of the array one by one, or the one object: a whole file at once would hold up everything else."""
    decoder = json.JSONDecoder()
    at = _blank(text, 0)
    is_list = text.startswith("[", at)
    at = _blank(text, at + 1) if is_list else at
    while at < len(text) and not (is_list and text.startswith("]", at)):
        try:
            entry, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{NO_EXPORT} It cannot be read past character {at:,}.") from error
        yield entry
        at = _blank(text, at)
        if not is_list:
            return
        at = _blank(text, at + 1) if text.startswith(",", at) else at


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _chat(entry: Any) -> ExportedChat | None:
    """The entry as a chat; None where it is none, or has no words."""
    if not isinstance(entry, Mapping):
        return None
    inner = _part(entry, "chat") or entry
    if isinstance(entry.get("mapping"), Mapping):
        said = _of_mapping(entry["mapping"], entry.get("current_node"))
    else:
        said = _of_history(inner)
    exchanges = _exchanges(said[-MOST_MESSAGES:])
    if not exchanges:
        return None
    title = _clean(entry.get("title") or inner.get("title") or "")[:TITLE_CHARACTERS]
    own = entry.get("conversation_id") or entry.get("id") or inner.get("id") or ""
    key = str(own) or digest(json.dumps([title, [words for words, _, _ in exchanges]]))
    at = _moment(entry.get("create_time") or entry.get("created_at") or inner.get("timestamp"))
    return ExportedChat(key=key, title=title or exchanges[0][0][:TITLE_CHARACTERS], at=at, exchanges=exchanges)


def _of_mapping(nodes: Mapping[str, Any], leaf: Any) -> list[_Said]:
    """ChatGPT's tree."""
    said = []
    for node in _way(nodes, leaf, "parent"):
        message = node.get("message")
        if not isinstance(message, Mapping):
            continue
        hidden = _part(message, "metadata").get("is_visually_hidden_from_conversation")
        to = message.get("recipient") or "all"
        speaker = str(_part(message, "author").get("role") or "")
        text = _content(_part(message, "content"))
        if text and not hidden and to == "all":
            said.append(_Said(speaker, text, _moment(message.get("create_time"))))
    return said


def _of_history(chat: Mapping[str, Any]) -> list[_Said]:
    """Open WebUI's tree, or its plain list."""
    history = _part(chat, "history")
    nodes = _part(history, "messages")
    found: Sequence[Any] = _way(nodes, history.get("currentId"), "parentId")
    if not found and isinstance(chat.get("messages"), list):
        found = chat["messages"]
    said = []
    for message in found:
        if isinstance(message, Mapping):
            content = message.get("content")
            text = _joined(content) if isinstance(content, list) else _clean(content)
            if text:
                said.append(_Said(str(message.get("role") or ""), text, _moment(message.get("timestamp"))))
    return said


def _way(nodes: Mapping[str, Any], leaf: Any, parent: str) -> list[Mapping[str, Any]]:
    """From the root to the leaf that is shown, or to the last there is; a circle ends where it would begin anew."""
    if leaf not in nodes:
        leaf = [*nodes][-1] if nodes else None
    way, seen = [], set()
    while isinstance(leaf, str) and leaf in nodes and leaf not in seen:
        seen.add(leaf)
        node = nodes[leaf]
        if not isinstance(node, Mapping):
            break
        way.append(node)
        leaf = node.get(parent)
    return way[::-1]


def _content(content: Mapping[str, Any]) -> str:
    kind = content.get("content_type")
    if kind == "code":
        return f"```\n{_clean(content.get('text'))}\n```"
    if kind not in ("text", "multimodal_text", None):  # reasoning, what tools printed, what the person is told to be
        return ""
    parts = content.get("parts")
    return _joined(parts) if isinstance(parts, list) else _clean(content.get("text"))


def _joined(parts: Sequence[Any]) -> str:
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            texts.append(part["text"] if isinstance(part.get("text"), str) else PICTURE)
    return _clean("\n\n".join(text for text in texts if text))


def _exchanges(said: Sequence[_Said]) -> tuple[tuple[str, str, datetime | None], ...]:
    """What the person said with the answers that followed. Words of systems and tools are no part of a chat."""
    pairs: list[tuple[list[str], list[str], datetime | None]] = []
    for one in said:
        if one.speaker == "user":
            if not pairs or pairs[-1][1]:
                pairs.append(([], [], one.at))
            pairs[-1][0].append(one.text)
        elif one.speaker == "assistant":
            if not pairs:
                pairs.append(([], [], one.at))
            pairs[-1][1].append(one.text)
    joined = (("\n\n".join(words) or UNSAID, "\n\n".join(answers) or UNANSWERED, at) for words, answers, at in pairs)
    return tuple((words[:TEXT_CHARACTERS], answer[:TEXT_CHARACTERS], at) for words, answer, at in joined)


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _clean(text: Any) -> str:
    """Text that every database keeps."""
    if not isinstance(text, str):
        return ""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()


def _moment(value: Any) -> datetime | None:
    """Seconds since 1970, or milliseconds; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e14:
        return None
    return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
