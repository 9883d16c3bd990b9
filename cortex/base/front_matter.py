"""The front matter of our own Markdown files: a strict part of YAML, read here, and written so that it is read again.

`simple` reads what YAML reads the same way: a key a line, texts in quotes or without, lists of them; it says None to
all else, which is YAML for the program that reads foreign files. So what we write costs no program, and no YAML is
parsed here. `legacy` reads as every version before 2026-11-27 did.
"""

import re

from cortex.base.errors import UserError

Value = str | int | float | bool | tuple[str, ...] | None
Words = str | tuple[str, ...]
FENCE = "---"
HEAD_CHARACTERS = 20_000
_WORDS: dict[str, Value] = {"true": True, "false": False, "yes": True, "no": False, "null": None, "~": None, "": None}
# What YAML takes for the end of a line, or does not take at all, stands in a text as an escape.
_ESCAPED = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]')
_UNCLEAR = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\t\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_ESCAPE = re.compile(r'\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(["\\nrt]))')
_SHORT = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_LONG = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_DOUBLE = r'"(?:[^"\\]|\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|["\\nrt]))*"'
_SINGLE = r"'(?:[^']|'')*'"
_BEGINNING = r"[^\s\-?:,\[\]{}#&*!|>'\"%@`]"
_PLAIN = rf"(?:{_BEGINNING}|-(?=[^\s\-.,\[\]{{}}]))(?:[^#:]|(?<=\S)\#|:(?=\S))*"
_WORD = r"[^\W_](?:[\w. /()+-]*[\w)+])?"  # in a list nothing is left to doubt
_KEY = re.compile(r"(?P<key>[A-Za-z_][A-Za-z0-9_-]{0,59}):(?: +(?P<value>.*))?")
_ITEM = re.compile(r"(?P<indent> *)- +(?P<value>.*)")
_TEXT = re.compile(rf"(?:(?P<quoted>{_DOUBLE}|{_SINGLE})|(?P<plain>{_PLAIN}))(?: +\#.*)?")
_ONE = rf"(?:{_DOUBLE}|{_SINGLE}|{_WORD})"
_LIST = re.compile(rf"\[(?P<inside> *(?:{_ONE}(?: *, *{_ONE})*)?(?: *,)? *)\](?: +\#.*)?")
_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")


class Plain(str):
    """A text that stood there without quotes."""

    __slots__ = ()


def front_matter(text: str, where: str) -> tuple[dict[str, Value], str]:
    """The keys of the front matter and the text after it; no front matter = no keys. UserError names file and line.

    Texts without quotes that are numbers, true, false or null are these.
    """
    head, body = split(text, where)
    if head is None:
        return {}, body.strip()
    found = simple(head)
    return {key: _typed(one) for key, one in (legacy(head, where) if found is None else found).items()}, body.strip()


def split(text: str, where: str) -> tuple[str | None, str]:
    """Return what stands between the fences, None without any, and the text behind, exactly.

    UserError where no fence closes it, or it is far too long.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].strip() != FENCE:
        return None, text.removeprefix("\ufeff")
    ends = [at for at, line in enumerate(lines[1:], 1) if line.strip() == FENCE]
    # An indented one is a text's, where another follows.
    closing = next((at for at in ends if lines[at].startswith(FENCE)), next(iter(ends), 0))
    if not closing:
        raise UserError(f"{where}: the front matter that begins with {FENCE} is never closed.")
    head = "\n".join(lines[1:closing])
    if len(head) > HEAD_CHARACTERS:
        raise UserError(f"{where}: its front matter has {len(head):,} characters; {HEAD_CHARACTERS:,} are read.")
    body = "\n".join(lines[closing + 1 :])
    body = body[2:] if body.startswith("\r\n") else body.removeprefix("\n")
    return head, body.removesuffix("\n")


def joined(keys: str, body: str) -> str:
    """A file of this front matter and this text, which `split` takes apart again."""
    return f"{FENCE}\n{keys}{FENCE}\n\n{body}\n"


def quoted(text: str) -> str:
    """The text in quotes, on one line, as YAML and `simple` read it back."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def bare(text: str) -> str:
    """The text as it is where nothing else could be meant by it, else in quotes."""
    return text if _SAFE.fullmatch(text) and text.casefold() not in _WORDS else quoted(text)


