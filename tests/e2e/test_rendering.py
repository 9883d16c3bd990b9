"""What models write, drawn in Chromium while it arrives: formulas, boxes, footnotes, listings; and nothing jumps."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import Window, axe, overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import answers, new_chat, same_after_reload, wait_for_answer, wait_for_end
from tests.scripted_server import ScriptedServer, rule

pytestmark = pytest.mark.browser

MOST_SHIFT = 0.02
WORDS = "## What falls\n\nSome words about *it* at length, on lines.\n\n- one\n- two\n\n```python\nx = 1\n```\n\n" * 3
ALL_KINDS = r"""With $g = 9.81$ a stone falls \(h = \tfrac12 g t^2\), for $5 and $10[^1].

$$
\int_0^1 x\,dx = \frac12
$$

- [ ] Buy a rope
- [x] Measure

| Height | Time |
|---|---|
| 10 m | 1.4 s |

```python
def fall(height: float, gravity: float = 9.81, *, with_air: bool = False) -> float: ...
```

```mermaid
graph TD
```

\[ a + b \]

[^1]: By hand.
"""
HOSTILE = (
    r"""$\href{javascript:alert(1)}{click}$ $\htmlId{composer}{x}$ $\htmlStyle{position:fixed}{x}$ $\htmlData{on=1}{x}$

$\includegraphics{https://evil.example/x.png}$ $\url{javascript:alert(1)}$ $\fcolorbox{red}{blue}{x}\pmb{y}$ $\frac{a$

$\def\a{\b\b}\def\b{\c\c}\def\c{\d\d}\def\d{xxxxxxxxxx}\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a\a$

$\def\a{\a}\a$ $\rule{9000em}{9000em}$ $\kern-900em x$ $\raisebox{900em}{over it all}$ """
    + "${" * 300
)


@pytest.fixture(scope="module")
def writes(house: Daemon, ada: Caller) -> Iterator[None]:
    """The model writes what it is asked for."""
    rules = (rule("plain words", WORDS), rule("all kinds", ALL_KINDS), rule("hostile", HOSTILE))
    with ScriptedServer(*rules) as server:
        server.delay_s = 0.01
        form = {"name": "Writer", "provider": "openai", "model": "writer", "streams": "1", "tools": "1"}
        ada.post("/models", base_url=server.base_url, api_key=server.api_key, **form)
        ada.post("/models/chain", names="Writer")
        yield


def told(window: Window, words: str) -> Page:
    """A new chat in which that was asked and answered."""
    page = new_chat(window)
    before = answers(page)
    page.fill("#text", words)
    page.click(".send:not(.stop)")
    wait_for_answer(page, before + 1)
    wait_for_end(page)
    return page


NOTE_SHIFTS = """window.shift = 0; new PerformanceObserver(list =>
  list.getEntries().forEach(one => shift += one.value)).observe({ type: 'layout-shift', buffered: true })"""


@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_nothing_jumps_while_an_answer_is_written(
    house: Daemon, writes: None, ada: Caller, opens: Opens, is_phone: bool
) -> None:
    window = opens(house.origin, ada.token, is_phone=is_phone)
    window.context.add_init_script(NOTE_SHIFTS)
    page = told(window, "plain words")
    assert page.evaluate("shift") <= MOST_SHIFT
    page = told(window, "all kinds")
    for way in ("live", "reloaded"):
        expect(page.locator(".math .katex")).to_have_count(4)
        expect(page.get_by_text("By hand.")).to_be_visible()
        assert page.evaluate("shift") <= MOST_SHIFT, way
        page.reload()


def test_every_kind_is_drawn_live_as_after_a_reload(house: Daemon, writes: None, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token, is_phone=True, is_dark=True)
    page = told(window, "all kinds")
    answer = page.locator(".turn.bot")
    expect(answer.locator(".math .katex")).to_have_count(4)
    assert "$5 and $10" in answer.inner_text()
    same_after_reload(page)
    expect(answer.locator(".math .katex")).to_have_count(4)
    expect(answer.get_by_role("checkbox", name="Done", checked=True)).to_be_disabled()
    listing = answer.locator(".code pre").first
    wide = listing.evaluate("one => one.scrollWidth > one.clientWidth")
    answer.get_by_label("Wrap").check()
    assert wide
    assert listing.evaluate("one => one.scrollWidth <= one.clientWidth")
    answer.get_by_role("link", name="Footnote 1", exact=True).click()
    expect(answer.locator("li:target")).to_contain_text("By hand.")
    assert axe(page) == []
    assert overflow_px(page) <= 0


def test_copying_an_answer_gives_its_source(house: Daemon, writes: None, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = told(window, "all kinds")
    page.locator(".bot [data-copy-turn]").click()
    expect(page.locator(".bot [data-copy-turn].did")).to_be_visible()
    assert r"\tfrac12 g t^2" in page.evaluate("navigator.clipboard.readText()")


def test_without_script_a_formula_is_its_source(house: Daemon, writes: None, ada: Caller, opens: Opens) -> None:
    chat = told(opens(house.origin, ada.token), "all kinds").url
    page = opens(house.origin, ada.token, has_script=False).page
    page.goto(chat)
    expect(page.locator(".math").first).to_have_text("g = 9.81")


def test_a_hostile_formula_does_nothing(house: Daemon, writes: None, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    foreign: list[str] = []
    window.context.on("request", lambda request: foreign.extend([request.url] * ("evil" in request.url)))
    page = told(window, "hostile")
    expect(page.locator(".math .katex").first).to_be_visible()
    expect(page.locator(".math:not(.drawn)")).to_have_count(0)  # many are drawn over several frames
    found = page.evaluate(
        """() => {
          const boxes = [...document.querySelectorAll('.md *')];
          return {
            acting: boxes.filter(one => one.matches('.math :is(a, img, [id], [onclick], [data-on])')).length,
            fixed: boxes.filter(one => getComputedStyle(one).position === 'fixed').length,
            widest: Math.max(...boxes.map(one => one.getBoundingClientRect().width)),
          };
        }"""
    )
    assert (found["acting"], found["fixed"], foreign) == (0, 0, []), json.dumps(found)
    assert page.locator(".math.plain").count() >= 3, "what is no TeX, or has no end, stays as it was written"
    assert overflow_px(page) <= 0


def test_what_draws_formulas_comes_only_where_there_is_one(
    house: Daemon, writes: None, ada: Caller, opens: Opens
) -> None:
    window = opens(house.origin, ada.token)
    asked: list[str] = []
    window.context.on("request", lambda request: asked.append(request.url))
    told(window, "plain words")
    assert not [url for url in asked if "math" in url or "KaTeX" in url]
    page = told(window, "all kinds")
    expect(page.locator(".math .katex").first).to_be_visible()
    fonts = [url for url in asked if ".woff2" in url]
    assert fonts
    kept = page.request.get(fonts[0]).headers
    assert kept["content-type"] == "font/woff2"
    assert "immutable" in kept["cache-control"]
