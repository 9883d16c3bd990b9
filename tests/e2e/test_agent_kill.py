"""Processes are killed while background agents work: each goes on or says that it ended, and its result comes once."""

import logging
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from cortex.app import Cortex
from cortex.base.note_names import SCRATCHPAD
from cortex.base.turn import LOOP_ENDS, parent_of
from cortex.base.user import User
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.notices import NoticeRow, NoticesRepository
from cortex.storage.tasks import TasksRepository
from cortex.storage.turns import TurnRow, TurnsRepository
from tests.e2e.crew import Crew, until
from tests.e2e.crowd import Crowd, made_again
from tests.e2e.daemon import Daemon
from tests.e2e.tables import ask
from tests.postgres import private_postgres
from tests.scripted_pipe import Pipe, Seen
from tests.scripted_server import Asked, ScriptedServer, Use, rule

END_S = 400.0
LOOK_S = 0.5
DEADLY = "a tale without an end"
JOT = "jot it down on the scratchpad"
LIVES = 7  # the engine takes a run up five times; then it is given up

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The agents with the results that came of each, all other turns, what was told, what was written."""

    agents: dict[str, list[TurnRow]]
    runs: list[TurnRow]
    talk: list[TurnRow]
    told: list[NoticeRow]
    titles: list[str]
    jotted: list[str]

    @property
    def is_over(self) -> bool:
        return all(turn.state in LOOP_ENDS for turn in (*self.runs, *self.talk))


async def _kept(cortex: Cortex, ada: User) -> Kept:
    opened = cortex.runtime.db
    chats = await opened.repository(ConversationsRepository, ada.id).list(limit=100)
    own = await opened.repository(ConversationsRepository, ada.id).list(limit=100, source="agent")
    runs = [row for one in own if (row := await opened.repository(TurnsRepository, ada.id).at(one.id, 1))]
    talk = [row for one in chats for row in await opened.repository(TurnsRepository, ada.id).list(one.id)]
    results = [row for row in talk if row.channel == "result"]
    pad = cortex.settings.home / ada.id / SCRATCHPAD
    return Kept(
        agents={run.id: [row for row in results if f"Handed over: {run.text}\n" in row.text] for run in runs},
        runs=runs,
        talk=talk,
        told=list(await opened.repository(NoticesRepository, ada.id).list(limit=1000)),
        titles=[task.title for task in await opened.repository(TasksRepository, ada.id).list()],
        jotted=[line for line in pad.read_text("utf-8").split("\n") if line] if pad.exists() else [],
    )


class Speechless(ScriptedServer):
    """Begins the tale with silence: an agent that shows something when it is killed is taken up far more often.

    tales: how often it was asked for, once a life in which the agent is at work.
    """

    tales = 0

    async def _answer(self, seen: Seen, pipe: Pipe, wire: ModuleType) -> None:
        if wire.read(seen.body).user.startswith(f"Tell {DEADLY}"):
            self.tales += 1
            return await pipe.wait_for_client()
        return await super()._answer(seen, pipe, wire)


@contextmanager
def handing_over() -> Iterator[Speechless]:
    """A model that hands each part to an agent, which writes it into a table and a file and says that it is done."""

    def part(asked: Asked) -> str:
        return str(re.findall(r"part \d+|a tale without an end", asked.user)[-1])

    rules = (
        rule("What you had handed over is done", lambda asked: f"Your agent has done {part(asked)}."),
        rule(
            "^Work through",
            lambda asked: Use("task_create", {"title": part(asked)}),
            lambda asked: Use("scratch_append", {"text": part(asked)}),
            lambda asked: f"I have worked through {part(asked)} and nothing of it is left to do.",
        ),
        rule(f"spawn.*{DEADLY}", Use("spawn_agent", {"task": f"Tell {DEADLY}."}), "It is on its way."),
        rule(
            "spawn an agent",
            lambda asked: Use("spawn_agent", {"task": f"Work through {part(asked)} of the list of tasks and {JOT}."}),
            "It is on its way.",
        ),
    )
    with Speechless(*rules) as server:
        server.delay_s = 0.02
        yield server
        assert server.problems == []


def is_at_work_or_over(daemon: Daemon, model: Speechless, life: int) -> bool:
    """Whether the teller of the tale began it in so many lives, or will never again."""
    return model.tales >= life or ask(daemon, _kept).is_over


def wait_for_the_end(page: Daemon, mortals: Sequence[Daemon]) -> Kept:
    """Until every agent and every turn has ended, and what was told of them stands."""
    deadline_s = time.monotonic() + END_S
    while not (kept := ask(page, _kept)).is_over:
        states = [(row.channel, row.state, row.text[:40]) for row in (*kept.runs, *kept.talk)]
        assert time.monotonic() < deadline_s, (states, [one.log[-2000:] for one in mortals])
        time.sleep(0.5)
    return kept


def check(kept: Kept) -> None:
    """One agent for each turn that asked for one, and of each one result, also where it failed; it was answered."""
    assert len(kept.runs) > 0
    assert max(Counter(parent_of(run.id) for run in kept.runs).values()) == 1, "a turn started two agents"
    for run in kept.runs:
        results = kept.agents[run.id]
        assert len(results) == 1, (run.state, run.text)
        assert all(row.state in ("done", "interrupted") for row in results)
    assert max(Counter(kept.titles).values()) == 1
    assert max(Counter(kept.jotted).values()) == 1
    assert max(Counter(notice.subject_id for notice in kept.told if notice.kind == "agent").values(), default=0) <= 1


def survive(page: Daemon, mortals: Sequence[Daemon], *, agents: int, seed: int) -> None:
    crowd = Crowd(page, mortals, seed)
    with handing_over() as model, crowd.caller:
        crowd.settle(model)
        for number in crowd.talk(agents, 2, "spawn an agent for part {}"):
            if number % 2:  # four at once are the most
                wait_for_the_end(page, mortals)
        kept = wait_for_the_end(page, mortals)
        assert [one.stop() for one in {page, *mortals}] == [0] * len({page, *mortals})
    check(kept)
    assert made_again(model) == [], "a completed step was made again"
    assert len(kept.runs) == agents
    log.info("%d kills, agents: %s", crowd.kills, Counter(run.state for run in kept.runs))


@pytest.fixture
def dying(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path / "home", allow_second_process=1)
    made.start()
    yield made
    made.close()


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    with private_postgres() as url, Crew(tmp_path, url) as made:
        yield made


def test_an_agent_goes_on_after_a_kill_and_its_result_comes_once(dying: Daemon) -> None:
    survive(dying, [dying], agents=2, seed=3)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_results_of_many_agents_come_once_over_kills(dying: Daemon) -> None:
    survive(dying, [dying], agents=15, seed=4)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.names_its_database("several processes on a server of their own")
def test_results_of_many_agents_come_once_over_kills_of_two_workers(crew: Crew) -> None:
    survive(crew.pages[0], [*crew.workers, *crew.pages], agents=15, seed=5)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_an_agent_that_is_killed_too_often_is_told_as_failed(dying: Daemon) -> None:
    crowd = Crowd(dying, [dying], seed=6)
    with handing_over() as model, crowd.caller:
        crowd.settle(model)
        place = crowd.caller.send("new", f"spawn an agent that tells {DEADLY}")
        until(lambda: 'class="working"' not in crowd.caller.get(f"/c/{place}").text)
        for life in range(1, LIVES + 1):
            until(partial(is_at_work_or_over, dying, model, life), END_S, LOOK_S)
            dying.kill9()
            dying.start()
        kept = wait_for_the_end(dying, [dying])
        until(lambda: any(notice.kind == "agent" for notice in ask(dying, _kept).told), END_S, LOOK_S)
        told = [notice for notice in ask(dying, _kept).told if notice.kind == "agent"]
    (run,) = kept.runs
    assert (run.state, [row.state for row in kept.agents[run.id]]) == ("interrupted", ["done"])
    assert [(notice.subject_id, notice.title) for notice in told] == [(run.id, f"Failed: Tell {DEADLY}")]
