"""llama.cpp's real server with a small model behind the real daemon and its page. Prompts are short: it is slow.

Calls of tools stay with the scripted server: this model makes none.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import go
from tests.e2e.person import new_chat, poll, said, type_and_send, wait_for_end
from tests.made_pictures import drawn
from tests.real_llama import NO_LLAMA, TOOL_TEMPLATE, RealLlama, real_llama

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(bool(NO_LLAMA), reason=NO_LLAMA),
    pytest.mark.names_its_database("what a model server says does not hang on the database"),
]
MODEL = "SmolLM2-135M-Instruct.Q4_1"
TOPICS = ("colour", "animal", "fruit", "town", "river", "tree", "metal", "planet", "tool", "bird")
LONG = "Tell me a very long story about a king and his ten sons, one after the other."


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealLlama]:
    """With the model's own template, which drops tools silently."""
    with real_llama(tmp_path_factory.mktemp("plain")) as server:
        yield server


@pytest.fixture(scope="module")
def taking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealLlama]:
    """With a template that puts tools into the prompt."""
    with real_llama(tmp_path_factory.mktemp("taking"), chat_template=TOOL_TEMPLATE, n_ctx=4_096) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_model_is_left(ada: Caller) -> Iterator[None]:
    """So that none of them stands in for another one later."""
    yield
    for name in set(re.findall(r'href="/models/edit\?name=([^"]+)"', ada.get("/models").text)):
        ada.post(f"/models/remove?name={name}")


def add(ada: Caller, server: RealLlama, name: str, **more: str) -> str:
    """Set the server's model up by the form, as one that answers in a few words; its name."""
    model = server.said("/v1/models")["data"][0]["id"]
    fields = {"provider": "openai", "model": model, "base_url": server.base_url, "max_output_tokens": "24"}
    ada.post("/models", name=name, streams="1", **{**fields, **more})
    return name


def chat(ada: Caller, model: str, text: str, conversation: str = "new", **more: str) -> str:
    """Say it to this model, and wait for the end of the turn; the conversation."""
    answer = ada.post(f"/c/{conversation}/messages", text=text, mode="auto", model=model, **more)
    conversation = answer.headers["location"].rpartition("/")[2]
    ada.until_idle(conversation)
    return conversation


