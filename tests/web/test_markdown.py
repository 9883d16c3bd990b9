"""A model's markdown: the streamed page equals the whole one, and nothing in it can act."""

import random
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it.token import Token

from tests.attacks import scripts
from web.markdown import parse, render
from web.markdown_stream import Stream, close_inline

TEXT = """# Plan

Some **bold**, *slanted* and `code`, see [the log](https://example.org/log) or www.example.org.

- one
- two

  still two
1. first
2. second

| Job | Time |
|:-:|--:|
| a | 1 |

```python
def f(x: int) -> int:
    return x  # done
```

~~~
plain <b>text</b>
~~~

> quoted
> twice

    indented

## Next

Setext
======

- [ ] a box
- [x] ticked, with $x_1$ and \\(y\\)

A note[^1] and another[^two].

$$
\\frac{a}{b}
$$

\\[ a \\]

[^1]: What it says.
[^two]: And *this*,

    in two parts.

```mermaid
graph TD; a line that is longer than a phone is wide --> b
```

A last line with ~~struck~~ words and a [reference][r].

[r]: https://example.org/r
"""


class Page:
    """What the browser shows of a part while its changes arrive."""

    def __init__(self) -> None:
        self.committed, self.open = "", ""

    def show(self, stream: Stream, *, is_last: bool = False) -> None:
        for change in stream.finish() if is_last else stream.flush():
            match change.kind:
                case "commit":
                    self.committed, self.open = self.committed + change.html, ""
                case "open":
                    self.open = change.html
                case "code":
                    self.open = self.open.replace("</code></pre></div>", change.html + "</code></pre></div>")
                case "replace":
                    self.committed, self.open = change.html, ""


def streamed(text: str, sizes: list[int]) -> tuple[str, Page]:
    stream, page, at = Stream(), Page(), 0
    for size in sizes:
        stream.feed(text[at : at + size])
        at += size
        page.show(stream)
        assert (page.committed, page.open) == (stream.committed_html, stream.open_html)
    stream.feed(text[at:])
    page.show(stream, is_last=True)
    return page.committed, page


def sizes_of(text: str, seed: int) -> list[int]:
    chance = random.Random(seed)  # noqa: S311 - chunk sizes, no secret
    return [chance.randint(1, 24) for _ in range(len(text) // 8)]


@pytest.mark.parametrize("seed", range(40))
def test_a_streamed_answer_ends_as_the_whole_one(seed: int) -> None:
    assert streamed(TEXT, sizes_of(TEXT, seed))[0] == render(TEXT)


BLOCKS = (
    "- [ ] ",
    "- [x] ",
    "$$\n",
    "\\[\n",
    "\\]\n",
    "[^1]: ",
    "```mermaid\n",
    "# ",
    "- ",
    "1. ",
    "1) ",
    "> ",
    "    ",
    "```\n",
    "```py\n",
    "~~~\n",
    "| a | b |\n|---|---|\n",
    "* * *\n",
)
INLINE = (
    "$",
    "$$",
    "\\(",
    "\\)",
    "x^2",
    "[^1]",
    "**",
    "`",
    "[x](",
    ")",
    "<b>",
    "&amp;",
    "\\",
    "*",
    "[r]: /x\n",
    "é",
    "text ",
    "word",
)
ENDS = ("\n", "\n\n", "\t", "===\n", "---\n")
MARKS = st.sampled_from(BLOCKS + INLINE + ENDS)


@given(st.lists(MARKS, max_size=40).map("".join), st.lists(st.integers(1, 9), max_size=60))
def test_any_text_in_any_pieces_ends_as_the_whole_one(text: str, sizes: list[int]) -> None:
    assert streamed(text, sizes)[0] == render(text)


def test_blocks_that_come_at_once_are_not_parsed_again_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def noted(text: str) -> list[Token]:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr("web.markdown_stream.parse", noted)
    text = "".join(f"Block {number}\n\n" for number in range(300))
    stream = Stream()
    stream.feed(text)
    stream.flush()
    assert sum(map(len, parsed)) < 2 * len(text)


def test_a_listing_is_sent_line_by_line_and_coloured_once_at_its_end() -> None:
    stream = Stream()
    stream.feed("```python\nx = 1\ny")
    assert [change.kind for change in stream.flush()] == ["open", "code"]
    stream.feed(" = 2\n")
    assert [(change.kind, change.html) for change in stream.flush()] == [("code", "y = 2\n")]
    stream.feed("```\n")
    assert [change.kind for change in stream.flush()] == ["commit"]
    assert '<span class="mi">2</span>' in stream.committed_html


@pytest.mark.parametrize(
    ("typed", "shown"),
    [("a **b", "a **b**"), ("a `b", "a `b`"), ("see [docs](https://exa", "see docs"), ("a **", "a ")],
    ids=["bold", "code", "link", "mark alone"],
)
def test_a_half_written_mark_does_not_flash(typed: str, shown: str) -> None:
    assert close_inline(typed) == shown


def test_headings_stand_below_the_turns_own_and_skip_no_level() -> None:
    html = render("# a\n\n#### b\n\n# c")
    assert [tag for tag in ("<h3>a", "<h4>b", "<h3>c") if tag in html.replace(' dir="auto"', "")] == [
        "<h3>a",
        "<h4>b",
        "<h3>c",
    ]


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("It costs $5 and $10, or US$5, €4 and 3$.", []),
        ("From $5-$10 to ($7/month, $60/year), $HOME/bin:$PATH and $A=$B", []),
        ("`$x$` and \\$x\\$, a$b$c", []),
        ("$x_1$ and $5 + 5$, ($y$), 公式$z$是", ["x_1", "5 + 5", "y", "z"]),
        ("\\(a\\) and \\[b\\] and $$c$$", ["a", "b", "c"]),
        (
            "Then:\n$$\n\\begin{aligned}\na &= b \\\\[2pt]\n\\end{aligned}\n$$\nso",
            ["\\begin{aligned}\na &= b \\\\[2pt]\n\\end{aligned}"],
        ),
        ("> \\[\n> a\n> \\]\n\n- $$b$$\n  $$\n  c\n  $$", ["a", "b", "c"]),
        ("$$\na\n\nb\n$$", []),
        ("$" + "x" * 3_000 + "$", []),
    ],
    ids=["prices", "more dollars", "not meant", "inline", "all four", "lines", "inside", "a gap", "too long"],
)
def test_a_formula_is_known_by_its_marks(text: str, formulas: list[str]) -> None:
    found = re.findall(r'<span class="math(?: wide)?"[^>]*>(.*?)</span>', render(text), re.DOTALL)
    assert [unescape(one) for one in found] == formulas


