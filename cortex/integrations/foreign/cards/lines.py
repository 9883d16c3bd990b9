"""The lines of a vCard: taken apart, and written. What is not touched keeps its bytes. Runs in `program.py` only.

`icalendar` reads lines of the same grammar, but of `TYPE=INTERNET;TYPE=HOME`, as most programs write, the last alone.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

FOLD_BYTES = 75
LONG = 20_000  # characters of one line: a photo, not a text; it is carried along unread
_END = re.compile(r"\r\n|\n|\r")
_HEAD = re.compile(r'(?:([\w-]{1,60})\.)?([\w-]{1,60})((?:;(?:"[^"]*"|[^:"])*)?):')
_PARAM = re.compile(r';([\w-]{1,60})(?:=((?:"[^"]*"|[^;"])*))?')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_UNPRINTABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


class CardLine(Struct, frozen=True, kw_only=True):
    """One line. `group`: joins it with others; `raw`: as it was written, folded; `value`: "" of what is not read."""

    raw: str
    name: str = ""
    group: str = ""
    params: tuple[tuple[str, str], ...] = ()
    value: str = ""

    def param(self, name: str) -> str:
        """The first parameter of this name, "" without."""
        return next((value for key, value in self.params if key == name), "")

    @property
    def types(self) -> Sequence[str]:
        """The words of its types, small."""
        named = [value for key, value in self.params if key == "TYPE"]
        return [word.strip().lower() for one in named for word in one.split(",") if word.strip()]


def lines_of(data: str) -> list[CardLine]:
    """Every line of a resource."""
    return [_line(raw) for raw in _folded_lines(data)]


def text_of(value: str) -> str:
    """A text, without its escapes."""
    return _ESCAPE.sub(lambda found: "\n" if found[1] in "nN" else found[1], value).strip()


def parts_of(value: str, mark: str) -> list[str]:
    """The parts of a value between marks that are not escaped, each as text."""
    parts, start, at = [], 0, 0
    while at < len(value):
        if value[at] == "\\":
            at += 1
        elif value[at] == mark:
            parts.append(value[start:at])
            start = at + 1
        at += 1
    return [text_of(one) for one in [*parts, value[start:]]]


def escaped(text: str) -> str:
    """The text as a value has it."""
    plain = _UNPRINTABLE.sub(" ", text.replace("\r\n", "\n"))
    return plain.replace("\\", "\\\\").replace("\n", "\\n").replace(",", "\\,").replace(";", "\\;")


def made(head: str, value: str) -> CardLine:
    """A new line. `head`: its name with parameters; `value`: escaped already."""
    return _line("\r\n ".join(_pieces(f"{head}:{value}")))


def joined(lines: Sequence[CardLine]) -> str:
    """The resource that these lines make."""
    return "".join(f"{line.raw}\r\n" for line in lines)


def _folded_lines(data: str) -> Iterator[str]:
    held: list[str] = []
    for one in _END.split(data):
        if one[:1] in (" ", "\t") and held:
            held.append(one)
            continue
        if held:
            yield "\r\n".join(held)
        held = [one] if one.strip() else []
    if held:
        yield "\r\n".join(held)


def _line(raw: str) -> CardLine:
    if len(raw) > LONG:
        head = _HEAD.match(raw[:LONG].replace("\r\n ", "").replace("\r\n\t", ""))
        return CardLine(raw=raw, name=head[2].upper(), group=head[1] or "") if head else CardLine(raw=raw)
    whole = raw.replace("\r\n ", "").replace("\r\n\t", "")
    head = _HEAD.match(whole)
    if head is None:
        return CardLine(raw=raw)
    params = tuple((one[1].upper(), (one[2] or "").strip('"')) for one in _PARAM.finditer(head[3]))
    return CardLine(raw=raw, name=head[2].upper(), group=head[1] or "", params=params, value=whole[head.end() :])


def _pieces(line: str) -> Iterator[str]:
    piece, size = "", 0
    for sign in line:
        wide = len(sign.encode("utf-8", "replace"))
        if size + wide > FOLD_BYTES - 1:
            yield piece
            piece, size = "", 0
        piece, size = piece + sign, size + wide
    yield piece
