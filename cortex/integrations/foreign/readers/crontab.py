"""A crontab, line by line: what sets a variable, what runs a command when, or why it does neither."""

import re
from typing import Any

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.program import Emit, Source

LINES_MOST = 500
SHOWN_CHARACTERS = 2_000  # of a line; the longest command that a crontab takes has 1,000
_VARIABLE = re.compile(r"([A-Za-z_]\w*)\s*=\s*(.*)")
_NICKNAME = re.compile(r"(@\w+)\s+(.+)")
_LINE = re.compile(r"((?:\S+\s+){4}\S+)\s+(.+)")


def read(source: Source, emit: Emit) -> None:
    """Every line but blank ones and comments, in order; the comment above one is its name."""
    try:
        text = source.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError("This crontab is not in UTF-8.") from error
    above, count = "", 0
    for number, raw in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            above = line.lstrip("# ").strip() if line else ""
            continue
        count += 1
        if count <= LINES_MOST:
            emit({"number": number, "text": line[:SHOWN_CHARACTERS], **_read(line, above)})
        above = ""
    if count > LINES_MOST:
        more = count - LINES_MOST
        emit({"number": 0, "text": "…", "why": f"{more:,} more lines were not read: at most {LINES_MOST} at once"})


def _read(line: str, above: str) -> dict[str, Any]:
    if len(line) > SHOWN_CHARACTERS:
        return {"why": f"a line has at most {SHOWN_CHARACTERS:,} characters; this has {len(line):,}"}
    if variable := _VARIABLE.fullmatch(line):
        return {"variable": variable[1], "value": variable[2].strip("\"' ")}
    parts = _NICKNAME.fullmatch(line) or _LINE.fullmatch(line)
    if parts is None:
        return {"why": "not a crontab line: five fields, then a command"}
    command, *rest = re.split(r"(?<!\\)%", parts[2].strip(), maxsplit=1)
    command = command.replace("\\%", "%").strip()
    when = " ".join(parts[1].split())
    return {"when": when, "command": command, "has_input": bool(rest), "name": (above or command)[:80]}
