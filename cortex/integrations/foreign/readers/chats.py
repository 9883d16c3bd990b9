"""The chats that Open WebUI and ChatGPT export, one a line, and last what was left out and why.

Both keep a tree of messages and say which leaf is shown: the way from there to the root is the conversation. Shapes as
their exports have them (https://help.openai.com/en/articles/7260999; Open WebUI, Settings, Chats, Export; read
2026-11-24). What is a chat shows in what a file holds: every file of an archive is tried, whatever it is called.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct, field

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign import zips
from cortex.integrations.foreign.json_stream import BrokenJsonError, values
from cortex.integrations.foreign.markup import cleaned, with_sources
from cortex.integrations.foreign.program import Emit, Source
from cortex.integrations.foreign.zips import Archive, MemberError

FILES_MOST = 20_000
ENTRIES_MOST = 60_000
TOTAL_BYTES = 1_500_000_000  # of an archive, unpacked
MEMBER_BYTES = 600_000_000
MOST_CHATS = 20_000
MOST_MESSAGES = 5_000  # of one chat: the newest
CHAT_CHARACTERS = 2_500_000  # of one chat: the newest; six times as many bytes are a line of the answer
TEXT_CHARACTERS = 200_000  # of one message
TITLE_CHARACTERS = 120
KEY_CHARACTERS = 200
EXAMPLES = 3
UNANSWERED = "(not answered)"
UNSAID = "(no words)"
PICTURE, SOUND = "(a picture)", "(a recording)"
WRAPPED = ("conversations", "chats", "data", "items")  # of an object that holds the list of them
ALONE = "the file"
OTHERS = "Files without chats"
INNER = "Messages of tools and systems, and reasoning"
MARKUP = "Answers without their reasoning, tool calls or marks of sources"
BRANCHES = "Other versions of messages, which were not shown"
CUT = "Files that could be read only in part"


class _Tally(Struct):
    """The counts of what was left out, by the heading under which a person reads it."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, why: str, example: str = "", count: int = 1) -> None:
        if count:
            self.counts[why] = self.counts.get(why, 0) + count
        if example and len(self.examples.setdefault(why, [])) < EXAMPLES:
            self.examples[why].append(example)


class _Said(Struct, frozen=True):
    speaker: str
    text: str
    at: float | None


def read(source: Source, emit: Emit) -> None:
    """Each chat, then each count. UnreadableError where the whole is damaged, or holds far too much."""
    tally, keys = _Tally(), set[str]()
    files, entries = 0, 0
    for name, chunks in _files(source, tally):
        before, why, counts = len(keys), "", dict(tally.counts)
        try:
            for entry in _entries(chunks):
                entries += 1
                if entries > ENTRIES_MOST:
                    raise UnreadableError(f"This file contains more than {ENTRIES_MOST:,} entries and was not read.")
                _take(entry, keys, tally, emit)
        except BrokenJsonError as error:
            why = CUT if error.at_character else OTHERS
            name = f"{name}, nothing {error}" if error.at_character else name
        except MemberError as error:
            why = str(error)
        found = len(keys) - before
        files += bool(found)
        if not found and name != ALONE:
            tally.counts = counts  # of what is no chats at all, entries are not counted too
        if why or not found:
            tally.add(why or OTHERS, name)
    for why, count in tally.counts.items():
        emit({"left_out": {"why": why, "count": count, "examples": tally.examples.get(why, [])}})
    emit({"files": files})


def _take(entry: Any, keys: set[str], tally: _Tally, emit: Emit) -> None:  # Any: whatever the file says
    chat = _chat(entry, tally)
    if chat is None:
        tally.add("Entries without words" if isinstance(entry, Mapping) else "Entries that are no chats")
    elif chat["key"] in keys:
        tally.add("Chats that are in it twice", str(chat["title"])[:60])
    elif len(keys) >= MOST_CHATS:
        raise UnreadableError(f"This file contains more than {MOST_CHATS:,} chats. Split it and import the parts.")
    else:
        keys.add(chat["key"])
        emit({"chat": chat})


