"""Reads a Markdown file that begins with a front matter: a strict, small part of YAML, so that a slip is named.

Known: `key: value` with text, numbers, true, false, `[a, b]`, and lists of `- item` lines. Nothing nests.
"""

from cortex.base.errors import UserError

Value = str | int | float | bool | tuple[str, ...] | None
FENCE = "---"
_WORDS: dict[str, Value] = {"true": True, "false": False, "yes": True, "no": False, "null": None, "~": None, "": None}


def front_matter(text: str, where: str) -> tuple[dict[str, Value], str]:
    """The keys of the front matter and the text after it; no front matter = no keys. UserError names file and line."""
    lines = text.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != FENCE:
        return {}, text.strip()
    closing = [at for at, line in enumerate(lines[1:], 1) if line.strip() == FENCE]
    if not closing:
        raise UserError(f"{where}: the front matter that begins with {FENCE} is never closed.")
    return _keys(lines[1 : closing[0]], where), "\n".join(lines[closing[0] + 1 :]).strip()


def _keys(lines: list[str], where: str) -> dict[str, Value]:
    found: dict[str, Value] = {}
    open_key = ""
    for number, raw in enumerate(lines, 2):
        line = raw.split(" #", 1)[0].rstrip() if not raw.lstrip().startswith("#") else ""
        if not line.strip():
            continue
        item = line.strip()
        if item.startswith("- "):
            before = found.get(open_key)
            if not open_key or not (before is None or isinstance(before, tuple)):
                raise UserError(f"{where}, line {number}: a list item without a list.")
            found[open_key] = (*(before or ()), _bare(item[2:]))
            continue
        key, colon, value = line.partition(":")
        if not colon or line[0].isspace() or not key.strip().isidentifier():
            raise UserError(f"{where}, line {number}: {line.strip()!r} is not `key: value`.")
        open_key = key.strip()
        if open_key in found:
            raise UserError(f"{where}, line {number}: {open_key!r} appears twice.")
        found[open_key] = _value(value.strip(), where, number)
    return found


def _value(text: str, where: str, number: int) -> Value:
    if text.startswith("["):
        if not text.endswith("]"):
            raise UserError(f"{where}, line {number}: a list that begins with [ must end with ] on the same line.")
        return tuple(_bare(item) for item in text[1:-1].split(",") if item.strip())
    if text.casefold() in _WORDS:
        return _WORDS[text.casefold()]
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return _bare(text)


def _bare(text: str) -> str:
    """Without the quotes around it."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
