"""Processes are killed at random while turns run: every turn ends, no message is lost, nothing is done twice."""

import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from cortex.base.turn import LOOP_ENDS
from cortex.engine.lives import LIVES_MAX
from cortex.services.turns.queue import LOST
from tests.e2e.crew import Crew, until
from tests.e2e.crowd import BOTTLES, Crowd, Found, check_log, check_transcript, look, made_again, shopping_model
from tests.e2e.daemon import Daemon
from tests.postgres import private_postgres
from tests.scripted_server import rule

EFFECTS = {"task_create": "title", "scratch_append": "text"}  # the second adds to a file: it is not idempotent

log = logging.getLogger(__name__)


def check(crowd: Crowd, found: Found) -> None:
    for conversation, texts in crowd.acknowledged.items():
        story = found.stories[conversation]
        said = Counter(turn.text for turn in story.turns)
        assert all(said[text] >= 1 for text in texts), "an acknowledged message is lost"
        assert all(turn.state in LOOP_ENDS for turn in story.turns), [turn.state for turn in story.turns]
        check_log(story)
        for turn in story.turns:
            check_transcript(turn, story.messages[turn.taken_by or turn.id])
    _check_effects(found)


def _check_effects(found: Found) -> None:
    """No call acts twice; what was told is there; what is there was told, or its call's outcome is unknown.

    Two calls may write the same: a message whose answer got lost on the way was sent again.

    Unknown: the process died between the effect and its record, or its turn was broken off for good meanwhile; the
    page says so of it.
    """
    events = [event for story in found.stories.values() for event in story.events]
    ended = {event.payload["call"]: event.payload["state"] for event in events if event.kind == "tool.result"}
    for tool, made in (("task_create", found.titles), ("scratch_append", found.jotted)):
        called = [event.payload for event in events if event.kind == "tool.call" and event.payload["name"] == tool]
        told = Counter(_thing(call) for call in called if ended.get(call["call"]) == "ok")
        unknown = Counter(_thing(call) for call in called if ended.get(call["call"], "unknown") == "unknown")
        there = Counter(line for line in made if line.strip())
        assert told <= there, f"{tool} says more than it did"
        assert there <= told + unknown, f"{tool} acted twice"
    broken_off = {turn.id for story in found.stories.values() for turn in story.turns if turn.state == "interrupted"}
    assert {e.turn_id for e in events if e.kind == "tool.call" and e.payload["call"] not in ended} <= broken_off
    for story in found.stories.values():
        acted = {event.turn_id for event in story.events if event.kind == "tool.result"}
        own = [turn for turn in story.turns if turn.state == "done" and not turn.taken_by]
        assert [turn.text for turn in own if turn.id not in acted] == [], "a turn says it is done and did nothing"


def _thing(call: dict[str, str]) -> str:
    """What a call writes."""
    return str(json.loads(call["arguments"])[EFFECTS[call["name"]]])


def survive(page: Daemon, mortals: Sequence[Daemon], *, turns: int, conversations: int, seed: int, kills: int) -> None:
    crowd = Crowd(page, mortals, seed)
    with shopping_model() as model, crowd.caller:
        crowd.settle(model)
        assert len(list(crowd.talk(turns, conversations, kills=kills))) == turns
        crowd.wait_for_the_end()
        assert [one.stop() for one in {page, *mortals}] == [0] * len({page, *mortals})
        assert made_again(model) == [], "a completed step was made again"
        found = look(page, list(crowd.acknowledged))
        check(crowd, found)
        ends = {turn.state for story in found.stories.values() for turn in story.turns}
        log.info("%d requests, %d kills, ends: %s", len(model.log), crowd.kills, _ends(found))
        assert ends == {"done"}, "a turn was given up that did nothing but wait or be killed"


def _ends(found: Found) -> dict[str, int]:
    turns = [turn for story in found.stories.values() for turn in story.turns]
    calls = [event for story in found.stories.values() for event in story.events if event.kind == "tool.result"]
    return Counter(turn.state for turn in turns) + Counter(f"call {event.payload['state']}" for event in calls)


@pytest.fixture
def dying(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path / "home")
    made.start()
    yield made
    made.close()


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    with private_postgres() as url, Crew(tmp_path, url) as made:
        yield made


def test_turns_survive_kills(dying: Daemon) -> None:
    survive(dying, [dying], turns=6, conversations=2, seed=5, kills=LIVES_MAX - 1)


def test_a_message_that_ends_its_process_each_time_is_given_up_and_others_go_on(dying: Daemon) -> None:
    crowd = Crowd(dying, [dying], seed=0)
    with shopping_model() as model, crowd.caller:
        model.rules.append(rule("^Tell me", "".join(f"and then it rained on day {day}, " for day in range(2_000))))

        def tales() -> int:
            return sum(seen.body["messages"][-1]["content"].startswith("Tell me") for seen in model.log)

        crowd.settle(model)
        deadly = crowd.caller.send("new", "Tell me a tale without an end.")
        other = crowd.caller.send("new", BOTTLES.format(1))
        for life in range(1, LIVES_MAX + 2):  # the first completed a step: it was not in vain
            until(partial(lambda life: tales() == life, life))
            dying.kill9()
            dying.start()
        assert LOST in crowd.caller.until_idle(deadly)
        assert "It is done: bottle 1" in crowd.caller.until_idle(other)
        assert tales() == LIVES_MAX + 1


@pytest.mark.names_its_database("several processes on a server of their own")
def test_turns_survive_kills_of_two_workers(crew: Crew) -> None:
    survive(crew.pages[0], crew.workers, turns=4, conversations=2, seed=6, kills=4)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [11, 12])
def test_fifty_turns_all_end_well_under_fifteen_kills(dying: Daemon, seed: int) -> None:
    survive(dying, [dying], turns=50, conversations=5, seed=seed, kills=15)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.names_its_database("several processes on a server of their own")
def test_fifty_turns_survive_kills_of_two_workers_and_the_page(crew: Crew) -> None:
    survive(crew.pages[0], [*crew.workers, *crew.pages], turns=50, conversations=5, seed=21, kills=15)
