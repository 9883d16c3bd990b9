"""Several pages on one conversation: what happens is painted once for all, and each page gets every row once."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from cortex.base.clock import ticks_s
from cortex.base.errors import Throttled
from tests.living_house import living_house
from tests.patience import PATIENCE_S
from tests.scripted_server import Fault, rule
from tests.web import conftest
from tests.web.streams import following
from tests.web.talks import Talks
from web.live import LivePages, OpenPage

PAGES = 12
LONG = "".join(f"word {number} after word " for number in range(150)) + "and that is the end"
SLOWLY = "".join(f"slowly told {number} " for number in range(400))


@pytest.fixture
async def browser(served: FastAPI, talks: Talks) -> AsyncIterator[httpx.AsyncClient]:
    async with conftest.browser(served, talks.held.token) as http:
        yield http


def ids(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"^id: (\d+)$", text, re.M)]


async def test_an_answer_is_painted_once_for_all_pages_and_reaches_each_whole(
    served: FastAPI, talks: Talks, browser: httpx.AsyncClient
) -> None:
    painted = list[str]()
    shown = served.state.pages.env.filters["dom"]

    def counted(*given: str) -> str:
        painted.append("")
        return str(shown(*given))

    served.state.pages.env.filters["dom"] = counted
    cid = await talks.living.conversation()
    async with AsyncExitStack() as stack:
        path = f"/c/{cid}/events?after=0"
        pages = [await stack.enter_async_context(following(served, browser, path)) for _ in range(PAGES)]
        for page in pages:
            await page.until("event: ready")
        painted.clear()
        await talks.living.say(cid, "what about the stand-up?")
        texts = [await page.until("event: ended") for page in pages]
    events = [event.seq for event in await talks.living.events(cid)]
    assert [ids(text) for text in texts] == [events] * PAGES
    assert 0 < len(painted) < PAGES  # a slow model's words come in a piece or two more, whatever the number of pages


def words_of_status(text: str) -> list[str]:
    """Return what was said near the person's name, one after the other."""
    found = re.findall(r'hx-target="#status"[^>]*>(.*?)</hx-partial>', text, re.S)
    return [" ".join(re.sub(r"<[^>]+>|\ndata:", " ", one).split()) for one in found]


async def test_the_word_near_the_name_follows_what_works_on_every_page_but_its_own(
    served: FastAPI, talks: Talks, browser: httpx.AsyncClient
) -> None:
    talks.model.rules.insert(0, rule("slowly", SLOWLY))
    talks.model.fail(Fault(kind="pause", after_bytes=2_000))
    cid = await talks.living.conversation()
    async with following(served, browser, "/notifications/events?shown=0") as other:
        await other.until("event: ready")
        async with following(served, browser, f"/c/{cid}/events?after=0") as own:
            await own.until("event: ready")
            assert words_of_status(other.text) == [], "nothing is sent while nothing changes"
            await browser.post(f"/c/{cid}/messages", data={"text": "say it slowly"})
            await other.until("Working:")
            async with following(served, browser, "/notifications/events?shown=0") as late:
                await late.until("Working:")  # the page may have been made just before
            before = len(other.text)
            talks.model.go_on(1_000)
            await own.until("event: ended")
            await other.until("</hx-partial>\n\n", before)
        begun, ended = words_of_status(other.text)
    assert begun == "Working: 1 chat"
    assert "Working" not in ended
    assert not any("Working" in word for word in words_of_status(own.text)), "its own page shows it anyway"


async def test_the_word_is_taken_back_from_a_page_that_came_while_something_worked(
    served: FastAPI, talks: Talks, browser: httpx.AsyncClient
) -> None:
    talks.model.rules.insert(0, rule("slowly", SLOWLY))
    talks.model.fail(Fault(kind="pause", after_bytes=2_000))
    cid = await talks.living.conversation()
    await browser.post(f"/c/{cid}/messages", data={"text": "say it slowly"})
    await talks.living.until(cid, "turn.start")
    async with following(served, browser, "/notifications/events?shown=0") as other:
        await other.until("event: ready")
        before = len(other.text)
        talks.model.go_on(1_000)
        await other.until("</hx-partial>\n\n", before)
    assert "Working" not in words_of_status(other.text)[-1]


