"""The chat in a real Chromium over a running house: what is live equals what is reloaded, and nothing is lost."""

import base64
import io
import json
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI
from PIL import Image
from playwright.sync_api import Browser, FilePayload, Page, Route, expect

from tests.e2e.browser import axe, overflow_px
from tests.e2e.chat_tab import Served, Tab, tab
from tests.e2e.person import allow_once, poll
from tests.patience import PATIENCE_S
from tests.scripted_server import Fault, ScriptedServer, rule
from tests.web.talks import Talks, talking_house
from tests.web.test_markdown import PAYLOADS
from web import assets
from web.app import create_app

pytestmark = [
    pytest.mark.browser,
    pytest.mark.moves_cache_prefix(reason="these tests say something again, differently and in other modes"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """The running house behind a server of its own; `place`: the conversation to look at."""

    server: Served
    talks: Talks

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def token(self) -> str:
        return self.talks.held.token

    @property
    def place(self) -> str:
        return f"/c/{self.talks.held.kitchen}"

    def sent_on(self) -> None:
        """Wait until the model has said a few words more."""
        answer = self.talks.model.log[-1]
        sent_bytes = answer.sent_bytes
        poll(lambda: answer.sent_bytes > sent_bytes + 1_000)


@pytest.fixture
def served(tmp_path: Path, scripted: ScriptedServer) -> Iterator[Lived]:
    assets.make()

    async def make(stack: AsyncExitStack) -> tuple[FastAPI, Talks]:
        talks = await stack.enter_async_context(talking_house(tmp_path / "home", scripted))
        return create_app(talks.living.cortex), talks

    server = Served(make)
    yield Lived(server=server, talks=server.held)
    server.close()


@pytest.fixture
def chat(browser: Browser, served: Lived) -> Iterator[Tab]:
    with tab(browser, served.url, served.token) as opened:
        opened.go(served.place)
        yield opened
        assert opened.complaints == []


REFUSED = Fault(kind="status", status=400)
CUT = Fault(kind="cut", after_bytes=900)


@pytest.mark.parametrize(
    ("text", "holds", "faults"),
    [
        ("Which nightly job failed?", "What I would do", []),
        ("add milk to my list", "on your shopping list", []),
        pytest.param("read five lists", "Used 5 tools", [], marks=pytest.mark.full),
        ("please try twice", "came to its end", [CUT]),
        pytest.param("hello", "Try again", [REFUSED] * 4, marks=pytest.mark.full),
        ("look at every shelf", "Continue with 5 more", []),
        pytest.param("a reference", 'href="https://example.org"', [], marks=pytest.mark.full),
    ],
    ids=["table and code", "one call", "folded calls", "second attempt", "error", "out of rounds", "reference link"],
)
def test_the_live_page_equals_the_reloaded_one(
    chat: Tab, served: Lived, text: str, holds: str, faults: list[Fault]
) -> None:
    served.talks.model.fail(*faults)
    chat.send(text)
    assert holds in chat.as_reloaded()


def test_a_question_is_answered_by_space_or_click_and_never_by_enter(chat: Tab) -> None:
    answered: list[str] = []
    is_answer = re.compile("/approvals/[a-z0-9]+$").search
    chat.page.on("request", lambda one: answered.extend([one.url] * bool(one.method == "POST" and is_answer(one.url))))
    chat.send("disk space, by the shell", waits=False)
    chat.page.wait_for_selector(".ask")
    chat.page.evaluate("() => document.activeElement.blur()")
    chat.page.keyboard.press(".")
    assert chat.page.evaluate("() => document.activeElement.value") == "deny"
    chat.page.keyboard.press("Tab")
    chat.page.keyboard.press("Enter")
    expect(chat.page.locator("h1")).to_have_text("Needs your OK")
    assert chat.page.evaluate("() => document.activeElement.value") == "deny", "the page of its own begins with Deny"
    chat.page.keyboard.press("Tab")
    chat.page.keyboard.press("Enter")
    assert answered == [], "no Enter is an answer"
    chat.page.keyboard.press("Space")
    expect(chat.page.locator("#log")).to_be_visible()
    chat.idle()
    assert "212 GB" in chat.as_reloaded()
    assert len(answered) == 1


def test_a_decision_in_one_window_takes_the_card_from_the_other(browser: Browser, served: Lived, chat: Tab) -> None:
    with tab(browser, served.url, served.token) as other:
        other.go(served.place)
        chat.send("disk space, by the shell", waits=False)
        other.page.wait_for_selector(".ask")
        chat.page.click(".ask [value=deny]")
        expect(other.page.locator(".ask")).to_have_count(0)
        other.idle()
        chat.idle()
        assert other.as_reloaded() == chat.as_reloaded()


def test_reloading_in_the_middle_of_an_answer_loses_and_doubles_nothing(chat: Tab, served: Lived) -> None:
    served.talks.model.delay_s = 1 / 60
    chat.send("Which nightly job failed?", waits=False)
    chat.until("() => document.querySelectorAll('.turn:last-child table').length > 0")
    length = "() => document.querySelector('.turn:last-child .prose').innerText.length"
    before = chat.page.evaluate(length)
    chat.page.reload()
    chat.until(f"() => ({length})() >= {before}")
    chat.idle()
    chat.as_reloaded()


def test_a_cut_connection_comes_back_without_a_lost_or_doubled_word(chat: Tab, served: Lived) -> None:
    served.talks.model.delay_s = 1 / 60
    chat.send("Which nightly job failed?", waits=False)
    chat.until("() => document.querySelector('.turn:last-child .md')?.innerText.length > 20")
    chat.context.set_offline(True)
    chat.until("() => !document.querySelector('#offline').hidden")
    chat.page.fill("#text", "written while away")
    served.sent_on()
    chat.context.set_offline(False)
    chat.idle()
    assert chat.page.input_value("#text") == "written while away"
    chat.as_reloaded()
    chat.complaints.clear()  # Chromium reports the cut itself


def test_a_message_that_does_not_get_through_is_kept_over_a_reload_and_sent_once(chat: Tab, served: Lived) -> None:
    """The first try reaches the server and its answer is lost; then a proxy answers that nobody is there."""
    tries = list[str]()

    def lost(route: Route) -> None:
        tries.append(route.request.post_data or "")
        is_busy = len(tries) == 2
        if len(tries) == 1:
            route.fetch()
            route.abort()
        else:
            route.fulfill(status=503 if is_busy else 502, body='<p class="say">The cellar is busy.</p>' * is_busy)

    chat.page.route("**/messages", lost)
    before = chat.page.locator(".turn.user").count()
    chat.page.fill("#text", "Which nightly job failed?")
    chat.page.click(".send:not(.stop)")
    expect(chat.page.locator("#text")).to_have_value("")
    with chat.page.expect_request("**/messages", timeout=PATIENCE_S * 1000):
        """It goes again by itself."""
    with chat.page.expect_request("**/messages", timeout=PATIENCE_S * 1000):
        chat.page.reload()
        expect(chat.page.locator(".mine")).to_contain_text("Which nightly job failed?")
    chat.page.unroute("**/messages")
    expect(chat.page.locator(".mine")).to_have_count(0)
    chat.until("() => document.querySelector('.turn:last-child .foot')")
    chat.idle()
    assert chat.page.locator(".turn.user").count() == before + 1
    keys = {re.search(r'name="?once"?\W+(\w+)|once=(\w+)', one)[0] for one in tries}  # type: ignore[index]
    assert len(keys) == 1
    chat.complaints.clear()  # Chromium reports what was aborted


def test_own_words_stand_at_once_and_the_next_wait_for_them(chat: Tab) -> None:
    before = chat.page.locator(".turn.user").count()
    chat.page.route("**/messages", lambda route: route.fulfill(status=503, body='<p class="say">No room.</p>'))
    chat.page.fill("#text", "one more")
    drawn = chat.page.evaluate(
        """() => {
          document.querySelector('#composer').requestSubmit();
          return [document.querySelector('.mine .said').textContent, document.querySelector('#text').value];
        }"""
    )
    assert drawn == ["one more", ""], "in the same moment, before anything came back"
    expect(chat.page.locator(".mine")).to_contain_text("No room. Not sent yet.")
    assert axe(chat.page) == []
    chat.page.fill("#text", "and another")
    chat.page.click(".send:not(.stop)")
    expect(chat.page.locator("#text")).to_have_value("and another")
    chat.page.unroute("**/messages")
    chat.until(f"() => document.querySelectorAll('.turn.user:not(.mine)').length === {before + 2}")
    assert chat.page.locator(".said").all_inner_texts()[-2:] == ["one more", "and another"]
    expect(chat.page.locator("#text")).to_have_value("")
    expect(chat.page.locator(".mine")).to_have_count(0)
    chat.until("() => document.querySelector('.turn:last-child .foot')")
    chat.idle()
    chat.complaints.clear()  # Chromium reports the refusals itself


def test_stop_keeps_what_was_written(chat: Tab, served: Lived) -> None:
    served.talks.model.rules.insert(0, rule("on and on", "".join(f"and on {at} " for at in range(300))))
    served.talks.model.delay_s = 1 / 30
    chat.send("on and on", waits=False)
    chat.until("() => document.querySelector('.turn:last-child .md')?.innerText.length > 20")
    chat.page.click(".stop")
    chat.idle()
    assert "Stopped." in chat.as_reloaded()


def test_what_small_models_put_into_their_text_is_no_part_of_the_answer(chat: Tab, served: Lived) -> None:
    call = '<tool_call>\n{"name": "task_create", "arguments": {"title": "buy milk"}}\n</tool_call>'
    served.talks.model.rules.insert(0, rule("good evening", "They greet me.\n</think>\n\nGood evening to you!"))
    served.talks.model.rules.insert(0, rule("buying milk", f"<think>\nI add it.\n</think>\n\n{call}", "It is noted."))
    chat.send("good evening")
    answer = chat.page.locator(".turn.bot").last
    expect(answer.locator(".md")).to_have_text("Good evening to you!")
    expect(answer.locator("details.think p")).to_be_hidden()
    assert "They greet me." in (answer.locator("details.think p").text_content() or "")
    chat.go(f"/c/{served.server.do(served.talks.living.conversation())}")  # where no call was made otherwise
    chat.send("add buying milk to my tasks", waits=False)
    chat.page.wait_for_selector(".ask")
    expect(chat.page.locator(".ask")).to_contain_text("the model wrote this call as text")
    chat.page.click(".ask a.warnb")  # anybody's words may stand in it: it is asked on a page of its own
    chat.page.click("[value=once]")
    chat.page.wait_for_url(lambda url: "/approvals/" not in url)
    chat.idle()
    whole = chat.as_reloaded()
    assert "It is noted." in whole
    assert "tool_call" not in whole


def test_a_message_sent_meanwhile_waits_visibly(chat: Tab, served: Lived) -> None:
    served.talks.model.delay_s = 1 / 60
    chat.send("Which nightly job failed?", waits=False)
    chat.send("and another thing", waits=False)
    assert chat.page.locator(".queued").count() == 1
    chat.idle()


COVERED = """part => {
  const box = selector => document.querySelector(selector).getBoundingClientRect(), card = box(part);
  return Math.max(0, box('.top').bottom - card.top, card.bottom - box('#composer').top) }"""
LONG = "and what else is there to say of it? " * 60


def test_a_message_sent_while_a_request_waits_is_answered_and_the_request_still_works(chat: Tab) -> None:
    chat.send("disk space, by the shell", waits=False)
    chat.page.wait_for_selector(".ask")
    chat.send("in passing")
    expect(chat.page.locator(".ask")).to_have_count(1)
    allow_once(chat.page)
    chat.until("() => document.querySelector('#log') && !document.querySelector('.ask')")
    chat.idle()
    whole = chat.as_reloaded()
    assert "You allowed" in whole
    assert "212 GB" in whole


def test_a_page_in_front_counts_as_looked_at_and_one_behind_does_not(chat: Tab) -> None:
    beats: list[str] = []
    chat.page.on("request", lambda asked: beats.extend([asked.url] * asked.url.endswith("/looked")))
    chat.send("disk space, by the shell", waits=False)
    chat.page.wait_for_selector(".ask")
    chat.page.evaluate("() => { document.hasFocus = () => false; dispatchEvent(new Event('focus')) }")
    assert beats == []
    chat.page.evaluate("() => { document.hasFocus = () => true; dispatchEvent(new Event('focus')) }")
    poll(lambda: chat.page.evaluate("() => 1") and beats)
    chat.page.evaluate(
        "() => { Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' });"
        " document.dispatchEvent(new Event('visibilitychange')) }"
    )
    assert len(beats) == 1


def test_messages_sent_meanwhile_take_no_more_room_than_they_need(chat: Tab, served: Lived) -> None:
    height = "() => document.querySelector('.turn.user:has(.queued)').offsetHeight"
    served.talks.model.rules.insert(0, rule("on and on", "".join(f"and on {at} " for at in range(3_000))))
    served.talks.model.delay_s = 1 / 30
    chat.send("on and on", waits=False)
    chat.send(LONG, waits=False)
    assert chat.page.evaluate(height) < 130
    chat.page.locator(".turn.user:has(.queued)").focus()  # a press would wait until the growing answer holds still
    assert chat.page.evaluate(height) > 250


@pytest.mark.parametrize(("keys", "left"), [(" and eggs", " and eggs"), ("", "")], ids=["more", "nothing"])
def test_what_is_typed_while_a_message_is_on_its_way_stays(chat: Tab, keys: str, left: str) -> None:
    held: list[Route] = []
    chat.page.route("**/messages", lambda route: held.append(route))
    chat.page.fill("#text", "add milk to my list")
    chat.page.press("#text", "Enter")
    poll(lambda: chat.page.evaluate("() => 1") and held)
    chat.page.keyboard.type(keys)
    held[0].continue_()
    chat.until(f"() => document.querySelector('#text').value === {json.dumps(left)}")
    chat.page.unroute("**/messages")
    chat.until("() => document.querySelectorAll('.turn.bot .foot').length")
    assert chat.page.evaluate("() => document.querySelector('#text').value") == left


def test_focus_stays_where_it_is_while_an_approval_and_messages_wait(chat: Tab) -> None:
    focus = "() => document.activeElement.value"
    chat.page.fill("#text", "disk space, by the shell")
    chat.page.press("#text", "Enter")
    chat.until("() => !document.querySelector('#text').value")
    chat.page.keyboard.type("in pas")
    chat.page.wait_for_selector(".ask")
    chat.page.keyboard.type("sing")
    assert chat.page.evaluate(focus) == "in passing"
    chat.page.keyboard.press("Enter")
    chat.until("() => !document.querySelector('#text').value")
    assert chat.page.evaluate("() => document.activeElement.id") == "text"
    chat.page.evaluate("() => document.activeElement.blur()")
    chat.page.keyboard.press(".")
    assert chat.page.evaluate(focus) == "deny"
    assert chat.page.evaluate(COVERED, ".ask") == 0


def test_editing_in_place_makes_a_version_and_the_keys_go_back_and_forth(
    browser: Browser, chat: Tab, served: Lived
) -> None:
    chat.send("add milk to my list")
    chat.page.hover(".turn.user:nth-last-child(2)")
    chat.page.locator("[data-edit]").last.click()
    chat.page.fill(".edit textarea", "read five lists")
    chat.page.click(".edit .primary")
    chat.until("() => document.querySelector('.turn:last-child')?.innerText.includes('Five lists')")
    chat.idle()
    shown = chat.as_reloaded()
    assert "add milk to my list" not in shown
    assert "earlier version" in shown
    with tab(browser, served.url, served.token) as other:
        other.go(served.place)
        chat.page.keyboard.press("<")
        for each in (chat, other):
            expect(each.page.locator(".said").last).to_have_text("add milk to my list")
        expect(chat.page.locator("#sr")).to_have_text("Version 1 of 2")
        assert chat.page.evaluate("() => document.activeElement.matches('.turn.user:has(.ver)')")
        assert "add milk to my list" in chat.as_reloaded()
    chat.page.locator(".ver a").click()
    expect(chat.page.locator("#confirm li form").first).to_contain_text("add milk to my list")
    assert axe(chat.page) == []


def test_an_undo_shows_on_its_card(chat: Tab) -> None:
    chat.send("add milk to my list")
    chat.page.locator(".turn.bot").last.locator("form[action^='/undo/'] button").click()
    card = chat.page.locator(".deed").last
    expect(card.locator(".ta")).to_have_text("Removed 'milk' again.")
    chat.as_reloaded()
    card.get_by_role("button", name="Redo").click()
    expect(card.locator(".ta")).to_have_text("Added milk to shopping")
    expect(card.get_by_role("button", name="Undo")).to_be_visible()
    chat.as_reloaded()


def test_alt_enter_asks_without_tools_and_keeps_the_mode(chat: Tab, served: Lived) -> None:
    chat.page.fill("#text", "a quick one")
    chat.page.press("#text", "Alt+Enter")
    chat.until("() => document.querySelectorAll('.turn.user').length === 3")
    chat.idle()
    turn = served.server.do(served.talks.turns(served.talks.held.kitchen))[-1]
    assert (turn.text, turn.mode) == ("a quick one", "chat")
    assert chat.page.evaluate("() => document.querySelector('#composer').mode.value") == "auto"


def test_the_price_and_its_reasons_show_before_sending(chat: Tab) -> None:
    chat.page.fill("#text", "which nightly jobs ran?")
    chat.until("() => /Auto · \\d+ tools?/.test(document.querySelector('#tools').innerText)")
    chat.page.click("#tools")
    chat.page.click("[popovertarget=why]")
    chat.until("() => document.querySelector('#why').innerText.includes('cron_list')")


def test_a_draft_survives_a_reload(chat: Tab) -> None:
    chat.page.fill("#text", "half a thou")
    chat.page.reload()
    assert chat.page.input_value("#text") == "half a thou"


def test_single_keys_work_and_can_be_switched_off(chat: Tab, served: Lived) -> None:
    mode = "() => document.querySelector('#composer').mode.value"
    focus = "() => document.activeElement.id || document.activeElement.className"
    chat.page.evaluate("() => document.activeElement.blur()")
    chat.page.keyboard.press("m")
    assert chat.page.evaluate(mode) == "chat"
    chat.page.evaluate("() => document.activeElement.blur()")
    chat.page.keyboard.press("k")
    assert chat.page.evaluate(focus) == f"t{served.talks.held.keys[-1]}"
    chat.page.keyboard.press("?")
    chat.until("() => document.querySelector('#confirm[open] .shortcuts')")
    chat.page.keyboard.press("Escape")
    chat.page.keyboard.press("/")
    assert chat.page.evaluate(focus) == "text"
    cortex, ada = served.talks.living.cortex, served.talks.living.admin
    served.server.do(cortex.preferences.change(ada, {"keys": "off"}))
    chat.page.reload()
    chat.page.evaluate("() => document.activeElement.blur()")
    chat.page.keyboard.press("m")
    assert chat.page.evaluate(mode) == "auto"


def test_deleting_asks_in_a_dialog_and_can_be_taken_back(chat: Tab, served: Lived) -> None:
    chat.page.click("h1 [popovertarget=menu]")
    chat.page.click("#menu >> text=Delete")
    chat.page.click("#confirm button.danger")
    chat.page.wait_for_url("**/c/new")
    chat.page.click(".toast .btn")
    chat.page.wait_for_url(f"**{served.place}")


def test_nothing_that_a_model_writes_can_act_in_the_browser(chat: Tab, served: Lived) -> None:
    served.talks.model.rules.insert(0, rule("do your worst", "Here:\n" + "\n\n".join(PAYLOADS)))
    chat.send("do your worst")
    found = chat.page.evaluate(
        # Task boxes are disabled inputs of ours; formulas are laid out by the library's own inline styles.
        """() => { const all = [...document.querySelectorAll('.turn:last-child .md *')].filter(
            e => !e.matches('input[type=checkbox]:disabled')); return {
            tags: all.filter(e => e.matches('script,img,iframe,template,form,input,style,svg,object,embed')).length,
            acts: all.filter(e => [...e.attributes].some(
                a => /^(on|hx-|data-hx-)/.test(a.name) || (a.name === 'style' && !e.closest('.katex')))).length,
            links: all.filter(e => e.href && !/^(https?|mailto):/.test(e.href)).length,
            composer: document.querySelectorAll('#composer').length } }"""
    )
    assert found == {"tags": 0, "acts": 0, "links": 0, "composer": 1}
    chat.as_reloaded()


def test_sending_and_approving_work_without_script(browser: Browser, served: Lived) -> None:
    with tab(browser, served.url, served.token, has_script=False) as still:
        still.page.goto("/c/new")
        still.page.fill("#text", "disk space, by the shell")
        still.page.click(".send:not(.stop)")
        still.page.wait_for_selector(".ask")
        allow_once(still.page)
        still.page.wait_for_selector("text=212 GB")


def test_earlier_messages_come_in_above_without_moving_the_page(chat: Tab, served: Lived) -> None:
    chat.go(f"/c/{served.server.do(served.talks.long(100))}")
    chat.until("() => scrollY > 1000")
    before = chat.page.locator(".turn").count()
    chat.page.evaluate("() => document.querySelector('.earlier a').scrollIntoView()")
    chat.until(f"() => document.querySelectorAll('.turn').length > {before}")
    chat.until("() => scrollY > 1000")


# Scrolls back until no control lies half below the header or the composer, which axe takes for a target too small.
CLEAR = """() => {
  const edges = () => [document.querySelector('.head')?.getBoundingClientRect().bottom ?? 0,
    document.querySelector('#composer')?.getBoundingClientRect().top ?? innerHeight];
  const half = edge => [...document.querySelectorAll('main a, main button, main summary')].map(e =>
    e.getBoundingClientRect()).find(box => box.height && box.top < edge && box.bottom > edge);
  for (let tries = 0; tries < 30; tries++) {
    const edge = edges().find(half);
    if (edge === undefined) return;
    scrollBy(0, half(edge).top - edge - 1);
  }
}"""


def sound(page: Page) -> list[str]:
    """What axe finds where nothing is half covered."""
    page.evaluate(CLEAR)
    return axe(page)


@pytest.mark.parametrize(
    ("is_dark", "is_phone"),
    [
        pytest.param(False, True, id="light phone"),
        pytest.param(True, False, id="dark desk", marks=pytest.mark.full),
        pytest.param(False, False, id="light desk", marks=pytest.mark.full),
        pytest.param(True, True, id="dark phone", marks=pytest.mark.full),
    ],
)
def test_axe_finds_nothing_in_any_state(browser: Browser, served: Lived, is_dark: bool, is_phone: bool) -> None:
    models, ada = served.talks.living.cortex.models, served.talks.living.admin
    with tab(browser, served.url, served.token, is_dark=is_dark, is_phone=is_phone) as one:
        found = {}
        one.go("/c/new")
        found["new"] = sound(one.page)
        served.server.do(models.set_chain(ada, ["offline"]))
        one.go("/c/new")
        assert one.page.locator(".noai >> text=No AI yet").count() == 1
        found["offline"] = sound(one.page)
        served.server.do(models.set_chain(ada, []))
        one.go(served.place)
        for text in ("Which nightly job failed?", "read five lists", "every shelf", "add milk to my list"):
            one.send(text)
        served.talks.model.fail(*[REFUSED] * 4)
        one.send("hello")
        one.page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
        found["answers"] = sound(one.page)
        one.page.evaluate("() => document.querySelectorAll('[data-pop=why]')[2].click()")
        one.page.wait_for_selector("#why-b .why-foot")
        found["why"] = sound(one.page)
        one.page.keyboard.press("Escape")
        one.send("disk space, by the shell", waits=False)
        one.page.wait_for_selector(".ask")
        one.until(f"() => ({COVERED})('.ask') === 0")
        found["asked"] = sound(one.page)
        found["wide"] = [f"{wide} px too wide"] if (wide := overflow_px(one.page)) > 0 else []
        edited = f"{served.place}/edit/{served.talks.held.keys[-1]}"
        for path in (f"{served.place}/rename", f"{served.place}/delete", "/search?q=lamp", edited):
            one.go(path)
            found[path] = sound(one.page)
        assert {state: lines for state, lines in found.items() if lines} == {}
        assert one.complaints == []


PASTE = """([kind, name, base64]) => {
    const data = new DataTransfer(), bytes = Uint8Array.from(atob(base64), sign => sign.charCodeAt(0));
    data.items.add(new File([bytes], name));
    const given = kind === 'paste' ? new ClipboardEvent(kind, { clipboardData: data, bubbles: true, cancelable: true })
      : new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
    document.querySelector('#text').dispatchEvent(given);
}"""


def test_files_come_by_button_paste_and_drop_and_stay_with_the_message(chat: Tab, served: Lived) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (400, 200), "teal").save(picture, "PNG")
    photo: FilePayload = {"name": "fence.png", "mimeType": "image/png", "buffer": picture.getvalue()}
    other: FilePayload = {**photo, "name": "other.png"}
    chat.page.set_input_files("#pick", [photo, other])
    for kind, name in (("paste", "pasted.txt"), ("drop", "dropped.md"), ("drop", "bad.zip")):
        chat.page.evaluate(PASTE, [kind, name, base64.b64encode(b"PK\3\4" if name == "bad.zip" else b"words").decode()])
    cards, kept = chat.page.locator("#files .file"), chat.page.locator("#files [name=attached]")
    expect(kept).to_have_count(4)
    expect(chat.page.locator("#files .bad")).to_contain_text("bad.zip: This type of file is not supported.")
    chat.page.click("#files .bad button")
    cards.filter(has_text="other.png").get_by_role("button").click()
    expect(cards).to_have_count(3)
    chat.page.route("**/files", lambda route: route.abort())
    chat.page.set_input_files("#pick", {**photo, "name": "lost.png"})
    expect(cards.filter(has_text="lost.png: It did not arrive.")).to_have_count(1)
    chat.page.unroute("**/files")
    chat.page.click("#files .bad button")
    chat.send("hello")
    expect(cards).to_have_count(0)
    log = chat.as_reloaded()
    assert [name in log for name in ("fence.png", "pasted.txt", "dropped.md", "other.png")] == [True, True, True, False]
    chat.page.click(".given .pic")
    expect(chat.page.locator("#confirm img")).to_be_visible()
    assert axe(chat.page) == []
    chat.page.keyboard.press("Escape")
    chat.complaints[:] = [one for one in chat.complaints if "422" not in one and "ERR_FAILED" not in one]


def _end_below(chat: Tab) -> float:
    """Return how far below the upper edge of the composer the last answer ends."""
    found: float = chat.page.evaluate(
        """() => [...document.querySelectorAll('.turn.bot')].at(-1).getBoundingClientRect().bottom
            - document.querySelector('.dock').getBoundingClientRect().top"""
    )
    return found


def test_a_page_follows_a_long_answer_where_its_reader_wants_that_until_they_scroll_away(
    chat: Tab, served: Lived
) -> None:
    talks = served.talks
    lines = "\n\n".join(f"line {number} of a long answer" for number in range(80))
    talks.model.rules.insert(0, rule("a long one", lines))
    chat.send("a long one")
    assert _end_below(chat) > 500, "the question stays on top, as by default"
    served.server.do(talks.living.cortex.preferences.change(talks.living.admin, {"follows": "1"}))
    chat.go(served.place)
    chat.send("a long one")
    assert _end_below(chat) < 60
    talks.model.fail(Fault(kind="pause", after_bytes=40_000))
    chat.send("a long one", waits=False)
    chat.until("() => [...document.querySelectorAll('.turn.bot')].at(-1).textContent.includes('line 12 ')")
    chat.page.evaluate("() => scrollBy({ top: -400, behavior: 'instant' })")
    chat.until("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    talks.model.go_on(1_000)
    chat.idle()
    assert _end_below(chat) > 400, "who scrolled away is left there"