def answers(ada: Caller, conversation: str) -> list[str]:
    """The text of each answer's article on the page."""
    articles = re.findall(r'<article class="turn bot.*?</article>', ada.get(f"/c/{conversation}").text, re.DOTALL)
    return [unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", article))) for article in articles]


def rounds(house: Daemon, conversation: str) -> list[dict[str, Any]]:
    """What Cortex wrote down of each model call of the conversation."""
    with closing(sqlite3.connect(f"file:{house.home / 'cortex.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        asked = "SELECT * FROM rounds WHERE conversation_id = ? ORDER BY created_at, round"
        return [dict(row) for row in database.execute(asked, (conversation,))]


@pytest.mark.browser
def test_a_server_is_connected_talked_to_and_stopped_on_the_page(
    plain: RealLlama, house: Daemon, ada: Caller, opens: Opens
) -> None:
    window = opens(house.origin, ada.token)
    page = go(window, "/models/connect?preset=other")
    page.locator("#pv-other [name=base_url]").fill(plain.base_url)
    page.locator("#pv-other button.primary").click()
    row = page.locator("#choose tbody tr")
    expect(row).to_contain_text(MODEL)
    expect(row).to_contain_text("2k")  # by /props, not the 8,192 that it was trained for
    expect(row).to_contain_text("no tools")
    assert overflow_px(page) <= 0
    page.get_by_role("button", name="Use these").click()
    expect(page.get_by_role("status").filter(has_text="Added: ")).to_have_text(re.compile(rf"^Added: {MODEL}\. "))
    page = new_chat(window)
    type_and_send(page, LONG)
    first = poll(lambda: page.locator(".turn.bot").count() and said(page.locator(".turn.bot").last))
    poll(lambda: len(said(page.locator(".turn.bot").last)) > len(first))  # it grows while it is written
    page.locator(".send.stop").click()
    plain.until(busy=False)
    wait_for_end(page)
    expect(page.locator(".turn.bot").last).to_contain_text("Stopped")
    assert plain.held[-1] < 1_024  # where it would have been at its limit of 1,024 tokens of output
    type_and_send(page, "Good morning")
    wait_for_end(page)
    assert said(page.locator(".turn.bot").last)


@pytest.mark.parametrize("takes_tools", [False, True], ids=["no tools", "tools"])
def test_ten_turns_read_only_what_is_new(
    takes_tools: bool, plain: RealLlama, taking: RealLlama, house: Daemon, ada: Caller
) -> None:
    server = taking if takes_tools else plain
    tools = {"tools": "1", "parallel_calls": "1"} if takes_tools else {}
    model = add(ada, server, f"ten {takes_tools}", max_output_tokens="16", **tools)
    conversation = chat(ada, model, "add milk to my shopping list" if takes_tools else "Good morning")
    for topic in TOPICS[1:]:
        chat(ada, model, f"Name a {topic}.", conversation)
    calls = rounds(house, conversation)
    assert len(calls) == 10
    assert all(call["state"] == "answered" and bool(call["sent_tokens"]) == takes_tools for call in calls)
    anew = [call["input_tokens"] - call["cached_tokens"] for call in calls]
    assert anew == server.read[-10:]  # what Cortex understood is what the server did
    pairs = list(pairwise(calls))
    added = [call["input_tokens"] - before["input_tokens"] for before, call in pairs]
    new = [tokens - before["output_tokens"] for tokens, (before, _) in zip(added, pairs, strict=True)]
    told = f"read {anew[1:]}, new {new}, with the answer {added}"
    assert all(read <= tokens + 2 for read, tokens in zip(anew[1:], added, strict=True)), told
    # An answer that was cut in the middle of a word may be cut into other tokens once text stands behind it.
    assert sum(read <= tokens + 2 for read, tokens in zip(anew[1:], new, strict=True)) >= 7, told


def test_tools_that_a_template_drops_are_not_waited_for(plain: RealLlama, house: Daemon, ada: Caller) -> None:
    model = add(ada, plain, "insists", tools="1", parallel_calls="1")
    conversation = chat(ada, model, "add milk to my shopping list")
    (call,) = rounds(house, conversation)
    assert call["sent_tokens"] > 100  # Cortex sent them
    assert call["input_tokens"] < call["request_tokens"]  # they are not in the prompt
    assert call["state"] == "answered"


def test_two_models_side_by_side(plain: RealLlama, taking: RealLlama, house: Daemon, ada: Caller) -> None:
    one, two = add(ada, plain, "one"), add(ada, taking, "two")
    opened = [
        ada.post("/c/new/messages", text=f"Name a {topic}.", mode="auto", model=model).headers["location"]
        for model, topic in ((one, "fruit"), (two, "town"))
    ]
    first, second = (address.rpartition("/")[2] for address in opened)
    for conversation in (first, second):
        ada.until_idle(conversation)
    chat(ada, two, "And another?", first)
    chat(ada, one, "And a bird?", first)
    assert [call["model"] for call in rounds(house, first)] == [one, two, one]
    assert [call["model"] for call in rounds(house, second)] == [two]
    assert {call["state"] for call in (*rounds(house, first), *rounds(house, second))} == {"answered"}


def test_a_server_that_still_loads_its_model_is_waited_for(tmp_path: Path, house: Daemon, ada: Caller) -> None:
    server = RealLlama(tmp_path)
    try:
        server.start()
        model = add(ada, server, "loading")
        server.stop()
        server.begin()
        assert server.health() == 503
        server.pause()  # as a disk does that is slow
        conversation = (
            ada.post("/c/new/messages", text="Name a fruit.", model=model).headers["location"].rpartition("/")[2]
        )
        poll(lambda: server.unread > 500)  # a message is there: more than the looks at what it serves
        server.go_on()
        ada.until_idle(conversation)
        (answer,) = answers(ada, conversation)
        assert "loads the model" in answer
        assert rounds(house, conversation)[-1]["state"] == "answered", answer
    finally:
        server.stop()


def test_a_server_that_goes_in_the_middle_is_told_and_asked_again(tmp_path: Path, house: Daemon, ada: Caller) -> None:
    server = RealLlama(tmp_path)
    try:
        server.start()
        model = add(ada, server, "gone", max_output_tokens="1000")
        conversation = ada.post("/c/new/messages", text=LONG, model=model).headers["location"].rpartition("/")[2]
        server.until(busy=True)
        server.kill()
        ada.until_idle(conversation)
        (answer,) = answers(ada, conversation)
        assert "cut off" in answer
        server.start()
        add(ada, server, "gone", previous="gone")
        chat(ada, model, "Name a fruit.", conversation)
        assert rounds(house, conversation)[-1]["state"] == "answered"
    finally:
        server.stop()


def test_a_picture_that_the_server_refuses_is_left_out(plain: RealLlama, house: Daemon, ada: Caller) -> None:
    model = add(ada, plain, "blind", sees="yes")
    conversation = chat(ada, model, "What is this?", attached=ada.attach("teal.png", drawn()))
    (answer,) = answers(ada, conversation)
    assert [call["state"] for call in rounds(house, conversation)] == ["answered"], answer
    assert "picture" in answer


def test_a_history_that_is_too_long_is_shortened_and_the_turn_goes_on(
    tmp_path: Path, house: Daemon, ada: Caller
) -> None:
    with real_llama(tmp_path, n_ctx=1_024, n_parallel=2) as server:
        listed = ada.post("/models/connect", preset="other", base_url=server.base_url).text
        assert '<td class="n" data-l="Context">512</td>' in listed  # two slots share what the server was given
        model = add(ada, server, "narrow", context_tokens="8192")
        conversation = "new"
        for topic in TOPICS[:6]:
            conversation = chat(ada, model, f"Name a {topic}. {'It is a fine day. ' * 14}", conversation)
            assert {call["state"] for call in rounds(house, conversation)} == {"answered"}, answers(ada, conversation)[
                -1
            ]
        assert max(server.held) <= 512


def test_an_answer_that_repeats_itself_is_ended(plain: RealLlama, house: Daemon, ada: Caller) -> None:
    model = add(ada, plain, "runs away", max_output_tokens="1800")
    conversation = chat(ada, model, LONG)
    (answer,) = answers(ada, conversation)
    plain.until(busy=False)
    assert plain.held[-1] < 1_200, answer
    assert "repeat" in answer
