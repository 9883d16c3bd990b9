"""Skills as other programs keep them: folders with a SKILL.md, out of an archive, or one such file.

The form is that of Agent Skills (https://agentskills.io/specification, read 2026-11-24): YAML with `name` and
`description`, then Markdown. Scripts and other files beside it are counted: a skill here is a text.
"""

from collections.abc import Iterator
from typing import Any

from cortex.base.errors import UserError
from cortex.base.front_matter import split
from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign import zips
from cortex.integrations.foreign.program import Emit, Source
from cortex.integrations.foreign.yaml_texts import texts_of
from cortex.integrations.foreign.zips import Archive, MemberError

FILE = "SKILL.md"
MOST = 200
FILES_MOST = 5_000
MEMBER_BYTES = 200_000
TOTAL_BYTES = 20_000_000
NO_SKILL = "It contains no SKILL.md. Choose a SKILL.md, or a .zip of folders with one each."


def read(source: Source, emit: Emit) -> None:
    """Each skill or why it is none, then how many other files there are. UnreadableError where there is no skill."""
    count, others = 0, 0
    for folder, data in _files(source):
        if data is None:
            others += 1
            continue
        count += 1
        if count > MOST:
            raise UnreadableError(f"More than {MOST} skills in one archive. Split it.")
        emit({"skill": data if isinstance(data, dict) else _found(folder, data)})
    if not count:
        raise UnreadableError(NO_SKILL)
    emit({"others": others})


def _files(source: Source) -> Iterator[tuple[str, Any]]:
    """Folder and content of each SKILL.md, or the finding that it cannot be read; None for another file."""
    if not source.data.startswith(zips.MARK):
        yield "", source.data[: MEMBER_BYTES + 1]
        return
    archive = Archive(source.data, most=FILES_MOST, total_bytes=TOTAL_BYTES)
    for info in archive.files:
        place, _, name = info.filename.rpartition("/")
        folder = zips.shown(place)
        if name.lower() != FILE.lower():
            yield folder, None
            continue
        try:
            yield folder, b"".join(archive.chunks(info, MEMBER_BYTES))
        except MemberError as error:
            yield folder, {"name": folder or FILE, "error": f"it was not read: {str(error).lower()} are not"}


def _found(folder: str, data: bytes) -> dict[str, Any]:
    try:
        if len(data) > MEMBER_BYTES:
            raise UnreadableError(f"it is larger than {MEMBER_BYTES // 1000} KB")
        return _skill(folder, _text(data))
    except (UnreadableError, UserError) as error:
        return {"name": folder or FILE, "error": str(error).removeprefix(f"{FILE}: ")}


def _text(data: bytes) -> str:
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError("it is not in UTF-8; save it in UTF-8") from error
    if "\0" in text:
        raise UnreadableError("it is no text")
    return text


def _skill(folder: str, text: str) -> dict[str, Any]:
    head, body = split(text, FILE)
    keys = texts_of(head) if head is not None else {}
    name, description = keys.get("name") or folder, keys.get("description") or ""
    if not isinstance(name, str) or not isinstance(description, str) or not name.strip() or not description.strip():
        raise UnreadableError("it says no name or no description between two lines of ---")
    own = keys.get("metadata")
    own = own if isinstance(own, dict) else {}
    title = own.get("title")
    return {
        "name": name,
        "title": title if isinstance(title, str) and title.strip() else "",
        "description": description,
        "body": body,
        "phrases": _words(own.get("phrases")),
        "tools": _words(own.get("tools")),
    }


def _words(value: Any) -> list[str]:
    found = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [one for one in found if isinstance(one, str) and one.strip()]
