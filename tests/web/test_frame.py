"""What stands around every page: the sidebar's lines, the word near the person's name, the places of a phone."""

import re

from cortex.app import Cortex
from cortex.storage.conversations import ConversationsRepository, Source
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.plain_world import PLAIN_TURN
from tests.web.conftest import Browser


def foot(page: str) -> str:
    """The word that stands near the person's name."""
    found = re.search(r'id="status">(.*?)</small>', page, re.DOTALL)
    assert found
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


async def works(house: Cortex, person: Browser, title: str, source: Source) -> str:
    """A conversation in which an answer is being written; its id."""
    conversations = house.runtime.db.repository(ConversationsRepository, person.user.id)
    made = await conversations.create("orchestrator", "auto", title, source=source, is_title_tainted=False)
    turn = NewTurn(f"turn:{title}", made.id, "x", state="running", **PLAIN_TURN)
    await house.runtime.db.repository(TurnsRepository, person.user.id).create(turn)
    return made.id


async def test_the_word_near_the_name_says_what_works_and_leads_to_it(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    await house.first_steps.hide(ada.user, is_hidden=True)
    assert foot((await ada.get("/tasks")).text) == "All good"
    brief = await works(house, ada, "Morning brief", "job")
    assert foot((await ada.get("/tasks")).text) == "Working: 1 job"
    await works(house, ada, "Oven on", "job")
    await works(house, ada, "Trip to Rome", "chat")
    page = (await ada.get("/tasks")).text
    assert foot(page) == "Working: 2 jobs, 1 chat"
    panel = page.partition('id="me"')[2].partition("</div>")[0]
    assert f'href="/c/{brief}"' in panel
    assert "Morning brief" in panel
    assert 'href="/stop-all"' in panel
    assert 'action="/logout"' in panel
    assert "Morning brief" not in (await bob.get("/tasks")).text


async def test_the_open_chat_is_not_what_works_elsewhere(house: Cortex, ada: Browser) -> None:
    await house.first_steps.hide(ada.user, is_hidden=True)
    chat = await works(house, ada, "Trip to Rome", "chat")
    assert foot((await ada.get(f"/c/{chat}")).text) == "All good"


async def test_the_set_up_is_named_until_it_is_done_or_hidden(house: Cortex, ada: Browser) -> None:
    assert foot((await ada.get("/tasks")).text).startswith("Set-up: ")
    await house.first_steps.hide(ada.user, is_hidden=True)
    assert foot((await ada.get("/tasks")).text) == "All good"


async def test_an_open_sidebar_is_told_how_things_stand_now(house: Cortex, ada: Browser, bob: Browser) -> None:
    await works(house, ada, "Morning brief", "job")
    told = (await ada.fragment("/status")).text
    assert 'hx-target="#status"' in told
    assert 'hx-target="#me"' in told
    assert "Working: 1 job" in " ".join(re.sub(r"<[^>]+>", " ", told).split())
    assert "Morning brief" not in (await bob.fragment("/status")).text
    assert (await ada.get("/status")).headers["location"] == "/more"


async def test_the_stop_is_in_the_head_while_something_runs(house: Cortex, ada: Browser) -> None:
    assert 'class="mini halt rests"' in (await ada.get("/tasks")).text
    await works(house, ada, "Morning brief", "job")
    assert 'class="mini halt"' in (await ada.get("/tasks")).text


async def test_a_phone_has_its_places_below_every_page_but_a_chat(ada: Browser) -> None:
    jobs, chat = (await ada.get("/jobs")).text, (await ada.get("/c/new")).text
    places = jobs.partition('class="tabbar"')[2].partition("</nav>")[0]
    assert [*re.findall(r'<a href="([^"]+)"', places)][-3:] == ["/tasks", "/calendar", "/more"]
    assert re.search(r'href="/more"\s+aria-current="true"', places), "what is not among them is reached by More"
    assert 'class="tabbar"' not in chat
    assert 'popovertarget="side"' in chat


async def test_a_phone_reaches_by_more_what_else_the_sidebar_has(ada: Browser) -> None:
    page = (await ada.get("/more")).text
    rest = page.partition('class="rest"')[2].partition("</ul>")[0]
    assert {"/search", "/jobs", "/notes", "/files", "/stop-all"} <= {*re.findall(r'<a href="([^"]+)"', rest)}


async def test_resume_in_the_banner_resumes_and_comes_back_to_the_page(ada: Browser) -> None:
    await ada.post("/stop-all", whom="mine")
    page = (await ada.get("/jobs")).text
    form = page.partition('action="/stop-all/release"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'name="(\w+)"\s+value="([^"]*)"', form))
    answer = await ada.post("/stop-all/release", **fields)
    assert answer.headers["location"] == "/jobs"
    assert "Everything was stopped" not in (await ada.get("/jobs")).text
