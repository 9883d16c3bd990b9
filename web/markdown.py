"""A model's markdown to sanitised HTML: parsed with raw HTML off, coloured by class names, cleaned by an allow-list.

Images are absent on purpose: a picture address written by a model is a way out for data. `web/markdown_stream.py`
renders the same text while it is still arriving.
"""

import html as escape_html
import re
from collections.abc import MutableMapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from web.markdown_rules import RuleRenderings, add_rules

LONGEST_COLOURED = 60_000  # characters; beyond that colouring costs more than it helps
# What is rendered of one text. The worst that was found to fit takes a second (30,000 of "["), a list of so many lines
# a tenth of one; 100,000 lines took 51 s (2026-11-22, one core).
LONGEST_CHARACTERS, LONGEST_LINES = 30_000, 1_000
FIRST_LEVEL = 2  # a turn's own heading is h2; the model's headings stand below it
LONG_LINE = 40  # characters of a listing's line; a phone shows so many
PREVIEWS = {"html": "html", "htm": "html", "svg": "svg", "mermaid": "mermaid"}  # drawn when its button is pressed
DIAGRAMS = {"d2", "dot", "graphviz", "mermaid", "nomnoml", "plantuml", "puml", "wavedrom"}
_BLOCKS = {"p", "br", "hr", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "div", "button", "label"}
_TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
# Blocks whose words say by their first letter from where they are read; a listing is read from the left always.
_DIRECTED = {f"{kind}_open" for kind in ("paragraph", "heading", "bullet_list", "ordered_list", "blockquote")}
_TAGS = _BLOCKS | _TABLES | {"code", "em", "strong", "s", "a", "span", "sup", "input"}
_CLASSES = {
    "div": re.compile(r"code|code-bar|tablewrap|notes"),
    "span": re.compile(r"code-lang|math|wide|[a-z][a-z0-9]{0,2}|err"),
    "button": re.compile(r"mini"),
    "label": re.compile(r"mini"),
    "li": re.compile(r"task"),
    "code": re.compile(r"live"),
    "th": re.compile(r"ar|ac"),
    "td": re.compile(r"ar|ac"),
}
_ID = re.compile(r"fn(ref)?(-[A-Za-z0-9_-]{1,160})?-\d{1,5}")  # of footnotes; there are no others
_colours = HtmlFormatter(nowrap=True, classprefix="")


def _keep(tag: str, name: str, value: str) -> str | None:
    if name == "dir":
        return value if value == "auto" else None
    if name == "id":
        return value if _ID.fullmatch(value) else None
    if name != "class":
        return value
    allowed = _CLASSES.get(tag)
    return " ".join(word for word in value.split() if allowed and allowed.fullmatch(word)) or None


_cleaner = nh3.Cleaner(
    tags=_TAGS,
    attributes={
        "a": {"href", "title", "id", "aria-label"},
        **{tag: {"dir"} for tag in ("p", "h3", "h4", "h5", "h6", "ul", "blockquote", "table")},
        "ol": {"start", "dir"},
        "li": {"class", "id"},
        "span": {"class", "tabindex", "role", "aria-label"},
        "label": {"class"},
        "input": {"disabled", "checked", "aria-label"},
        "code": {"class"},
        "th": {"class"},
        "td": {"class"},
        "div": {"class", "tabindex", "role", "aria-label"},
        "pre": {"tabindex"},
        "button": {"type", "class", "data-copy", "data-preview"},
    },
    set_tag_attribute_values={"input": {"type": "checkbox"}},
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener noreferrer nofollow",
    attribute_filter=_keep,
    clean_content_tags={"script", "style"},
)


def language_of(info: str) -> str:
    """The language a fence names, or "" when its first word is no such name."""
    match = re.match(r"[A-Za-z0-9_+#.-]{1,24}", info.strip())
    return match.group(0) if match else ""


def code_block(language: str, inner: str, *, is_live: bool = False, can_wrap: bool = False) -> str:
    """The box around a listing; `inner` is escaped or coloured already. can_wrap: it offers to break long lines."""
    live = ' class="live"' if is_live else ""
    name = escape_html.escape(language) or "text"
    kind = PREVIEWS.get(language.lower(), "") if not is_live else ""
    note = " · Diagrams are shown as code" if language.lower() in DIAGRAMS - PREVIEWS.keys() else ""
    preview = f'<button type="button" class="mini" data-preview="{kind}">Preview</button>' if kind else ""
    wrap = '<label class="mini"><input type="checkbox">Wrap</label>' if can_wrap else ""
    return (
        f'<div class="code"><div class="code-bar"><span class="code-lang">{name}{note}</span>{wrap}'
        f'{preview}<button type="button" class="mini" data-copy="">Copy</button></div>'
        f'<pre tabindex="0"><code{live}>{inner}</code></pre></div>'
    )


