"""A page's words without its trappings; no page breaks the reader."""

import pytest

from cortex.integrations.page_text import readable

PARAGRAPH = "<p>The harbour opens at six and the first ferry leaves a quarter of an hour later.</p>"


def test_title_text_and_links() -> None:
    html = (
        "<html><head><title> Ferry\n times </title></head><body><nav><a href='/x'>Menu</a></nav><article>"
        f"{PARAGRAPH * 4}<p>Ask at <a href='https://example.org/desk'>the desk</a> for a ticket to the island.</p>"
        "</article></body></html>"
    )
    title, text = readable(html, "https://example.org/ferry")
    assert title == "Ferry times"
    assert "first ferry leaves" in text
    assert "https://example.org/desk" in text
    assert "Menu" not in text


STRUCTURED = f"""<title>t</title><main><h2>Fares</h2>{PARAGRAPH * 4}
<ul><li>adults</li><li>children<ol><li>under six</li></ol></li></ul><p>Pay <a href="/desk">at the
desk</a>, see <a href="#fares">above</a> or <a href="javascript:pay()">here</a>.</p>
<pre>a = 1

  b = 2 &lt; 3</pre><h3><a href="https://example.org/map">The map</a></h3></main>"""
TAIL = """- adults
- children
  1. under six

Pay [at the desk](https://example.org/desk), see above or here.

```
a = 1

  b = 2 < 3
```

### [The map](https://example.org/map)"""


def test_lists_code_and_headings_are_markdown() -> None:
    _, text = readable(STRUCTURED, "https://example.org/ferry/")
    assert text.startswith("## Fares\n\nThe harbour")
    assert text.endswith(TAIL)


def test_a_page_of_links_is_read_whole() -> None:
    html = "<nav><ul><li><a href='/a'>First</a></li><li><a href='/b'>Second</a></li></ul></nav>"
    assert readable(html, "https://example.org/")[1] == (
        "- [First](https://example.org/a)\n- [Second](https://example.org/b)"
    )


@pytest.mark.parametrize(
    "html",
    [
        "",
        "   ",
        "<",
        "<html>",
        "\0\0\0",
        "no tags at all",
        "<div>" * 500,
        "<p>" + "<b>" * 500 + "x",
        "<!DOCTYPE html [<!ENTITY a 'x'><!ENTITY b '&a;&a;'>]><p>&b;</p>",
        "<table>" + "<tr><td>" * 300,
        "<script>" + "x" * 100_000,
        "&#x110000;&#0;<p>\ud800</p>",
        "<![CDATA[" * 5_000,
    ],
    ids=range(13),
)
def test_a_broken_page_gives_no_more_than_it_holds(html: str) -> None:
    title, text = readable(html, "https://example.org/")
    assert len(title + text) <= len(html)