async def test_a_page_that_comes_in_the_middle_of_an_answer_has_all_of_it_at_once(
    served: FastAPI, talks: Talks, browser: httpx.AsyncClient
) -> None:
    talks.model.rules.insert(0, rule("slowly", SLOWLY))
    talks.model.fail(Fault(kind="pause", after_bytes=2_000))
    cid = await talks.living.conversation()
    async with following(served, browser, f"/c/{cid}/events?after=0") as first:
        await browser.post(f"/c/{cid}/messages", data={"text": "say it slowly"})
        await first.until("slowly told 1 ")
        async with following(served, browser, f"/c/{cid}/events?after=0") as second:
            await second.until("slowly told 1 ")  # though the model says nothing more now
            talks.model.go_on(1_000)
            await first.until("event: ended")
            await second.until("event: ended")
        assert ids(first.text) == ids(second.text)


async def test_a_page_that_does_not_read_is_brought_up_to_date_instead_of_kept_for(
    served: FastAPI, talks: Talks
) -> None:
    talks.model.rules.insert(0, rule("at length", LONG))
    living = talks.living
    cid = await living.conversation()
    live = LivePages(living.cortex, served.state.pages, waiting_most=100)
    stream = live.conversation(living.admin, cid, 0, 0)
    assert "event: ready" in await anext(stream)
    coming = asyncio.ensure_future(anext(stream))
    await living.say(cid, "tell it at length", mode="chat")
    text = await asyncio.wait_for(coming, PATIENCE_S)  # nothing more is read while the answer comes
    async with asyncio.timeout(PATIENCE_S):
        while "event: ended" not in text:
            text += await anext(stream)
    await stream.aclose()
    assert ids(text) == [event.seq for event in await living.events(cid)]
    assert "and that is the end" in text


async def test_what_is_too_much_to_keep_is_dropped_and_the_page_said_to_be_behind() -> None:
    page = OpenPage(seq=3, waiting_most=100)
    page.push("a", 4)
    page.push("b")
    texts = page.texts(ticks_s() + PATIENCE_S)
    assert await anext(texts) == "ab"
    page.push("c" * 101, 5)
    page.push("d", 6)
    assert await anext(texts, "behind") == "behind"
    assert page.seq == 4
    page.begin(6)
    page.push("e", 7)
    assert await anext(page.texts(ticks_s() + PATIENCE_S)) == "e"


async def test_a_feed_ends_with_its_last_page_and_begins_again_with_the_next(
    served: FastAPI, talks: Talks, browser: httpx.AsyncClient
) -> None:
    cid, streams = talks.held.kitchen, talks.living.cortex.streams
    for _ in range(2):
        async with following(served, browser, f"/c/{cid}/events?after=0") as page:
            await page.until("event: ended")
            assert streams.is_watched(talks.living.admin.id, cid)
        async with asyncio.timeout(PATIENCE_S):
            while streams.is_watched(talks.living.admin.id, cid):  # noqa: ASYNC110 - a watcher leaves without a word
                await asyncio.sleep(0.01)


async def test_who_logs_out_leaves_no_live_page_open_and_their_work_goes_on(
    served: FastAPI, talks: Talks, browser: httpx.AsyncClient
) -> None:
    talks.model.rules.insert(0, rule("slowly", SLOWLY))
    talks.model.fail(Fault(kind="pause", after_bytes=2_000))
    cid = await talks.living.conversation()
    async with following(served, browser, f"/c/{cid}/events?after=0") as stolen:
        await browser.post(f"/c/{cid}/messages", data={"text": "say it slowly"})
        await stolen.until("slowly told 1 ")
        await browser.post("/logout")
        async with asyncio.timeout(PATIENCE_S):
            await stolen.is_closed.wait()
    talks.model.go_on(1_000)
    ended = await talks.living.until(cid, "turn.end")
    assert ended.payload["state"] == "done"


async def test_a_page_whose_conversation_cannot_be_read_ends_instead_of_breaking(
    served: FastAPI, talks: Talks, caplog: pytest.LogCaptureFixture
) -> None:
    """The database may go away between the look at the login and the first look at the log."""
    live = LivePages(talks.living.cortex, served.state.pages)
    stream = live.conversation(talks.living.admin, "01NONE", 3, 0)
    async with asyncio.timeout(PATIENCE_S):
        assert "event: ready" in "".join([text async for text in stream])
    assert "live page failed" in caplog.text


async def test_a_person_has_as_many_live_pages_as_the_setting_says_and_no_more(tmp_path: Path) -> None:
    async with living_house(tmp_path, streams_per_person=2) as house:
        streams, ada = house.cortex.streams, house.admin.id
        with streams.holding(ada), streams.holding(ada):
            with pytest.raises(Throttled), streams.holding(ada):
                pass
            with streams.holding(house.member.id):
                pass
        with streams.holding(ada):
            pass