def plain_code(text: str) -> str:
    """Source text as it may stand inside `code`."""
    return escape_html.escape(text, quote=False)


def coloured(code: str, language: str) -> str:
    """Source text with a class per token kind; only escaped when the language is unknown or the text is very long."""
    if not language or len(code) > LONGEST_COLOURED:
        return plain_code(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return plain_code(code)
    return str(highlight(code, lexer, _colours))


def _has_long_line(code: str) -> bool:
    return any(len(line) > LONG_LINE for line in code.splitlines())


class _Renderer(RuleRenderings, RendererHTML):
    """Our shapes for listings and tables; alignment becomes a class because the CSP refuses style attributes."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        language, code = language_of(tokens[idx].info), tokens[idx].content
        return code_block(language, coloured(code, language), can_wrap=_has_long_line(code)) + "\n"

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        code = tokens[idx].content
        return code_block("", plain_code(code), can_wrap=_has_long_line(code)) + "\n"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        return (
            '<div class="tablewrap" tabindex="0" role="group" aria-label="Table, scrolls sideways"><table dir="auto">\n'
        )

    def table_close(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]
    ) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        style = str(tokens[idx].attrs.pop("style", ""))
        side = "ar" if "right" in style else "ac" if "center" in style else ""
        if side:
            tokens[idx].attrs["class"] = side
        return self.renderToken(tokens, idx, options, env)

    td_open = th_open


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True, "typographer": False}, renderer_cls=_Renderer)
    add_rules(parser)
    return parser.enable(["table", "strikethrough", "linkify"])


_markdown = _parser()


class Left(NamedTuple):
    """The part of a text that is shown, and of how much: in lines, or in characters where one line is too long."""

    shown: int
    total: int
    is_lines: bool


def shown_to(text: str) -> int:
    """Where the part that is rendered ends: with the text, unless that is too long; at a line's end if one is near."""
    end = min(len(text), LONGEST_CHARACTERS)
    lines = [match.end() for match in islice(re.finditer("\n", text[:end]), LONGEST_LINES)]
    if len(lines) == LONGEST_LINES:
        end = lines[-1]
    if not text[end:].strip():
        return len(text)
    return lines[-1] if lines and lines[-1] > end // 2 else end


def left_out(text: str) -> Left | None:
    """Return how much of a long text `render` shows; None when that is all of it."""
    end = shown_to(text)
    if end == len(text):
        return None
    if text[end - 1] == "\n":
        return Left(text.count("\n", 0, end), text.rstrip("\n").count("\n") + 1, is_lines=True)
    return Left(end, len(text), is_lines=False)


def parse(text: str) -> list[Token]:
    """The tokens of a text, with raw HTML as text."""
    return _markdown.parse(text, {"is_piece": True})


def render(text: str, key: str = "") -> str:
    """Sanitised HTML of a text; of a very long one its first part, see `left_out`.

    key: the id of the element that holds it, where a page shows several; footnotes have it in theirs.
    """
    return _rendered(text[: shown_to(text)], FIRST_LEVEL, {"key": key})[0]


def render_piece(text: str, level: int) -> tuple[str, int]:
    """HTML of a part of a text that is arriving, and the heading level it ends on.

    Headings sit below `level` and never skip one. Footnotes have no notes yet: those come with the whole text.
    """
    return _rendered(text, level, {"is_piece": True})


def _rendered(text: str, level: int, env: dict[str, Any]) -> tuple[str, int]:
    tokens = _markdown.parse(text, env)
    tag = ""
    for token in tokens:
        if token.type in _DIRECTED:
            token.attrs["dir"] = "auto"
        if token.type == "heading_open":
            level = max(FIRST_LEVEL + 1, min(int(token.tag[1]) + FIRST_LEVEL, level + 1, 6))
            token.tag = tag = f"h{level}"
        elif token.type == "heading_close":
            token.tag = tag
    return _cleaner.clean(_markdown.renderer.render(tokens, _markdown.options, env)), level
