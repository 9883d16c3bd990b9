"""A very long answer: what is rendered of it is bounded, beside the event loop, and all of it can be had."""

import asyncio
import re
import threading
import unicodedata
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from markupsafe import Markup

from cortex.base.hidden import is_hiding
from cortex.services.chat.transcript_views import TurnView
from tests.patience import PATIENCE_S
from tests.scripted_server import Fault, ScriptedServer, rule
from tests.web.streams import streamed
from tests.web.talks import Talks
from web.markdown import LONGEST_CHARACTERS, LONGEST_LINES, left_out, render, shown_to
from web.markdown_stream import Stream
from web.words import visible

LINES = 100_000
LIST = "".join(f"- item number {number}\n" for number in range(LINES))
TOLD = "".join(f"- item {number}\n" for number in range(3_000)).rstrip()
LINE = "word " * 400_000
LONG = {
    "list": LIST,
    "one line": LINE,
    "a line, then one line": "See:\n" + LINE,
    "table": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * LINES,
    "quotes in quotes": "> " * 200 + "x\n" + (">" * 300 + " x\n") * 4_000,
    "lists in lists": "".join("  " * (depth % 400) + "- x\n" for depth in range(LINES // 50)),
    "code": "```python\n" + "def f(x):\n    return x + 1  # hello\n" * LINES + "```\n",
    "one line of code": "```json\n" + '{"a": 1, ' * 100_000 + "\n```\n",
    "links": "[a](http://b.example/c) " * LINES,
    "brackets": "[" * 1_000_000,
    "paragraphs": "words and words\n\n" * LINES,
    "marks": "**a _b `c " * LINES,
    "formulas": "$x$ \\(y\\) $z \\[ " * LINES,
    "boxes": "- [ ] $x$\n" * LINES,
    "footnotes": "[^1]: a\n\n" + "[^1] [^ [^2 " * LINES,
}


@pytest.fixture
def talks(talks: Talks, scripted: ScriptedServer) -> Talks:
    scripted.rules.insert(0, rule("all items", TOLD))
    return talks


def answer_of(html: str, turn: TurnView) -> str:
    return html[html.index(f'id="b{turn.key}"') : html.index(f'id="f{turn.key}"')]


async def test_a_long_answer_is_shown_shortened_and_all_of_it_a_link_away(
    talks: Talks, page: httpx.AsyncClient
) -> None:
    cid = await talks.living.conversation()
    await talks.living.say(cid, "all items", mode="chat")
    (turn,) = await talks.turns(cid)
    await talks.living.say(cid, "thanks", mode="chat")
    html = (await page.get(f"/c/{cid}")).text
    assert answer_of(html, turn).count("<li>") == LONGEST_LINES
    assert "Shortened: the first 1,000 of 3,000 lines." in html
    place = f"/c/{cid}/whole/{turn.key}"
    assert f'<a href="{place}">Show all</a>' in html
    assert TOLD in (await page.get(place)).text
    plain = await page.get(f"{place}.txt")
    assert (plain.headers["content-type"], plain.text) == ("text/plain; charset=utf-8", TOLD)
    assert (await page.get(f"/c/{cid}/earlier?before=2")).text.count("<li>") == LONGEST_LINES


async def test_all_of_an_answer_is_text(talks: Talks, page: httpx.AsyncClient) -> None:
    talks.model.rules.insert(0, rule("a script", "<script>alert(1)</script>"))
    cid = await talks.living.conversation()
    await talks.living.say(cid, "write a script", mode="chat")
    (turn,) = await talks.turns(cid)
    place = f"/c/{cid}/whole/{turn.key}"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in (await page.get(place)).text
    assert (await page.get(f"{place}.txt")).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["", "/earlier?before=3", "/events"], ids=["page", "older messages", "stream"])
async def test_the_daemon_answers_while_an_answer_is_rendered(
    talks: Talks, served: FastAPI, page: httpx.AsyncClient, path: str
) -> None:
    rendering, go_on = threading.Event(), threading.Event()

    def slow(_text: str, _key: str) -> Markup:
        rendering.set()
        assert go_on.wait(PATIENCE_S)
        return Markup("done at last")

    served.state.pages.env.filters["markdown"] = slow
    place = f"/c/{talks.held.kitchen}{path}"
    shown = streamed(served, page, place, "done at last")
    asked = asyncio.create_task(shown)
    assert await asyncio.to_thread(rendering.wait, PATIENCE_S)
    assert (await page.get("/healthz")).text == "ok\n"
    assert not asked.done()
    go_on.set()
    await asked


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_what_is_rendered_of_a_long_text_is_bounded_and_said(text: str) -> None:
    shown = text[: shown_to(text)]
    assert LONGEST_CHARACTERS // 2 <= len(shown) <= LONGEST_CHARACTERS or shown.count("\n") == LONGEST_LINES
    left = left_out(text)
    assert left
    assert left.total == (len(text.rstrip("\n").split("\n")) if left.is_lines else len(text))
    assert render(text) == render(shown)


@pytest.mark.parametrize(
    "text", ["", "a", "- a\n" * LONGEST_LINES, "a" * LONGEST_CHARACTERS, "a\n" * 1_000 + "\n" * 99]
)
def test_a_text_that_fits_is_shown_whole(text: str) -> None:
    assert (shown_to(text), left_out(text)) == (len(text), None)


def pieces(text: str, size: int = 400) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


@pytest.mark.parametrize("kind", ["list", "one line", "table", "code", "paragraphs", "marks"])
def test_a_long_answer_stops_growing_and_little_of_it_is_sent_twice(kind: str) -> None:
    text, stream, sent = LONG[kind][:200_000], Stream(), 0
    for piece in pieces(text):
        stream.feed(piece)
        sent += sum(len(change.html) for change in stream.flush())
    whole = render(text)
    assert sent <= 20 * max(len(whole), LONGEST_CHARACTERS)
    assert stream.is_cut
    assert (stream.committed_html, stream.open_html) == (whole, "")
    assert stream.finish() == []


async def test_a_growing_answer_is_shown_as_far_as_it_fits_and_in_the_end_as_the_page_shows_it(
    talks: Talks, served: FastAPI, page: httpx.AsyncClient
) -> None:
    talks.model.fail(Fault(kind="stall", after_bytes=25_000))
    cid = await talks.living.conversation()
    first = await talks.living.cortex.chat.send_message(talks.living.admin, cid, "all items", mode="chat")
    await talks.written(cid, "- item 1001\n")
    place, long = f"/c/{cid}", "A long answer: while it is written, its first part is shown."
    live = await streamed(served, page, f"{place}/events", long)
    assert live.count("<li>") == LONGEST_LINES
    (turn,) = await talks.turns(cid)
    loaded = answer_of((await page.get(place)).text, turn)
    assert loaded.count("<li>") == LONGEST_LINES
    assert f'<a href="{place}/whole/{turn.key}">Show all so far</a>' in loaded
    assert TOLD[:15_000] in (await page.get(f"{place}/whole/{turn.key}")).text
    await talks.living.cortex.chat.stop(talks.living.admin, cid)
    turn_id = await talks.living.cortex.chat.again(talks.living.admin, first)
    await talks.living.until(cid, "turn.end", turn=turn_id)
    (turn,) = await talks.turns(cid)
    live = await streamed(served, page, f"{place}/events", "Shortened: the first 1,000 of 3,000 lines.")
    (block,) = re.findall(r'(?s)<div class="md" id="p.*?</div>', answer_of((await page.get(place)).text, turn))
    assert block in live.replace("\ndata: ", "\n")


def test_every_character_that_hides_is_named_and_no_other() -> None:
    every = [chr(number) for number in range(0x110000)]
    assert "inv" not in visible("".join(char for char in every if not is_hiding(char)))
    hiding = [char for char in every if is_hiding(char)]
    free = [char for char in hiding if unicodedata.category(char) in ("Cn", "Co")]
    hiding = [*(set(hiding) - set(free)), *free[::200]]  # a million that mean nothing take ten seconds to name
    assert visible("".join(hiding)).count('class="inv"') == len(hiding)
    assert all('class="inv"' in visible(f"a\n{char}") for char in hiding[:500])
