"""Text filters of the templates: values as a person reads them, and characters that hide made visible.

Pure; registered by `web/render.py`.
"""

import json
import re
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

from cortex.base import scan
from cortex.base.browsers import browser_name
from cortex.base.hidden import holds_hiding, is_hiding
from cortex.base.json_text import parsed
from cortex.base.plain_text import plain_text
from cortex.base.server_settings import GROUPS, in_words, row_of
from cortex.base.user import User
from cortex.services.chat import deed_words
from cortex.services.chat.transcript_views import dom_id

# What the roles that come with Cortex are for, in a person's words; one of somebody's own has the name they gave it.
ROLE_TITLES = {
    "orchestrator": "Household",
    "chat": "Talk only",
    "research": "Research",
    "coder": "Programming",
    "distill": "Summaries",
    "admin": "Administration",
}
META = "meta"  # the category of the tools that find and call other tools
_ROWS = {(group.id, kind.name): str(escape(row_of(kind.name))) for group in GROUPS for kind in group.kinds}
_ROW = re.compile(r"Settings, [^,“]+, “[^”]+”")
_LONG_BLANK = re.compile(r" {24,}|\n{4,}")


def visible(text: str) -> Markup:
    """The text with every hiding character named where it stands, and long blank stretches counted."""
    pieces = [_named(piece) for piece in re.split(r"( {24,}|\n{4,})", text)]
    return Markup("").join(pieces)


def deed(title: str, arguments: str, words: str = "") -> Markup:
    """Tell what a call did, its main thing in bold."""
    return _marked(deed_words.deed(title, arguments, words))


def question(verb: str, arguments: str) -> Markup:
    """Ask for what a call would do, its main thing in bold."""
    return _marked(deed_words.question(verb, arguments))


def _marked(pieces: deed_words.Pieces) -> Markup:
    before, main, after = map(visible, pieces)
    return Markup("{}<b>{}</b>{}").format(before, main, after) if main else before


def _named(piece: str) -> Markup:
    if _LONG_BLANK.fullmatch(piece):
        what = "spaces" if piece[0] == " " else "line ends"
        return Markup('{}<span class="inv">{} {}</span>{}').format(piece[0], len(piece), what, piece[0])
    if not holds_hiding(piece):  # most: one by one, 2 MB took a second
        return escape(piece)
    marked = (
        Markup("").join(Markup('<span class="inv">{}</span>').format(_name(c)) for c in run)
        if hides
        else escape("".join(run))
        for hides, run in groupby(piece, is_hiding)
    )
    return Markup("").join(marked)


def _name(char: str) -> str:
    return "ESC" if char == "\x1b" else f"U+{ord(char):04X}"


def pretty(text: str) -> str:
    """JSON with line breaks; any other text as it is."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value = parsed(text)
    except ValueError:
        return text
    return json.dumps(value, indent=2, ensure_ascii=False) if value else text


def span(ms: float) -> str:
    """212 -> 212 ms, 2140 -> 2.1 s, 125000 -> 2 min 5 s."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000:.0f} min {ms % 60_000 // 1000:.0f} s"


def size(count: int) -> str:
    """A file's size: 980 -> 980 bytes, 2140 -> 2.1 kB, 1800000 -> 1.8 MB, 1000000000 -> 1 GB."""
    if count < 1000:
        return f"{count} byte" if count == 1 else f"{count} bytes"
    if count >= 999_950_000:
        return f"{count / 1_000_000_000:.1f}".removesuffix(".0") + " GB"
    return f"{count / 1000:.1f} kB" if count < 999_950 else f"{count / 1_000_000:.1f} MB"


def role_title(name: str) -> str:
    """The role by its purpose."""
    return ROLE_TITLES.get(name, name)


def capitalize_first(text: str) -> str:
    """The first letter large, the rest untouched."""
    return text[:1].upper() + text[1:]


def carried(receipt: dict[str, Any]) -> int:
    """Count the tools of a request, in its tools or after the message; meta tools cost tokens, but are none."""
    return sum(row["category"] != META for row in (*receipt["sent"], *receipt.get("noted", ())))


def markdown(text: str, key: str = "") -> Markup:
    """A model's markdown as sanitised HTML. key: the id of its element, where a page shows several texts."""
    return Markup(scan.load("web.markdown").render(text, key))  # noqa: S704 - nh3 cleaned it


def left_out(text: str) -> Any:
    """Return how much of a long text `markdown` shows, None for all. Any: a value of `web/markdown.py`, read late."""
    return scan.load("web.markdown").left_out(text)


def kind(value: object) -> str:
    """The class name of a view value, by which a template chooses its macro."""
    return type(value).__name__


def dom(part_id: str, prefix: str, turn_id: str) -> str:
    """The element id of a part."""
    return dom_id(prefix, turn_id, part_id)


def with_rows(text: str | Markup, user: User | None) -> Markup:
    """Return the text with the rows of the page of settings that it names as links, for an admin."""
    words = escape(text)
    if user is None or not user.is_admin:
        return words

    def link(found: re.Match[str]) -> str:
        place = next((f"?open={group}#f-{name}" for (group, name), row in _ROWS.items() if row == found[0]), "")
        return f'<a class="link" href="/admin/settings{place}">{found[0]}</a>' if place else found[0]

    return Markup(_ROW.sub(link, words))  # noqa: S704  (escaped above; the address is of our own names)


FILTERS = {
    "browser": browser_name,
    "carried": carried,
    "deed": deed,
    "facts": deed_words.facts,
    "question": question,
    "says_more": deed_words.says_more,
    "capitalize_first": capitalize_first,
    "role_title": role_title,
    "dom": dom,
    "in_words": in_words,
    "kind": kind,
    "left_out": left_out,
    "markdown": markdown,
    "pretty": pretty,
    "size": size,
    "span": span,
    "plain_words": plain_text,
    "visible": visible,
    "with_rows": with_rows,
}
