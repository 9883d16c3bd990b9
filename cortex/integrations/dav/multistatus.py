"""What a DAV server is asked, and its answers by resource: RFC 4918, section 14, in the parts that are used here.

The XML is read by expat alone: a document type is refused, so no entity can unfold or reach a file.
"""

from collections.abc import Iterator, Sequence
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

DAV, CALDAV, CARDDAV = "DAV:", "urn:ietf:params:xml:ns:caldav", "urn:ietf:params:xml:ns:carddav"
APPLE, SERVER = "http://apple.com/ns/ical/", "http://calendarserver.org/ns/"
_PREFIXES = {DAV: "d", CALDAV: "c", CARDDAV: "a", APPLE: "i", SERVER: "s"}
_DECLARED = " ".join(f"xmlns:{prefix}={quoteattr(space)}" for space, prefix in _PREFIXES.items())
_HEAD = '<?xml version="1.0" encoding="utf-8"?>'
DEPTH = 40
Name = tuple[str, str]  # of an element: its namespace, and what it is called there


class BadAnswerError(ValueError):
    """The answer is no multistatus that can be read."""


class FoundResource(Struct, frozen=True):
    """One resource in an answer. `status`: of itself, 0 without; `values`: the properties that it has."""

    href: str
    status: int
    values: dict[Name, ElementTree.Element]

    def text(self, *name: str) -> str:
        """The text of a property, "" without; `name`: its namespace, then what it is called."""
        element = self.values.get((name[0], name[1]))
        return "" if element is None else (element.text or "").strip()

    def hrefs(self, *name: str) -> Sequence[str]:
        """The addresses inside a property."""
        element = self.values.get((name[0], name[1]))
        return [] if element is None else [href_of(one) for one in element.iter(f"{{{DAV}}}href") if one.text]


class Multistatus(Struct, frozen=True):
    """A whole answer. `token`: by which the next one says only what changed since."""

    found: Sequence[FoundResource]
    token: str = ""


def propfind(*names: Name) -> bytes:
    """Ask for these properties."""
    return _body("d:propfind", _props(names))


def sync(token: str, *names: Name) -> bytes:
    """Ask for what changed since `token`; for everything where it is empty (RFC 6578)."""
    inner = f"<d:sync-token>{escape(token)}</d:sync-token><d:sync-level>1</d:sync-level>"
    return _body("d:sync-collection", inner + _props(names))


def multiget(kind: str, hrefs: Sequence[str]) -> bytes:
    """Ask for the data of these resources. `kind`: the namespace, of calendars or address books."""
    data = "calendar-data" if kind == CALDAV else "address-data"
    outer = "c:calendar-multiget" if kind == CALDAV else "a:addressbook-multiget"
    listed = "".join(f"<d:href>{escape(href)}</d:href>" for href in hrefs)
    return _body(outer, _props([(DAV, "getetag"), (kind, data)]) + listed)


def read(body: bytes) -> Multistatus:
    """Read an answer. BadAnswerError for what is none."""
    root = _parsed(body)
    if root.tag != f"{{{DAV}}}multistatus":
        raise BadAnswerError("no multistatus")
    token = root.findtext(f"{{{DAV}}}sync-token") or ""
    return Multistatus(found=[_found(one) for one in root.iter(f"{{{DAV}}}response")], token=token.strip())


def precondition(body: bytes) -> str:
    """Return the rule of the protocol a refusal names, such as `no-uid-conflict`; "" where it names none."""
    try:
        root = _parsed(body)
    except BadAnswerError:
        return ""
    if root.tag != f"{{{DAV}}}error" or len(root) == 0:
        return ""
    return root[0].tag.rpartition("}")[2]


def href_of(element: ElementTree.Element) -> str:
    """The address in an element, as the server wrote it."""
    return (element.text or "").strip()


def same_place(one: str, other: str) -> bool:
    """Tell whether two paths mean one resource: servers encode the same path in different ways."""
    return unquote(one).rstrip("/") == unquote(other).rstrip("/")


def _found(response: ElementTree.Element) -> FoundResource:
    href = response.find(f"{{{DAV}}}href")
    values = {}
    for part in response.iter(f"{{{DAV}}}propstat"):
        if _status(part.findtext(f"{{{DAV}}}status")) in (0, 200):
            for element in part.iterfind(f"{{{DAV}}}prop/*"):
                values[_name(element)] = element
    return FoundResource(
        href="" if href is None else href_of(href),
        status=_status(response.findtext(f"{{{DAV}}}status")),
        values=values,
    )


def _status(line: str | None) -> int:
    """The number of a line such as `HTTP/1.1 404 Not FoundResource`; 0 without."""
    words = (line or "").split()
    return int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0


def _name(element: ElementTree.Element) -> Name:
    space, _, name = element.tag[1:].rpartition("}")
    return (space, name)


def _parsed(body: bytes) -> ElementTree.Element:
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEPTH:
            raise BadAnswerError("nested too deep")
        builder.start("{" + tag if "}" in tag else tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end("{" + tag if "}" in tag else tag)

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise BadAnswerError(str(error)) from error
    root: ElementTree.Element = builder.close()
    return root


def _refuse(*_: object) -> None:
    raise BadAnswerError("a document type")


def _props(names: Sequence[Name]) -> str:
    return f"<d:prop>{''.join(_empty(names))}</d:prop>"


def _empty(names: Sequence[Name]) -> Iterator[str]:
    for space, name in names:
        yield f"<{_PREFIXES[space]}:{name}/>"


def _body(outer: str, inner: str) -> bytes:
    return f"{_HEAD}<{outer} {_DECLARED}>{inner}</{outer}>".encode()
