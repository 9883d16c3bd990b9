"""Two workers and two pages on one PostgreSQL: what one process writes, the others show; a dead one's work goes on."""

import re
from collections.abc import Iterator

import pytest

from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.crew import Crew, Listener, at, events_of, until, words
from tests.patience import PATIENCE_S
from tests.postgres import private_postgres
from tests.scripted_server import Fault, ScriptedServer, rule

pytestmark = pytest.mark.names_its_database("several processes on a PostgreSQL of their own")

ASKED = "hello, what can you do?"
SHELL = "run `echo up-$((40+2))` in the shell"


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    with (
        private_postgres() as url,
        Crew(tmp_path_factory.mktemp("crew"), url, pages=2, offline_delay_ms=40) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def ada(crew: Crew) -> Iterator[Caller]:
    """The admin, by the link of the page that was started last: the earlier ones ended."""
    with Caller(crew.pages[-1]) as caller:
        yield caller.set_up()


def begin(ada: Caller, text: str, crew: Crew) -> tuple[str, Listener]:
    cid = ada.send("new", text)
    return cid, Listener(crew.pages[-1].origin, ada.token, events_of(cid))


def test_a_worker_answers_what_a_page_was_told_and_the_page_shows_it_as_it_comes(crew: Crew, ada: Caller) -> None:
    cid, listener = begin(ada, ASKED, crew)
    with listener:
        end = listener.first("ended")
        assert end.data.strip() == "done"
        before = [one for one in listener.heard if one.at_s < end.at_s - 0.2]
        assert len(words(before)) > 80, "the answer did not stream"
        grown = {round(one.at_s, 1) for one in before if "hx-partial" in one.data}
        assert len(grown) > 4
    assert "hello" in ada.get(f"/c/{cid}").text


def test_an_answer_to_a_question_reaches_the_worker_from_another_page(crew: Crew, ada: Caller) -> None:
    cid, listener = begin(ada, SHELL, crew)
    with listener, at(crew.pages[0], ada) as elsewhere:
        listener.first("run", "ask")
        found = re.search(r'action="/approvals/([\w-]+)"', elsewhere.get(f"/c/{cid}").text)
        assert found
        elsewhere.post(f"/approvals/{found[1]}", choice="once")
        assert listener.first("ended").data.strip() == "done"
    assert "up-42" in ada.get(f"/c/{cid}").text


@pytest.mark.full
def test_a_stop_on_another_page_closes_the_models_line_and_keeps_the_words(crew: Crew, ada: Caller) -> None:
    with ScriptedServer(rule("tale", "".join(f"Night {night} was dark and stormy. " for night in range(36)))) as server:
        form = {"provider": "openai", "model": "scripted-1", "base_url": server.base_url, "api_key": server.api_key}
        ada.post("/models", name="slow", streams="on", tools="on", **form)
        server.fail(Fault(kind="slow", seconds=0.15))
        cid, listener = begin(ada, "tell me a tale", crew)
        with listener, at(crew.pages[0], ada) as elsewhere:
            listener.first("", "dark")
            until(lambda: len(words(listener.heard)) > 100)
            elsewhere.post(f"/c/{cid}/stop")
            assert server.log[-1].left.wait(PATIENCE_S)
            end = listener.first("ended")
            assert end.data.strip() == "stopped"
        page = ada.get(f"/c/{cid}").text
        assert "dark" in page
        assert "partial" in page
        ada.post("/models/remove?name=slow")
    cid = ada.send(cid, ASKED)
    until(lambda: 'class="working"' not in ada.get(f"/c/{cid}").text)


@pytest.mark.full
def test_a_queued_message_is_answered_by_whichever_worker_is_free(crew: Crew, ada: Caller) -> None:
    cid, listener = begin(ada, ASKED, crew)
    with listener:
        listener.first("run", "start")
        ada.send(cid, "and what is on my list?")
        until(lambda: [one.event for one in listener.heard].count("ended") == 2)


def test_a_log_out_closes_what_its_login_watches_on_another_page(crew: Crew, ada: Caller) -> None:
    cid = ada.send("new", "hello")
    with Caller(crew.pages[0]) as browser:
        browser.log_in()
        with Listener(crew.pages[1].origin, browser.token, events_of(cid)) as listener:
            listener.first("ended")
            assert listener.is_open
            browser.post("/logout")
            until(lambda: not listener.is_open)


@pytest.mark.full
def test_an_ended_login_closes_the_streams_of_every_page(crew: Crew, ada: Caller) -> None:
    with ada.invite("Bob") as bob:
        own = bob.send("new", ASKED)
        with Listener(crew.pages[0].origin, bob.token, events_of(own)) as listener:
            ada.post("/confirm", password=PASSWORD)
            found = re.search(r'action="/admin/users/([\w-]+)/reset"><button[^>]*Bob"', ada.get("/admin/users").text)
            assert found
            ada.post(f"/admin/users/{found[1]}/disable")
            until(lambda: not listener.is_open)


@pytest.mark.full
def test_what_a_killed_worker_had_begun_is_ended_by_the_other(crew: Crew, ada: Caller) -> None:
    cid, listener = begin(ada, ASKED, crew)
    with listener:
        listener.first("", "hx-partial")
        until(lambda: len(words(listener.heard)) > 80)
        killed = crew.worker_of(cid)
        killed.kill9()
        until(lambda: any(one.event == "ended" for one in listener.heard))
        assert listener.first("ended").data.strip() == "done"
    killed.start()
    whole = ada.get(f"/c/{cid}").text
    assert whole.count('class="turn bot"') == 1
    again = ada.send("new", ASKED)
    until(lambda: 'class="working"' not in ada.get(f"/c/{again}").text)


@pytest.mark.full
def test_workers_end_and_come_back_in_order_without_a_lost_turn(crew: Crew, ada: Caller) -> None:
    cid, listener = begin(ada, ASKED, crew)
    with listener:
        listener.first("", "hx-partial")
        first = crew.worker_of(cid)
        assert first.stop() == 0
        first.start()
        assert listener.first("ended").data.strip() == "done"
