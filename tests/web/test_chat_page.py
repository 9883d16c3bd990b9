"""The chat's routes over a house in memory: whole pages, fragments, plain forms, and the stream's replay."""

import asyncio
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from cortex.services.chat.transcript import Transcript
from cortex.services.chat.transcript_views import TurnView
from tests.web.fake_house import BRIAN, Book, FakeHouse
from tests.web.seeds import long_book, seeded
from web.app import create_app
from web.words import visible

HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeHouse]:
    house = FakeHouse(tmp_path / "home", words_per_s=100_000)
    house.pause_s = 0.001
    yield house
    await house.close()


def client(house: FakeHouse, login: str = "brian-token") -> httpx.AsyncClient:
    app = create_app(house)  # type: ignore[arg-type]  # the fake has what the pages use of it
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://localhost",
        headers={"Sec-Fetch-Site": "same-origin", "Accept": "text/html"},
        cookies={"cortex": login},
    )


@pytest.fixture
async def page(fake: FakeHouse) -> AsyncIterator[httpx.AsyncClient]:
    async with client(fake) as http:
        yield http


async def said(fake: FakeHouse, page: httpx.AsyncClient, text: str, book: Book | None = None) -> TurnView:
    """Send a message and wait for its answer's end."""
    book = book or fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    assert (await page.post(f"/c/{book.head.id}/messages", data={"text": text})).status_code == 303
    await asyncio.gather(*book.tasks.values())
    return Transcript(book.events).turns[-1]


async def followed(fake: FakeHouse, page: httpx.AsyncClient, book: Book, after: int, **headers: str) -> str:
    fake.follow_s = 0.05
    return (await page.get(f"/c/{book.head.id}/events?after={after}", headers=headers)).text


def prose(html: str, turn: TurnView) -> str:
    """What stands in a turn's body, as the parser of the browser would count it."""
    start = html.index(f'id="b{turn.key}"')
    return html[start : html.index(f'id="f{turn.key}"')]


# --- pages ----------------------------------------------------------------------------------------------------------


