"""What models write beyond CommonMark and tables: formulas, task boxes, footnotes. Part of `markdown.py`.

Formulas leave here as TeX in `.math`; `web/static/math.js` draws them. The rules of mdit-py-plugins for them take the
text between two prices for one and read a long line of openings again for each (0.7.0), so these are our own; the
footnotes are the plugin's, with labels of a bounded length. Every rule looks ahead by a bounded number of characters.
"""

import html as escape_html
import re
from collections.abc import MutableMapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.footnote.index import footnote_ref

LONGEST_TEX, TALLEST_TEX = 2_000, 60  # characters and lines of one formula; what is longer stays as it was written
# Between single dollars no space at the edges and no letter or digit outside: "$5 and $10" and "$HOME/$USER" are text.
_INLINE = re.compile(
    r"(?<![A-Za-z0-9$])\$(?![\s$])(?P<one>(?:[^$\\]|\\.){1,2000}+)(?<!\s)\$(?![A-Za-z0-9$])"
    r"|\\\((?P<round>(?:[^\\]|\\[^()]){1,2000}+)\\\)"
    r"|\$\$(?P<two>(?:[^$\\]|\\.){1,2000}+)\$\$"
    r"|\\\[(?P<square>(?:[^\\]|\\[^\[\]]){1,2000}+)\\\]",
    re.DOTALL,
)
_BLOCK = {"$$": "$$", "\\[": "\\]"}
_TASK = re.compile(r"\[([ xX])\]\s+")
_FOOTNOTE = re.compile(r"\[\^([^\s\[\]]{1,64})\]")

Env = MutableMapping[str, Any]


def add_rules(parser: MarkdownIt) -> None:
    """Teach the parser, whose renderer is a `RuleRenderings`, what stands here."""
    parser.inline.ruler.before("escape", "math", _math_inline)
    parser.block.ruler.before("fence", "math", _math_block, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.core.ruler.after("inline", "tasks", _tasks)
    footnote_plugin(parser, inline=False)
    parser.inline.ruler.at("footnote_ref", _footnote_ref)
    parser.core.ruler.before("footnote_tail", "footnotes_without_a_sign", _keep_notes)
    renderer = parser.renderer
    assert isinstance(renderer, RendererHTML)  # noqa: S101 - its protocol has no rules
    renderer.rules |= {
        name: getattr(renderer, name) for name in renderer.rules if hasattr(RuleRenderings, name)
    }  # not the plugin's


def _math_inline(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    match = _INLINE.match(state.src, state.pos, state.posMax)
    if match is None or not (tex := str(match[match.lastgroup or 0]).strip()):
        return False
    if not silent:
        token = state.push("math_wide" if match.lastgroup in ("two", "square") else "math", "span", 0)
        token.content = tex
    state.pos = match.end()
    return True


def _math_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """A formula that has its lines for itself."""
    if state.is_code_block(start_line):
        return False
    begin = state.bMarks[start_line] + state.tShift[start_line]
    closing = _BLOCK.get(state.src[begin : begin + 2])
    if closing is None:
        return False
    for line in range(start_line, min(end_line, start_line + TALLEST_TEX)):
        if line > start_line and (state.isEmpty(line) or state.sCount[line] < state.blkIndent):
            return False
        if state.src[begin : state.eMarks[line]].rstrip().endswith(closing) and state.eMarks[line] - begin >= 4:
            break
    else:
        return False
    tex = state.getLines(start_line, line + 1, state.blkIndent, False).strip()[2:-2].strip()
    if not tex or closing in tex or len(tex) > LONGEST_TEX:
        return False
    if not silent:
        token = state.push("math_block", "p", 0)
        token.content, token.block, token.map = tex, True, [start_line, line + 1]
        state.line = line + 1
    return True


def _tasks(state: StateCore) -> None:
    """A box in place of the "[ ]" or "[x]" that a list item begins with."""
    for item, paragraph, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if (item.type, paragraph.type, inline.type) != ("list_item_open", "paragraph_open", "inline"):
            continue
        first = inline.children[0] if inline.children else None
        match = _TASK.match(first.content) if first is not None and first.type == "text" else None
        if first is not None and inline.children is not None and match is not None:
            item.attrJoin("class", "task")
            first.content = first.content[match.end() :]
            inline.children.insert(0, Token("task_box", "input", 0, meta={"is_done": match[1] != " "}))


def _footnote_ref(state: StateInline, silent: bool) -> bool:
    """The plugin's, after a look at the label; in a text that is still arriving a mark without its note."""
    match = _FOOTNOTE.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not state.env.get("is_piece"):
        return footnote_ref(state, silent)
    if not silent:
        state.push("footnote_mark", "sup", 0).content = match[1]
    state.pos = match.end()
    return True


def _keep_notes(state: StateCore) -> None:
    """A note that no sign leads to stands with the others: the plugin would leave it out."""
    notes = state.env.get("footnotes")
    if notes is None or state.env.get("is_piece"):
        return
    for label in [label for label, number in notes["refs"].items() if number < 0]:
        notes["refs"][label] = len(notes["list"])
        notes["list"][notes["refs"][label]] = {"label": label.removeprefix(":"), "count": 0}


class RuleRenderings:
    """The renderings, for a renderer to have among its own. `env["key"]` keeps the ids of a page's texts apart."""

    def math(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        """A formula in a line of text."""
        return f'<span class="math">{escape_html.escape(tokens[idx].content)}</span>'

    def math_wide(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        """A formula on a line of its own, which scrolls where it is too wide."""
        tex = escape_html.escape(tokens[idx].content)
        return f'<span class="math wide" tabindex="0" role="group" aria-label="Formula">{tex}</span>'

    def math_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        """Likewise, not among words."""
        return f"<p>{self.math_wide(tokens, idx, options, env)}</p>\n"

    def task_box(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        """The box of a task, which only shows."""
        done = " checked" if tokens[idx].meta["is_done"] else ""
        return f'<input type="checkbox" disabled{done} aria-label="Done"> '

    def footnote_mark(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        """A footnote's sign while its note has not come."""
        return f"<sup>{escape_html.escape(tokens[idx].content)}</sup>"

    def footnote_ref(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        """A footnote's sign, which leads to the note."""
        note, number = _note(tokens[idx], env)
        return (
            f'<sup><a href="#fn-{note}" id="fnref-{note}-{tokens[idx].meta["subId"]}" '
            f'aria-label="Footnote {number}">{number}</a></sup>'
        )

    def footnote_block_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        """Before the notes at the end of the text."""
        return '<div class="notes" role="group" aria-label="Footnotes"><ol>\n'

    def footnote_block_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        """After them."""
        return "</ol></div>\n"

    def footnote_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        """Before a note."""
        return f'<li id="fn-{_note(tokens[idx], env)[0]}">'

    def footnote_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        """After it."""
        return "</li>\n"

    def footnote_anchor(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        """The way back to a sign of the note."""
        note, number = _note(tokens[idx], env)
        if env["footnotes"]["list"][number - 1]["count"] == 0:
            return ""
        return f' <a href="#fnref-{note}-{tokens[idx].meta["subId"]}" aria-label="Back to footnote {number}">↩︎</a>'


def _note(token: Token, env: Env) -> tuple[str, int]:
    """Return what the ids of a note hold, and its number."""
    number = token.meta["id"] + 1
    return f"{env['key']}-{number}" if env.get("key") else str(number), number