def _files(source: Source, tally: _Tally) -> Iterator[tuple[str, Iterable[bytes]]]:
    if not source.data.startswith(zips.MARK):
        yield ALONE, _pieces(source.data)
        return
    archive = Archive(source.data, most=FILES_MOST, total_bytes=TOTAL_BYTES)
    for info in archive.files:
        name = zips.shown(info.filename)
        chunks = archive.chunks(info, MEMBER_BYTES)
        try:
            first = next(chunks, b"")
        except MemberError as error:
            tally.add(str(error), name)
            continue
        if first.startswith(zips.MARK):
            tally.add("Archives inside the archive", name)
            continue
        yield name, _again(first, chunks)


def _pieces(data: bytes) -> Iterator[bytes]:
    """So that no long text is held in the widest of its signs."""
    for at in range(0, len(data), zips.CHUNK_BYTES):
        yield data[at : at + zips.CHUNK_BYTES]


def _again(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _entries(chunks: Iterable[bytes]) -> Iterator[Any]:
    for entry in values(chunks):
        lists = [entry[name] for name in WRAPPED if isinstance(entry.get(name), list)] if _is_bare(entry) else []
        yield from chain.from_iterable(lists) if lists else [entry]


def _is_bare(entry: Any) -> bool:
    return isinstance(entry, Mapping) and not {"mapping", "chat", "history", "messages"} & entry.keys()


def _chat(entry: Any, tally: _Tally) -> dict[str, Any] | None:
    """The entry as a chat; None where it is none, or has no words."""
    if not isinstance(entry, Mapping):
        return None
    inner = _part(entry, "chat") or entry
    if isinstance(entry.get("mapping"), Mapping):
        said = _of_mapping(entry["mapping"], entry.get("current_node"), tally)
    else:
        said = _of_history(inner, tally)
    exchanges = _exchanges(_newest(said, tally), tally)
    if not exchanges:
        return None
    title = _clean(entry.get("title") or inner.get("title") or "").strip()[:TITLE_CHARACTERS]
    own = entry.get("conversation_id") or entry.get("id") or inner.get("id") or ""
    at = _moment(entry.get("create_time") or entry.get("created_at") or inner.get("timestamp"))
    title = title or exchanges[0][0].strip()[:TITLE_CHARACTERS]
    return {"key": _key(own, title, exchanges), "title": title, "at": at, "exchanges": exchanges}


def _key(own: Any, title: str, exchanges: Sequence[tuple[str, str, float | None]]) -> str:
    """The same for the same chat, whenever it is read."""
    key = _clean(str(own)) if isinstance(own, str | int) and not isinstance(own, bool) else ""
    if key and len(key) <= KEY_CHARACTERS:
        return key
    words = key or json.dumps([title, [words for words, _, _ in exchanges]])
    return hashlib.sha256(words.encode()).hexdigest()


def _of_mapping(nodes: Mapping[str, Any], leaf: Any, tally: _Tally) -> list[_Said]:
    """ChatGPT's tree."""
    said, way = [], _way(nodes, leaf, "parent")
    for node in way:
        message = node.get("message")
        if not isinstance(message, Mapping):
            continue
        marks = _part(message, "metadata")
        is_hidden = marks.get("is_visually_hidden_from_conversation") or message.get("channel") == "analysis"
        is_shown = not is_hidden and (message.get("recipient") or "all") == "all"
        speaker = str(_part(message, "author").get("role") or "")
        text = _content(_part(message, "content"))
        if speaker == "tool" and text and not text.replace(PICTURE, "").strip():  # drawn for the person
            speaker = "assistant"
        if speaker == "user":
            text = _with_files(text, marks.get("attachments"))
        else:
            text = _answer(with_sources(text, marks.get("content_references")), tally)
        if text and is_shown and speaker in ("user", "assistant"):
            said.append(_Said(speaker, text, _moment(message.get("create_time"))))
        elif text or message.get("content"):
            tally.add(INNER)
    tally.add(BRANCHES, count=sum(1 for one in nodes.values() if _has_message(one)) - sum(map(_has_message, way)))
    return said


def _of_history(chat: Mapping[str, Any], tally: _Tally) -> list[_Said]:
    """Open WebUI's tree, or its plain list."""
    history = _part(chat, "history")
    nodes = _part(history, "messages")
    found: Sequence[Any] = _way(nodes, history.get("currentId"), "parentId")
    tally.add(BRANCHES, count=len(nodes) - len(found))
    if not found and isinstance(chat.get("messages"), list):
        found = chat["messages"]
    said = []
    for message in found:
        if not isinstance(message, Mapping):
            continue
        content, speaker = message.get("content"), str(message.get("role") or "")
        text = _joined(content) if isinstance(content, list) else _clean(content)
        text = _with_files(text if speaker == "user" else _answer(text, tally), message.get("files"))
        if text and speaker in ("user", "assistant"):
            said.append(_Said(speaker, text, _moment(message.get("timestamp"))))
        elif text or content:
            tally.add(INNER)
    return said


def _has_message(node: Any) -> bool:
    return isinstance(node, Mapping) and isinstance(node.get("message"), Mapping)


def _answer(text: str, tally: _Tally) -> str:
    made = _clean(cleaned(text))
    tally.add(MARKUP, count=int(made != text))
    return made


def _with_files(text: str, files: Any) -> str:
    """The person's words with the names of what was given with them, which no export holds."""
    found = [one for one in files[:20] if isinstance(one, Mapping)] if isinstance(files, list) else []
    names = [
        _clean(one.get("name"))[:100] for one in found if str(one.get("mimeType") or one.get("type"))[:5] != "image"
    ]
    pictures = [PICTURE] * sum(1 for one in found if one.get("type") == "image")
    return _clean("\n\n".join(filter(None, [*pictures, text, *(f"(a file: {name})" for name in names if name)])))


def _newest(said: list[_Said], tally: _Tally) -> list[_Said]:
    room, first = CHAT_CHARACTERS, max(len(said) - MOST_MESSAGES, 0)
    for at in range(len(said) - 1, first - 1, -1):
        room -= min(len(said[at].text), TEXT_CHARACTERS)
        if room < 0:
            first = at + 1
            break
    tally.add("Older messages of very long chats", count=first)
    return said[first:]


def _way(nodes: Mapping[str, Any], leaf: Any, parent: str) -> list[Mapping[str, Any]]:
    """From the root to the leaf that is shown, or to the last there is; a circle ends where it would begin anew."""
    if not isinstance(leaf, str) or leaf not in nodes:
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
            kind = SOUND if "audio" in str(part.get("content_type") or part.get("type"))[:60] else PICTURE
            texts.append(part["text"] if isinstance(part.get("text"), str) else kind)
    return _clean("\n\n".join(text for text in texts if text))


def _exchanges(said: Sequence[_Said], tally: _Tally) -> list[tuple[str, str, float | None]]:
    """Return what the person said with the answers that followed. Words of systems and tools are no part of a chat."""
    pairs: list[tuple[list[str], list[str], float | None]] = []
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
    return [(_cut(words, tally), _cut(answer, tally), at) for words, answer, at in joined]


def _cut(text: str, tally: _Tally) -> str:
    tally.add(f"Texts cut behind {TEXT_CHARACTERS:,} characters", count=int(len(text) > TEXT_CHARACTERS))
    return text[:TEXT_CHARACTERS]


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _clean(text: Any) -> str:
    """Text that every database keeps, as it came; "" for blanks alone."""
    if not isinstance(text, str) or not text.strip():
        return ""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _moment(value: Any) -> float | None:
    """Seconds since 1970, of these or of milliseconds; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e14:
        return None
    return value / 1000 if value >= 1e11 else float(value)