def simple(head: str) -> dict[str, Words] | None:
    """The keys of a front matter with nothing in it but what YAML reads the same; None for any other."""
    found: dict[str, Words] = {}
    open_key, indent = "", -1
    for line in (raw.rstrip(" \r") for raw in head.split("\n")):
        if _UNCLEAR.search(line):
            return None
        if not line or line.lstrip(" ").startswith("#"):
            continue
        if item := _ITEM.fullmatch(line):
            text = _text(item["value"])
            if text is None or not open_key or indent not in (-1, len(item["indent"])):
                return None
            indent = len(item["indent"])
            before = found[open_key]
            found[open_key] = (*(before if isinstance(before, tuple) else ()), str(text))
            continue
        key = _KEY.fullmatch(line)
        value = None if key is None else _value(key["value"] or "")
        if key is None or value is None or key["key"] in found:
            return None
        found[key["key"]], indent = value, -1
        open_key = key["key"] if isinstance(value, Plain) and not value else ""
    return found


def legacy(head: str, where: str) -> dict[str, Words]:
    """The keys as the small parser of before read them; UserError names file and line."""
    found: dict[str, Words] = {}
    open_key = ""
    for number, raw in enumerate(head.splitlines(), 2):
        line = raw.split(" #", 1)[0].rstrip() if not raw.lstrip().startswith("#") else ""
        if not line.strip():
            continue
        item = line.strip()
        if item.startswith("- "):
            before = found.get(open_key)
            if before is None or not (isinstance(before, tuple) or _typed(before) is None):
                raise UserError(f"{where}, line {number}: a list item without a list.")
            found[open_key] = (*(before if isinstance(before, tuple) else ()), _unquoted(item[2:]))
            continue
        key, colon, value = line.partition(":")
        if not colon or line[0].isspace() or not key.strip().isidentifier():
            raise UserError(f"{where}, line {number}: {line.strip()!r} is not `key: value`.")
        open_key = key.strip()
        if open_key in found:
            raise UserError(f"{where}, line {number}: {open_key!r} appears twice.")
        found[open_key] = _legacy_value(value.strip(), where, number)
    return found


def _escape(sign: re.Match[str]) -> str:
    code = ord(sign[0])
    return _LONG.get(sign[0]) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def _unescape(sign: re.Match[str]) -> str:
    code = sign[1] or sign[2] or sign[3]
    return _SHORT[sign[4]] if not code else chr(int(code, 16))


def _value(value: str) -> Words | None:
    """A value on its line; None for what is left to YAML."""
    if not value or value.startswith("#"):
        return Plain("")
    if items := _LIST.fullmatch(value):
        found = [_text(one) for one in re.findall(_ONE, items["inside"])]
        return None if None in found else tuple(map(str, found))
    return _text(value)


def _text(value: str) -> str | None:
    found = _TEXT.fullmatch(value)
    if found is None:
        return None
    if found["plain"]:
        return Plain(found["plain"].rstrip(" "))
    whole = found["quoted"]
    if whole[0] == "'":
        return whole[1:-1].replace("''", "'")
    codes = [one[1] or one[2] or one[3] or "0" for one in _ESCAPE.finditer(whole)]
    if any(0xD800 <= int(code, 16) <= 0xDFFF or int(code, 16) > 0x10FFFF for code in codes):
        return None
    return _ESCAPE.sub(_unescape, whole[1:-1])


def _typed(value: Words) -> Value:
    """Return what a text without quotes stands for."""
    if not isinstance(value, Plain):
        return value
    if value.casefold() in _WORDS:
        return _WORDS[value.casefold()]
    for read in (int, float):
        try:
            return read(value)
        except ValueError:
            continue
    return str(value)


def _legacy_value(text: str, where: str, number: int) -> Words:
    if text.startswith("["):
        if not text.endswith("]"):
            raise UserError(f"{where}, line {number}: a list that begins with [ must end with ] on the same line.")
        return tuple(_unquoted(item) for item in text[1:-1].split(",") if item.strip())
    return Plain(text) if (made := _unquoted(text)) == text else made


def _unquoted(text: str) -> str:
    """Without the quotes around it."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
