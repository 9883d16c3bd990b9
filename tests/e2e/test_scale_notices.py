"""Two pages and two workers on one PostgreSQL by the clock: what one page sets, the other shows, rings and answers."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from cortex.app import Cortex
from cortex.base.user import User
from cortex.storage.deliveries import DeliveriesRepository
from cortex.storage.notices import NoticesRepository
from tests.e2e.caller import Caller
from tests.e2e.clockroom import Clockroom, check
from tests.e2e.crew import Crew, Listener, at, events_of, until
from tests.e2e.tables import ask
from tests.notify.loopback import Loopback
from tests.postgres import private_postgres

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.names_its_database("several processes on a PostgreSQL of their own"),
]

RESULT = 'aria-label="What it found"'
TOLD_S = 60.0


@pytest.fixture(scope="module")
def hook() -> Iterator[Loopback]:
    """Somebody's program outside, which is told of everything."""
    with Loopback() as made:
        yield made


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory, hook: Loopback) -> Iterator[Crew]:
    folder, place = tmp_path_factory.mktemp("crew"), ":".join(map(str, hook.place))
    with private_postgres() as url, Crew(folder, url, pages=2, notify_hosts=place) as made:
        yield made


@pytest.fixture(scope="module")
def here(crew: Crew, hook: Loopback) -> Iterator[Caller]:
    """The admin on one page, told by the webhook."""
    with Caller(crew.pages[-1]) as caller:
        caller.set_up()
        caller.post("/notifications/settings/address", channel="webhook", address=f"{hook.origin}/told")
        yield caller


@pytest.fixture(scope="module")
def there(crew: Crew, here: Caller) -> Iterator[Caller]:
    """The same person on the other page."""
    with at(crew.pages[0], here) as caller:
        yield caller


@pytest.fixture
def bells(crew: Crew, here: Caller) -> Iterator[tuple[Listener, Listener]]:
    """The bells of both pages, on which nothing is unread."""
    here.post("/notifications/read", upto=datetime.now(UTC).isoformat())
    path = "/notifications/events?shown=0"
    with (
        Listener(crew.pages[-1].origin, here.token, path) as one,
        Listener(crew.pages[0].origin, here.token, path) as other,
    ):
        yield one, other


@pytest.fixture
def told_once(crew: Crew, hook: Loopback) -> Iterator[None]:
    """In the end, each notice of the test was told outside, once."""
    before, sent = _count(crew), len(hook.seen)
    yield
    until(lambda: len(hook.seen) - sent >= _count(crew) - before > 0, TOLD_S)
    until(lambda: not _on_the_way(crew), TOLD_S, 0.5)
    ids = [seen.headers["webhook-id"] for seen in hook.seen[sent:]]
    assert len(ids) == len(set(ids)) == _count(crew) - before


def _count(crew: Crew) -> int:
    async def count(cortex: Cortex, ada: User) -> int:
        return len(await cortex.runtime.db.repository(NoticesRepository, ada.id).list(limit=5_000))

    return ask(crew.pages[0], count)


def _on_the_way(crew: Crew) -> list[str]:
    """The deliveries that a worker has still to end."""

    async def found(cortex: Cortex, ada: User) -> list[str]:
        notices = await cortex.runtime.db.repository(NoticesRepository, ada.id).list(limit=5_000)
        rows = await cortex.runtime.db.repository(DeliveriesRepository, ada.id).of_notices([one.id for one in notices])
        return [row.id for own in rows.values() for row in own if row.state in ("pending", "attempting")]

    return ask(crew.pages[0], found)


def _made(answer_text: str, pattern: str) -> str:
    found = re.search(pattern, answer_text)
    assert found, answer_text[-2000:]
    return found[1]


@pytest.mark.usefixtures("told_once")
def test_a_reminder_of_one_page_rings_on_both_and_is_heard_on_the_other(
    here: Caller, there: Caller, bells: tuple[Listener, Listener]
) -> None:
    here.post("/reminders", words="take the bread out in 3 seconds")
    for bell in bells:
        bell.first("unread", "1")
    page = there.get("/reminders").text
    assert "take the bread out" in page
    there.post(f"/reminders/{_made(page, r'/reminders/([0-9a-z-]+)/ack')}/ack")
    for bell in bells:
        bell.first("unread", "0")
    assert "/ack" not in here.get("/reminders").text


@pytest.mark.usefixtures("told_once")
def test_a_job_of_one_page_is_run_on_the_other_and_its_result_stands_on_both(
    here: Caller, there: Caller, bells: tuple[Listener, Listener]
) -> None:
    made = here.post("/jobs/new", name="Morning", prompt="hello, what can you do?", when="every day at 4:00")
    job = made.headers["location"].rpartition("/")[2]
    assert "Morning" in there.get("/jobs").text
    there.post(f"/jobs/{job}/run")
    until(lambda: "Transcript" in here.get(f"/jobs/{job}/runs?show=done").text)
    for bell in bells:
        bell.first("unread", "1")
    chat = _made(there.get(f"/jobs/{job}/runs").text, r'href="/c/([\w-]+)/at/')
    assert "hello" in here.get(f"/c/{chat}").text
    assert there.get(f"/jobs/{job}/runs").text.count("Transcript</a>") == 1


def test_a_jobs_question_outlives_its_worker_and_is_answered_on_the_other_page(
    crew: Crew, here: Caller, there: Caller, bells: tuple[Listener, Listener]
) -> None:
    call = {"kind": "call", "tool": "shell_exec", "arguments": '{"command": "echo up-$((40+2))"}'}
    made = here.post("/jobs/new", name="Look", when="every day at 5:00", timeout_s="600", **call)
    job = made.headers["location"].rpartition("/")[2]
    here.post(f"/jobs/{job}/run")
    bells[1].first("unread", "1")
    chat = _made(there.get(f"/jobs/{job}/runs").text, r'href="/c/([\w-]+)/at/')
    killed = crew.worker_of(chat)
    killed.kill9()
    question = _made(there.get(f"/c/{chat}").text, r'action="/approvals/([\w-]+)"')
    there.post(f"/approvals/{question}", choice="once")
    until(lambda: "up-42" in here.get(f"/jobs/{job}/runs").text, TOLD_S)
    killed.start()
    assert here.get(f"/c/{chat}").text.count("up-42") >= 1


def test_an_agent_of_one_page_brings_its_result_to_the_other_once_though_its_worker_is_killed(
    crew: Crew, here: Caller, there: Caller
) -> None:
    cid = here.send("new", "start a background agent that looks up what the weather is like")
    with Listener(crew.pages[0].origin, there.token, events_of(cid)) as listener:
        listener.first("", 'aria-label="Background agent"')
        killed = crew.workers[0]
        killed.kill9()
        listener.first("", RESULT, timeout_s=TOLD_S)
        killed.start()
    until(lambda: 'class="working"' not in there.get(f"/c/{cid}").text)
    for page in (here, there):
        assert page.get(f"/c/{cid}").text.count(RESULT) == 1


def test_each_second_comes_once_while_a_worker_is_killed(crew: Crew, here: Caller, there: Caller) -> None:
    room = Clockroom(crew.workers)
    room.add_jobs(messages=3, prompts=1)
    room.wait_for_runs(10)
    crew.workers[0].kill9()
    room.wait_for_runs(20)
    crew.workers[0].start()
    room.wait_for_runs(45)  # of three jobs: more than ten of each
    end = datetime.now(UTC)
    kept = room.wait_until(end)
    assert check(kept, room.told(), end)["done"] > 10
    for page in (here, there):
        assert page.get("/jobs/job0/runs").text.count('<tr id="slot-') > 10
