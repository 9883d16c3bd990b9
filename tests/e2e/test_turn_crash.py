"""The daemon is killed at random while turns run: every turn ends, no message is lost, no write is made twice."""

import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from cortex.app import Cortex
from cortex.base.events import Event
from cortex.base.messages import Message, ToolResult
from cortex.base.settings import load_settings
from cortex.base.turn import LOOP_ENDS
from cortex.services.transcript import Transcript
from cortex.services.transcript_views import TextPart
from cortex.storage.messages import Messages
from cortex.storage.tasks import Tasks
from cortex.storage.turns import TurnRow, Turns
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.postgres import private_postgres

DELAY_MS = 8
END_S = 90.0
EVENTS_OF_A_TURN = 14
PATIENCE_S = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What stands in the tables about one conversation."""

    turns: list[TurnRow]
    events: list[Event]
    messages: dict[str, list[Message]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What stands in the tables when all is over."""

    stories: dict[str, Story]
    titles: list[str]


@pytest.fixture
def postgres() -> Iterator[str]:
    with private_postgres() as url:
        yield url


class Crowd:
    """Somebody who sends messages whatever happens to the daemon, and remembers what was acknowledged."""

    def __init__(self, daemon: Daemon, seed: int) -> None:
        self.daemon = daemon
        self.chance = random.Random(seed)  # noqa: S311 - moments of kills, not secrets
        self.caller = Caller(daemon)
        self.acknowledged: dict[str, list[str]] = {}

    def talk(self, turns: int, conversations: int) -> None:
        """Send `turns` messages into `conversations` by turns; after each, kill the daemon at any point of its work."""
        self.daemon.start()
        self.caller.set_up()
        places = ["new"] * conversations
        for number in range(turns):
            at = number % conversations
            places[at] = self._send(places[at], f"add bottle {number} to my shopping list")
            self.caller.watch(places[at], self.chance.randint(0, EVENTS_OF_A_TURN), PATIENCE_S)
            time.sleep(self.chance.uniform(0, 0.02))
            self.daemon.kill9()
            self.daemon.start()

    def wait_for_the_end(self) -> None:
        """Until every conversation's page shows no answer at work."""
        deadline_s = time.monotonic() + END_S
        for place in self.acknowledged:
            while re.search('class="(?:working|queued)"', page := self.caller.get(f"/c/{place}").text):
                assert time.monotonic() < deadline_s, f"a turn never ended:\n{page[-1500:]}\n{self.daemon.log[-3000:]}"
                time.sleep(0.1)

    def _send(self, place: str, text: str) -> str:
        """Send until it is acknowledged. A message whose answer got lost may stand there without our knowing."""
        while True:
            try:
                found = self.caller.send(place, text)
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            self.acknowledged.setdefault(found, []).append(text)
            return found


def look(daemon: Daemon, url: str, conversations: list[str]) -> Found:
    """Read the tables of an ended daemon through the house's own doors."""

    async def found() -> Found:
        settings = load_settings(None, home=daemon.home, database_url=url)
        async with Cortex.at_rest(settings) as cortex:
            ada = (await cortex.accounts.users())[0]
            opened = cortex.house.db
            stories = {}
            for conversation in conversations:
                turns = list(await opened.open(Turns, ada.id).list(conversation))
                page = await cortex.chat.log(ada, conversation, turns=1000)
                kept = {
                    turn.id: [row.message for row in await opened.open(Messages, ada.id).of_turn(turn.id)]
                    for turn in turns
                }
                stories[conversation] = Story(turns=turns, events=list(page.events), messages=kept)
            return Found(stories=stories, titles=[task.title for task in await opened.open(Tasks, ada.id).list()])

    return asyncio.run(found())


def check(crowd: Crowd, found: Found) -> None:
    for conversation, texts in crowd.acknowledged.items():
        story = found.stories[conversation]
        said = Counter(turn.text for turn in story.turns)
        assert all(said[text] >= 1 for text in texts), "an acknowledged message is lost"
        assert all(turn.state in LOOP_ENDS for turn in story.turns), [turn.state for turn in story.turns]
        _check_log(story)
        for turn in story.turns:
            _check_transcript(turn, story.messages[turn.taken_by or turn.id])
    _check_effects(found)