def test_a_task_shows_whether_it_is_done_and_cannot_be_ticked() -> None:
    boxes = [found for tag, found in elements(render("- [ ] a\n- [X] **b**\n- [x](/c)\n\n[ ] d")) if tag == "input"]
    box = {"type": "checkbox", "disabled": "", "aria-label": "Done"}
    assert boxes == [box, box | {"checked": ""}]


NOTES = "One[^a], two[^b], one[^a].\n\n[^a]: First.\n[^b]: Second.\n[^c]: Nobody's."


@pytest.mark.parametrize("key", ["p1-2", f"p{'4a' * 16}-{'4a' * 16}-1-12"], ids=["short", "as a turn's part"])
def test_footnotes_lead_there_and_back(key: str) -> None:
    found = elements(render(NOTES, key))
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]
    links = [attributes["href"].removeprefix("#") for tag, attributes in found if tag == "a"]
    assert len(ids) == len(set(ids)) == 6
    assert set(links) == set(ids) - {f"fn-{key}-3"}
    assert all(key in one for one in ids)


def test_a_footnote_of_nobody_is_not_lost() -> None:
    assert "Nobody" in render(NOTES)


def test_footnotes_of_two_texts_are_kept_apart() -> None:
    both = elements(render(NOTES, "p1") + render(NOTES, "p2"))
    ids = [attributes["id"] for _, attributes in both if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_a_diagram_is_shown_as_code_and_says_so() -> None:
    assert "Diagrams are shown as code" in render("```plantuml\nA -> B\n```")
    assert "Diagrams are shown as code" not in render("```mermaid\ngraph TD\n```")
    assert "Diagrams are shown as code" not in render("```python\nx\n```")


def test_only_long_lines_are_offered_to_be_wrapped() -> None:
    assert "Wrap" in render(f"```\n{'word ' * 20}\n```")
    assert "Wrap" not in render("```\nshort\n```")


# --- fifty and more ways in -----------------------------------------------------------------------------------------

BAD_URLS = (
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    " javascript:alert(1)",
    "&#106;avascript:alert(1)",
    "&#x6A;&#x61;vascript:alert(1)",
    "javascript&colon;alert(1)",
    "vbscript:msgbox(1)",
    "data:text/html,<script>alert(1)</script>",
    "data:image/svg+xml,<svg onload=alert(1)>",
    "file:///etc/passwd",
    "blob:https://example.org/1",
    "view-source:javascript:alert(1)",
)
RAW = (
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    '<img src="https://evil.example/leak.png">',
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x>",
    "<math><mtext><img src=x onerror=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<form action=javascript:alert(1)><button>x</button></form>",
    "<button formaction=javascript:alert(1)>x</button>",
    "<a href=javascript:alert(1)>x</a>",
    "<base href=//evil.example>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<style>*{background:url(//evil.example)}</style>",
    '<div style="background:url(//evil.example)">x</div>',
    '<hx-partial hx-target="body" hx-swap="innerHTML">gone</hx-partial>',
    '<template hx type="partial" hx-target="body">gone</template>',
    '<div hx-get="/logout" hx-trigger="load">x</div>',
    '<div data-hx-post="/c/1/stop" data-hx-trigger="load">x</div>',
    '<div hx-on:click="alert(1)">x</div>',
    '<div hx-sse:connect="/c/1/events">x</div>',
    '<p id="composer" class="stop">x</p>',
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "<xmp><img src=x onerror=alert(1)></xmp>",
    "<a href='x' onmouseover='alert(1)'>x</a>",
)
SYNTAX = (
    "![leak](https://evil.example/leak.png)",
    "![x](javascript:alert(1))",
    '[x](https://ok.example "a\\" onmouseover=\\"alert(1)")',
    "[x]: javascript:alert(1)\n\n[x]",
    '```html" onmouseover="alert(1)\n<img src=x onerror=alert(1)>\n```',
    "```\n</code></pre><script>alert(1)</script>\n```",
    "~~~'><svg/onload=alert(1)>\nx\n~~~",
    "| a |\n|---|\n| <b onclick=alert(1)>x</b> |",
    "`</code><script>alert(1)</script>`",
    "# <img src=x onerror=alert(1)>",
    "- <script>alert(1)</script>",
    "> <iframe srcdoc='<script>alert(1)</script>'>",
    "<javascript:alert(1)>",
    "**<a href=javascript:alert(1)>x</a>**",
    "\ndata: event: run\n\nid: 999\nevent: run\n",
    "$\\href{javascript:alert(1)}{x}$",
    '$\\htmlId{composer}{x} \\htmlData{hx-get=/logout}{x} \\htmlStyle{position:fixed}{x}$ "',
    "$$\\includegraphics{https://evil.example/leak.png}$$",
    "\\[<img src=x onerror=alert(1)>\\] \\(<script>alert(1)</script>\\)",
    '$x$" onmouseover="alert(1)',
    'A[^"><script>alert(1)</script>]\n\n[^"><script>alert(1)</script>]: <img src=x onerror=alert(1)>',
    "A[^composer]\n\n[^composer]: [x](javascript:alert(1)) ![x](//evil.example/x.png)",
    '- [x] <input autofocus onfocus=alert(1)>\n- [ ] "onclick="alert(1)',
    '```mermaid" onclick="alert(1)\nclick a href "javascript:alert(1)"\n```',
)
PAYLOADS = (*(f"[click]({url})" for url in BAD_URLS), *(f"<{url}>" for url in BAD_URLS[:3]), *RAW, *SYNTAX)
ALLOWED = set(
    "p br hr h3 h4 h5 h6 ul ol li blockquote pre code em strong s a table thead tbody tr th td span sup label".split()  # noqa: SIM905
)
OUR_ID = re.compile(r"fn(ref)?(-[\w-]+)?-\d+(-\d+)?")


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data


def elements(html: str) -> list[tuple[str, dict[str, str]]]:
    parser = Elements()
    parser.feed(html)
    return parser.found


def test_there_are_fifty_payloads_and_more() -> None:
    assert len(PAYLOADS) >= 50


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_nothing_that_a_model_writes_can_act(payload: str, way: str) -> None:
    shown = {"whole": render(payload), "streamed": "".join(every_view(payload))}[way]
    assert acting(shown) == []


def acting(html: str) -> list[tuple[str, dict[str, str]]]:
    """The elements that could do something, or stand for something else of the page."""
    return [
        (tag, attributes)
        for tag, attributes in elements(html)
        if tag not in ALLOWED | {"div", "button", "input"}
        or any(name.startswith(("on", "hx", "data-hx")) or name in ("style", "name", "for") for name in attributes)
        or ("id" in attributes and not OUR_ID.fullmatch(attributes["id"]))
        or (tag == "input" and attributes.get("type") != "checkbox")
        or urlsplit(attributes.get("href", "")).scheme not in ("", "http", "https", "mailto")
    ]


def test_none_of_the_composed_scripts_can_act() -> None:
    assert {one: found for one in scripts() if (found := acting(render(one)))} == {}


@pytest.mark.parametrize("raw", [*RAW, "a < b > c", "x <b>y</b> z", "&lt;b&gt; &amp;amp;"], ids=str)
def test_raw_html_is_shown_as_the_text_it_is(raw: str) -> None:
    parser = Elements()
    parser.feed(render(raw))
    assert parser.text.strip() == unescape(raw)
    assert {tag for tag, _ in parser.found} <= {"p", "a"}, "an address in it may be a link"


def every_view(text: str) -> list[str]:
    stream, views = Stream(), []
    for char in text:
        stream.feed(char)
        stream.flush()
        views.append(stream.committed_html + stream.open_html)
    return views