async def test_the_start_leads_to_the_newest_conversation(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    assert (await page.get("/")).headers["location"] == "/c/new"
    book = fake.new_book(BRIAN, "orchestrator", "auto", "One")
    assert (await page.get("/")).headers["location"] == f"/c/{book.head.id}"


async def test_a_new_chat_names_the_first_action_with_examples(page: httpx.AsyncClient) -> None:
    html = (await page.get("/c/new")).text
    assert "What needs doing?" in html
    assert html.count("data-fill") == 3
    assert 'hx-sse:connect="/c/' not in html


async def test_a_conversation_shows_turns_cards_and_receipts(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    seeded(fake)
    html = (await page.get("/c/0004")).text
    assert "<strong>Saturday at 10:00</strong>" in html
    assert html.count('<details class="tool ok"') == 2
    assert "saved 9,731" in html
    assert 'hx-sse:connect="/c/0004/events?after=' in html


async def test_no_page_needs_inline_script_or_style(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    seeded(fake)
    for path in ("/c/new", "/c/0004", "/c/0004/rename", "/c/0004/delete", "/search?q=light", "/turns/0006/why?c=0004"):
        html = (await page.get(path)).text
        assert not re.search(r"<style|\sstyle=|<script>|\son[a-z]+=|javascript:", html), path


class Ids(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.refs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("aria-labelledby", "aria-describedby", "for") and tag != "dialog":
                self.refs += (value or "").split()


async def test_every_id_stands_once_and_every_label_leads_somewhere(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    seeded(fake)
    for path in ("/c/new", "/c/0004", "/c/0004/delete"):
        found = Ids()
        found.feed((await page.get(path)).text)
        assert len(found.ids) == len(set(found.ids)), path
        assert set(found.refs) <= set(found.ids), path


async def test_another_users_conversation_looks_as_if_it_were_not_there(fake: FakeHouse) -> None:
    seeded(fake)
    async with client(fake, "anna-token") as anna:
        for path in (
            "",
            "/events",
            "/earlier?before=2",
            "/edit/0006",
            "/rename",
            "/delete",
            "/export.md",
            "/export.json",
        ):
            assert (await anna.get(f"/c/0004{path}")).status_code == 404, path
        for path in ("/c/0004/messages", "/c/0004/stop", "/c/0004/delete", "/turns/0006/again", "/c/0004/branch/0006"):
            assert (await anna.post(path, data={"text": "x"})).status_code == 404, path


# --- a long conversation --------------------------------------------------------------------------------------------


async def test_older_turns_come_as_a_fragment_that_ends_with_the_first(
    fake: FakeHouse, page: httpx.AsyncClient
) -> None:
    book = long_book(fake, 100)
    html = (await page.get(f"/c/{book.head.id}")).text
    assert html.count('class="turn user') == 30
    seen, link = 30, re.search(r"/earlier\?before=\d+", html)
    while link:
        html = (await page.get(f"/c/{book.head.id}{link.group()}", headers=HTMX)).text
        assert "<html" not in html
        seen += html.count('class="turn user')
        link = re.search(r"/earlier\?before=\d+", html)
    assert seen == 50


async def test_a_stretch_of_the_past_is_a_page_without_stream_and_composer(
    fake: FakeHouse, page: httpx.AsyncClient
) -> None:
    book = long_book(fake, 100)
    html = (await page.get(f"/c/{book.head.id}?before=21")).text
    assert html.count('class="turn user') == 20
    assert 'hx-sse:connect="/c/' not in html
    assert 'id="composer"' not in html


async def test_a_search_leads_to_the_turn_however_far_back(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    book = long_book(fake, 100)
    place = (await page.get(f"/c/{book.head.id}/at/{book.turns[2][5:]}")).headers["location"]
    assert place.endswith(f"#q{book.turns[2][5:]}")
    assert f'id="q{book.turns[2][5:]}"' in (await page.get(place.partition("#")[0])).text
    assert (await page.get(f"/c/{book.head.id}/at/9999")).status_code == 404


# --- forms ----------------------------------------------------------------------------------------------------------


async def test_the_first_message_makes_the_conversation(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    form = {"text": "hello", "mode": "chat", "max_rounds": "5", "rounds_default": "5", "role": "research"}
    answer = await page.post("/c/new/messages", data=form)
    (book,) = fake.books.values()
    assert (answer.status_code, answer.headers["location"]) == (303, f"/c/{book.head.id}")
    assert (book.head.role, book.head.mode) == ("research", "chat")
    assert fake.asked == [("send", ("hello", "chat", None))]


async def test_htmx_gets_nothing_to_swap_because_the_stream_brings_it(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    answer = await page.post(f"/c/{book.head.id}/messages", data={"text": "hi", "max_rounds": "7"}, headers=HTMX)
    assert (answer.status_code, answer.text) == (204, "")
    assert fake.asked == [("send", ("hi", "auto", 7))]


async def test_a_quick_question_leaves_the_conversations_mode_alone(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    await page.post(f"/c/{book.head.id}/messages", data={"text": "hi", "mode": "chat", "quick": "1"})
    assert (fake.asked[0][1][1], book.head.mode) == ("chat", "auto")


async def test_a_conversation_may_choose_its_tools_in_a_way_of_its_own(
    fake: FakeHouse, page: httpx.AsyncClient
) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    path = f"/c/{book.head.id}"
    assert "As the role says (cortex)" in (await page.get(path)).text
    answer = await page.post(f"{path}/recipe", data={"recipe": "punch"}, headers=HTMX)
    assert (answer.status_code, book.head.recipe) == (204, "punch")
    assert "<option selected>punch</option>" in (await page.get(path)).text
    assert (await page.post(f"{path}/recipe", data={"recipe": "nonsense"})).status_code == 422
    assert (await page.post(f"{path}/recipe", data={})).status_code == 303
    assert book.head.recipe == ""
    assert 'name="recipe"' not in (await page.get("/c/new")).text


async def test_an_empty_message_is_refused_where_it_was_written(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    answer = await page.post(f"/c/{book.head.id}/messages", data={"text": " "}, headers=HTMX)
    assert answer.status_code == 422
    assert answer.text.lstrip().startswith("<form")
    assert "Write a message first." in answer.text


async def test_the_price_is_known_before_sending(page: httpx.AsyncClient) -> None:
    shown = (await page.post("/preview-tools", data={"text": "add milk to my list", "mode": "auto"}, headers=HTMX)).text
    assert re.search(r"4 tools · <b>\d+</b> tok", shown)
    assert "<b>0</b> tok" in (await page.post("/preview-tools", data={"text": "x", "mode": "chat"}, headers=HTMX)).text
    assert "<b>9,731</b> tok" in (await page.post("/preview-tools", data={"mode": "all"}, headers=HTMX)).text


async def test_why_names_the_words_that_called_for_a_tool(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    draft = (await page.post("/why", data={"text": "add milk", "mode": "auto"}, headers=HTMX)).text
    assert "you wrote “milk”" in draft
    turn = await said(fake, page, "add milk to my list")
    told = (await page.get(f"/turns/{turn.key}/why")).text
    assert "<html" in told
    assert "with all tools" in told


async def test_why_says_when_the_sentence_model_was_left_out(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    turn = await said(fake, page, "add milk to my list", book)
    (event,) = [each for each in book.events if each.kind == "selection"]
    assert "Sentence model" not in (await page.get(f"/turns/{turn.key}/why")).text
    event.payload["receipt"]["labels"] = {"sentence model": "left out: it is closed"}
    assert "Sentence model: left out: it is closed" in (await page.get(f"/turns/{turn.key}/why")).text


async def test_edit_again_branch_and_continue_work_as_plain_forms(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    first = await said(fake, page, "use all rounds", book)
    assert "Edit and resend" in (await page.get(f"/c/{book.head.id}/edit/{first.key}")).text
    again = await page.post(f"/turns/{first.key}/continue", data={"back": f"/c/{book.head.id}"})
    assert (again.status_code, again.headers["location"]) == (303, f"/c/{book.head.id}")
    await asyncio.gather(*book.tasks.values())
    branch = await page.post(f"/c/{book.head.id}/branch/{first.key}")
    assert len(Transcript(fake.books[branch.headers["location"][3:]].events).turns) == 1
    await page.post(f"/c/{book.head.id}/edit/{first.key}", data={"text": "say it otherwise"})
    await asyncio.gather(*book.tasks.values())
    assert [turn.text for turn in Transcript(book.events).turns] == ["say it otherwise"]
    await page.post(f"/turns/{Transcript(book.events).turns[0].key}/again", data={"mode": "all"})
    assert Transcript(book.events).turns[0].mode == "all"


async def test_a_form_returns_to_no_foreign_place(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    turn = await said(fake, page, "hello")
    answer = await page.post(f"/turns/{turn.key}/again", data={"back": "//evil.example/"})
    assert answer.headers["location"] == "/"


async def test_an_approval_shows_what_hides_and_puts_deny_first(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    await page.post(f"/c/{book.head.id}/messages", data={"text": "disk space, use the shell"})
    while not book.answers:  # noqa: ASYNC110 - the script runs in this loop
        await asyncio.sleep(0.005)
    html = (await page.get(f"/c/{book.head.id}")).text
    assert '<span class="inv">U+202E</span>' in html
    assert html.index('value="deny"') < html.index('value="once"')
    (ask,) = book.answers
    assert (await page.post(f"/approvals/{ask}", data={"choice": "maybe"})).status_code == 422
    answer = await page.post(f"/approvals/{ask}", data={"choice": "deny", "back": f"/c/{book.head.id}"})
    assert answer.headers["location"] == f"/c/{book.head.id}"
    await asyncio.gather(*book.tasks.values())
    html = (await page.get(f"/c/{book.head.id}")).text
    assert 'class="ask"' not in html
    assert "denied by you" in html


async def test_a_call_can_be_taken_back_once_and_the_card_says_so(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    await said(fake, page, "add milk to my list", book)
    assert 'action="/undo/undo-1"' in (await page.get(f"/c/{book.head.id}")).text
    await page.post("/undo/undo-1", data={"back": f"/c/{book.head.id}"})
    html = (await page.get(f"/c/{book.head.id}")).text
    assert 'action="/undo/undo-1"' not in html
    assert "The task is gone again." in html


async def test_rename_pin_delete_and_take_back(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    seeded(fake)
    await page.post("/c/0004/rename", data={"title": "Lights"})
    assert fake.books["0004"].head.title == "Lights"
    assert (await page.post("/c/0004/rename", data={"title": " "})).status_code == 422
    await page.post("/c/0004/pin", data={"on": "1"})
    assert fake.books["0004"].head.is_pinned
    assert "Delete this conversation?" in (await page.get("/c/0004/delete")).text
    assert (await page.post("/c/0004/delete")).headers["location"] == "/c/new"
    assert 'action="/c/0004/restore"' in (await page.get("/c/new")).text
    await page.post("/c/0004/restore")
    assert "0004" in fake.books


async def test_search_answers_as_page_and_as_the_sidebars_list(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    seeded(fake)
    assert "<html" in (await page.get("/search?q=kettle")).text
    part = (await page.get("/search?q=kettle", headers=HTMX)).text
    assert "<html" not in part
    assert "descale the kettle" in part
    assert "Nothing holds" in (await page.get("/search?q=<b>zzz", headers=HTMX)).text


# --- the stream -----------------------------------------------------------------------------------------------------


async def test_the_stream_replays_what_came_after_and_marks_each_event(
    fake: FakeHouse, page: httpx.AsyncClient
) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    await said(fake, page, "hello", book)
    text = await followed(fake, page, book, 0)
    assert text.startswith("event: ready\nretry: 800\n")
    assert [int(number) for number in re.findall(r"^id: (\d+)$", text, re.M)] == list(range(1, len(book.events) + 1))


async def test_the_mark_in_the_sidebar_and_the_ring_follow_the_answer(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    await said(fake, page, "hello", book)
    text = await followed(fake, page, book, 0)
    marks = re.findall(rf'hx-target="#cr-{book.head.id}" hx-swap="innerHTML">(<span class="pulse"|</hx-partial>)', text)
    assert marks == ['<span class="pulse"', "</hx-partial>"]
    assert "Context used: 12.4k of 128k tokens" in text


async def test_last_event_id_wins_over_the_address(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    await said(fake, page, "hello", book)
    last = len(book.events)
    text = await followed(fake, page, book, 0, **{"Last-Event-ID": str(last - 2)})
    assert re.findall(r"^id: (\d+)$", text, re.M) == [str(last - 1), str(last)]


async def test_a_model_cannot_write_a_message_of_the_stream(fake: FakeHouse, page: httpx.AsyncClient) -> None:
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    await said(
        fake, page, "ECHO\nid: 999\nevent: run\rdata: done\n\n<hx-partial hx-target='body'>gone</hx-partial>", book
    )
    text = await followed(fake, page, book, 0)
    assert "id: 999" not in re.findall(r"^id: \d+$", text, re.M)
    assert "<hx-partial hx-target='body'" not in text


async def test_an_answer_that_is_being_written_is_on_a_fresh_page_at_once(
    fake: FakeHouse, page: httpx.AsyncClient
) -> None:
    fake.words_per_s = 100
    book = fake.new_book(BRIAN, "orchestrator", "auto", "A talk")
    await page.post(f"/c/{book.head.id}/messages", data={"text": "ECHO " + "slowly told " * 400})
    while not any("slowly told slowly" in part.text for part in fake.hub.open_parts(book.head.id)):  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    html = (await page.get(f"/c/{book.head.id}")).text
    assert "slowly told slowly" in prose(html, Transcript(book.events).turns[0])
    assert 'data-running="1"' in html
    assert "<noscript><meta" in html
    await page.post(f"/c/{book.head.id}/stop")
    await asyncio.gather(*book.tasks.values())
    assert "Stopped." in (await page.get(f"/c/{book.head.id}")).text


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("\x1b[31mrm -rf /", "ESC"),
        ("a\u202eb", "U+202E"),
        ("a\u200bb", "U+200B"),
        ("a\u00a0b", "U+00A0"),
        ("a\u3164b", "U+3164"),
        ("ls" + " " * 80 + "; rm x", "80 spaces"),
        ("a\rb", "U+000D"),
        ("a\U000e0041b", "U+E0041"),
    ],
    ids=["terminal", "direction", "zero width", "hard space", "filler", "far right", "return", "tag"],
)
def test_what_hides_in_a_command_is_named(text: str, shows: str) -> None:
    assert f'<span class="inv">{shows}</span>' in visible(text)


def test_a_plain_command_is_shown_as_it_is() -> None:
    assert visible("df -h && echo 'é'\n\tls") == "df -h &amp;&amp; echo &#39;é&#39;\n\tls"
