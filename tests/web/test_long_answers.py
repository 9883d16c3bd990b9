"""A very long answer: what is rendered of it is bounded, beside the event loop, and all of it can be had."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from markupsafe import Markup

from cortex.base.events import OpenPart
from tests.web.fake_house import BRIAN, Book, FakeHouse
from web.app import create_app
from web.markdown import LONGEST_CHARACTERS, LONGEST_LINES, left_out, render, shown_to
from web.markdown_stream import Stream
from web.words import is_hiding, visible

LINES = 100_000
LIST = "".join(f"- item number {number}\n" for number in range(LINES))
LINE = "word " * 400_000
PATIENCE_S = 30.0
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
}


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeHouse]:
    house = FakeHouse(tmp_path / "home", words_per_s=100_000)
    yield house
    await house.close()


@pytest.fixture
def app(fake: FakeHouse) -> Any:
    return create_app(fake)  # type: ignore[arg-type]  # the fake has what the pages use of it


@pytest.fixture
async def page(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://localhost",
        headers={"Sec-Fetch-Site": "same-origin", "Accept": "text/html"},
        cookies={"cortex": "brian-token"},
    ) as http:
        yield http


def begun(fake: FakeHouse) -> tuple[Book, str]:
    """A conversation whose answer is being written."""
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A long one")
    turn = "turn:0777"
    book.turns.append(turn)
    tell(fake, book, "message", text="count", mode="auto", is_steer=False, ordinal=1)
    tell(fake, book, "turn.start", role="orchestrator", model="m", max_rounds=5, max_rounds_from="")
    tell(fake, book, "part.start", round=1, part="p-1", kind="text", attempt=1)
    return book, turn


def tell(fake: FakeHouse, book: Book, event: str, /, **payload: Any) -> None:
    fake.append(book, event, {"turn": "turn:0777", **payload}, "turn:0777")


def ended(fake: FakeHouse, book: Book, text: str) -> None:
    tell(fake, book, "part.end", round=1, part="p-1", kind="text", text=text, attempt=1)
    tokens = {"tools_sent": 0, "tokens_sent": 0, "tokens_saved": 0}
    tell(fake, book, "turn.end", state="done", rounds=1, seconds=2.1, can_continue=False, **tokens)


def followed_up(fake: FakeHouse, book: Book) -> None:
    """A second message, so that the first stands in a stretch of the past."""
    book.turns.append("turn:0778")
    payload = {"turn": "turn:0778", "text": "thanks", "mode": "auto", "is_steer": False, "ordinal": 2}
    fake.append(book, "message", payload, "turn:0778")


def answer_of(html: str) -> str:
    return html[html.index('id="b0777"') : html.index('id="f0777"')]


async def test_a_long_answer_is_shown_shortened_and_all_of_it_a_link_away(
    fake: FakeHouse, page: httpx.AsyncClient
) -> None:
    book, _ = begun(fake)
    ended(fake, book, LIST)
    followed_up(fake, book)
    html = (await page.get(f"/c/{book.head.id}")).text
    assert answer_of(html).count("<li>") == LONGEST_LINES
    assert "Shortened: the first 1,000 of 100,000 lines." in html
    place = f"/c/{book.head.id}/whole/0777"
    assert f'<a href="{place}">Show all</a>' in html
    assert LIST in (await page.get(place)).text
    plain = await page.get(f"{place}.txt")
    assert (plain.headers["content-type"], plain.text) == ("text/plain; charset=utf-8", LIST)
    assert (await page.get(f"/c/{book.head.id}/earlier?before=2")).text.count("<li>") == LONGEST_LINES


async def test_all_of_an_answer_is_text_and_its_owners(fake: FakeHouse, app: Any, page: httpx.AsyncClient) -> None:
    book, _ = begun(fake)
    ended(fake, book, "<script>alert(1)</script>")
    place = f"/c/{book.head.id}/whole/0777"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in (await page.get(place)).text
    assert (await page.get(f"{place}.txt")).headers["x-content-type-options"] == "nosniff"
    page.cookies.set("cortex", "anna-token", domain="localhost.local")
    page.cookies.clear()
    page.cookies.set("cortex", "anna-token")
    assert [(await page.get(one)).status_code for one in (place, f"{place}.txt")] == [404, 404]


@pytest.mark.parametrize("path", ["", "/earlier?before=2", "/events?after=0"], ids=["page", "older messages", "stream"])
async def test_the_daemon_answers_while_an_answer_is_rendered(
    fake: FakeHouse, app: Any, page: httpx.AsyncClient, path: str
) -> None:
    rendering, go_on = threading.Event(), threading.Event()

    def slow(_text: str) -> Markup:
        rendering.set()
        assert go_on.wait(PATIENCE_S)
        return Markup("done at last")

    app.state.pages.env.filters["markdown"] = slow
    book, _ = begun(fake)
    ended(fake, book, "words")
    followed_up(fake, book)
    fake.follow_s = 0.05
    asked = asyncio.create_task(page.get(f"/c/{book.head.id}{path}"))
    assert await asyncio.to_thread(rendering.wait, PATIENCE_S)
    assert (await page.get("/healthz")).text == "ok\n"
    assert not asked.done()
    go_on.set()
    assert "done at last" in (await asked).text


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
    fake: FakeHouse, page: httpx.AsyncClient
) -> None:
    book, turn = begun(fake)
    fake.follow_s, place = 0.05, f"/c/{book.head.id}"
    fake.hub.publish(
        OpenPart(conversation_id=book.head.id, turn_id=turn, part="p-1", kind="text", attempt=1, text=LIST[:1_000_000])
    )
    live = (await page.get(f"{place}/events?after=3")).text
    assert live.count("<li>") == LONGEST_LINES
    assert "A long answer: while it is written, its first part is shown." in live
    loaded = answer_of((await page.get(place)).text)
    assert loaded.count("<li>") == LONGEST_LINES
    assert f'<a href="{place}/whole/0777">Show all so far</a>' in loaded
    assert LIST[:1_000_000] in (await page.get(f"{place}/whole/0777")).text
    fake.hub.close(book.head.id, "p-1")
    ended(fake, book, LIST)
    live = (await page.get(f"{place}/events?after=3")).text
    assert "Shortened: the first 1,000 of 100,000 lines." in live
    (block,) = re.findall(r'(?s)<div class="md" id="p0777-p-1".*?</div>', answer_of((await page.get(place)).text))
    assert block in live.replace("\ndata: ", "\n")


def test_every_character_that_hides_is_named_and_no_other() -> None:
    every = [chr(number) for number in range(0x110000)]
    assert "inv" not in visible("".join(char for char in every if not is_hiding(char)))
    hiding = [char for char in every if is_hiding(char)]
    assert visible("".join(hiding)).count('class="inv"') == len(hiding)
    assert all('class="inv"' in visible(f"a\n{char}") for char in hiding[:500])