def _check_effects(found: Found) -> None:
    """No task is written twice; each that was told is there; each that is there was told, or its outcome is unknown.

    Unknown: its turn was broken off for good while the call was made, and the page says so of it.
    """
    events = [event for story in found.stories.values() for event in story.events]
    ended = {event.payload["call"]: event.payload for event in events if event.kind == "tool.result"}
    told = [_added(result["text"]) for result in ended.values() if result["state"] == "ok"]
    unknown = [
        json.loads(event.payload["arguments"])["title"]
        for event in events
        if event.kind == "tool.call" and ended.get(event.payload["call"], {"state": "unknown"})["state"] == "unknown"
    ]
    assert max(Counter(found.titles).values()) == 1
    assert set(told) <= set(found.titles)
    assert set(found.titles) <= {*told, *unknown}
    broken_off = {turn.id for story in found.stories.values() for turn in story.turns if turn.state == "interrupted"}
    assert {e.turn_id for e in events if e.kind == "tool.call" and e.payload["call"] not in ended} <= broken_off
    for story in found.stories.values():
        acted = {event.turn_id for event in story.events if event.kind == "tool.result"}
        own = [turn for turn in story.turns if turn.state == "done" and not turn.taken_by]
        assert [turn.text for turn in own if turn.id not in acted] == [], "a turn says it is done and did nothing"


def _added(text: str) -> str:
    """The title in what task_create says."""
    return text.removeprefix("Added: ").partition(" (id ")[0]


def _check_log(story: Story) -> None:
    """The log has no gap; each turn's beginning, end, calls and finished parts stand in it once."""
    assert [event.seq for event in story.events] == list(range(1, len(story.events) + 1))
    once = Counter(
        (event.kind, event.turn_id, event.payload.get("call", ""))
        for event in story.events
        if event.kind in ("message", "turn.start", "turn.end", "tool.call", "tool.result")
    )
    assert [key for key, times in once.items() if times > 1] == []
    parts = Counter(
        (event.payload["part"], event.payload["attempt"])
        for event in story.events
        if event.kind == "part.end" and event.payload["text"]
    )
    assert [key for key, times in parts.items() if times > 1] == []
    for turn in Transcript(story.events).turns:
        words = [part.text for part in turn.parts if isinstance(part, TextPart)]
        assert len(words) == len(set(words)), f"an answer is shown twice: {words}"
        assert turn.ending is not None


def _check_transcript(turn: TurnRow, messages: list[Message]) -> None:
    """What the next request will be made of: whole, in order, every call answered."""
    assert messages, f"{turn.id} ({turn.state}) has no transcript"
    assert messages[0].speaker == "user"
    assert any(turn.text in message.text for message in messages if message.speaker == "user")
    for message, following in zip(messages, [*messages[1:], None], strict=True):
        if message.calls:
            assert following is not None
            answered = [part.call_id for part in following.parts if isinstance(part, ToolResult)]
            assert answered == [call.id for call in message.calls]


def survive(daemon: Daemon, *, turns: int, conversations: int, seed: int, url: str = "") -> None:
    crowd = Crowd(daemon, seed)
    with crowd.caller:
        crowd.talk(turns, conversations)
        crowd.wait_for_the_end()
    assert daemon.stop() == 0
    check(crowd, look(daemon, url, list(crowd.acknowledged)))


@pytest.fixture
def dying(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path / "home", delay_ms=DELAY_MS)
    yield made
    made.close()


def test_turns_survive_kills_on_sqlite(dying: Daemon) -> None:
    survive(dying, turns=6, conversations=2, seed=5)


@pytest.mark.full
@pytest.mark.parametrize("seed", [11, 12])
def test_twenty_turns_survive_kills_on_sqlite(dying: Daemon, seed: int) -> None:
    survive(dying, turns=20, conversations=4, seed=seed)


@pytest.mark.full
def test_twenty_turns_survive_kills_on_postgres(dying: Daemon, postgres: str) -> None:
    dying.set(database_url=postgres)
    survive(dying, turns=20, conversations=4, seed=21, url=postgres)
