"""Somebody who talks while Cortex is killed at random, a model that keeps what it was asked, and what then stands."""

import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from cortex.app import Cortex
from cortex.base.events import Event
from cortex.base.messages import Message, ToolResult
from cortex.base.note_names import SCRATCHPAD
from cortex.base.user import User
from cortex.services.chat.transcript import Transcript
from cortex.services.chat.transcript_views import TextPart
from cortex.storage.messages import MessagesRepository
from cortex.storage.tasks import TasksRepository
from cortex.storage.turns import TurnRow, TurnsRepository
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.e2e.tables import ask
from tests.scripted_server import Asked, ScriptedServer, Use, rule

BOTTLES = "add bottle {} to my shopping list and jot it down"
END_S = 400.0
EVENTS_OF_A_TURN = 20
PATIENCE_S = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What stands in the tables about one conversation."""

    turns: list[TurnRow]
    events: list[Event]
    messages: dict[str, list[Message]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What stands when all is over: the conversations, the tasks' titles, the scratchpad's lines."""

    stories: dict[str, Story]
    titles: list[str]
    jotted: list[str]


@contextmanager
def shopping_model() -> Iterator[ScriptedServer]:
    """A model that writes each bottle into a table, then into a file, then says so, a few words at a time."""

    def bottle(asked: Asked) -> str:
        return str(re.findall(r"bottle \d+", asked.user)[-1])

    bought = rule(
        "bottle",
        lambda asked: Use("task_create", {"title": bottle(asked)}),
        lambda asked: Use("scratch_append", {"text": bottle(asked)}),
        lambda asked: f"It is done: {bottle(asked)} stands on the list and on the scratchpad.",
    )
    with ScriptedServer(bought) as server:
        server.delay_s = 0.008
        yield server
        assert server.problems == []


class Crowd:
    """Sends messages whatever happens to the processes, and remembers what was acknowledged."""

    def __init__(self, page: Daemon, mortals: Sequence[Daemon], seed: int) -> None:
        """`mortals` are killed and come back; the page may be one of them."""
        self.page = page
        self.chance = random.Random(seed)  # noqa: S311 - moments of kills, not secrets
        self.caller = Caller(page)
        self.acknowledged: dict[str, list[str]] = {}
        self.kills = 0
        self._mortals = mortals

    def settle(self, model: ScriptedServer) -> None:
        """Be the admin, who talks to this model."""
        self.caller.set_up()
        form = {"provider": "openai", "model": "s", "base_url": model.base_url, "api_key": model.api_key}
        self.caller.post("/models", name="shopper", streams="on", tools="on", context_tokens="128000", **form)

    def talk(self, turns: int, conversations: int, words: str = BOTTLES, kills: int | None = None) -> Iterator[int]:
        """Send so many messages into the conversations by turns; after each, kill at any point of the work.

        The number of each, when all are back. kills: after so many of them only, chosen by chance.
        """
        places = ["new"] * conversations
        deadly = set(self.chance.sample(range(turns), turns if kills is None else kills))
        for number in range(turns):
            at = number % conversations
            places[at] = self._send(places[at], words.format(number))
            self.caller.watch(places[at], self.chance.randint(0, EVENTS_OF_A_TURN), PATIENCE_S)
            time.sleep(self.chance.uniform(0, 0.05))
            if number in deadly:
                self._strike()
            yield number

    def wait_for_the_end(self) -> None:
        """Until every conversation's page shows no answer at work."""
        deadline_s = time.monotonic() + END_S
        for place in self.acknowledged:
            while re.search('class="(?:working|queued)"', page := self.caller.get(f"/c/{place}").text):
                logs = "\n".join(one.log[-2000:] for one in self._mortals)
                assert time.monotonic() < deadline_s, f"a turn never ended:\n{page[-1500:]}\n{logs}"
                time.sleep(0.1)

    def _strike(self) -> None:
        """Kill one, and at times a second before the first is back."""
        often = 2 if len(self._mortals) > 1 and self.chance.random() < 0.25 else 1
        fallen = self.chance.sample(self._mortals, often)
        for one in fallen:
            one.kill9()
        for one in fallen:
            one.start()
        self.kills += often

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


def look(page: Daemon, conversations: Sequence[str]) -> Found:
    """What is kept, when all processes have ended."""

    async def found(cortex: Cortex, ada: User) -> Found:
        opened = cortex.runtime.db
        stories = {}
        for conversation in conversations:
            turns = list(await opened.repository(TurnsRepository, ada.id).list(conversation))
            log = await cortex.chat.log(ada, conversation, turns=1000)
            kept = {
                turn.id: [row.message for row in await opened.repository(MessagesRepository, ada.id).of_turn(turn.id)]
                for turn in turns
            }
            stories[conversation] = Story(turns=turns, events=list(log.events), messages=kept)
        titles = [task.title for task in await opened.repository(TasksRepository, ada.id).list()]
        pad = page.home / ada.id / SCRATCHPAD
        return Found(stories=stories, titles=titles, jotted=pad.read_text("utf-8").split("\n") if pad.exists() else [])

    return ask(page, found)


def made_again(model: ScriptedServer) -> list[int]:
    """The requests that ask anew for an answer on which an earlier request had built: a completed step, repeated."""
    asked: list[list[Any]] = [seen.body["messages"] for seen in model.log]
    return [
        number
        for number, messages in enumerate(asked)
        if any(len(messages) < len(one) and one[: len(messages)] == messages for one in asked[:number])
    ]


def check_log(story: Story) -> None:
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


def check_transcript(turn: TurnRow, messages: list[Message]) -> None:
    """What the next request will be made of: whole, in order, every call answered."""
    assert messages, f"{turn.id} ({turn.state}) has no transcript"
    assert messages[0].speaker == "user"
    assert any(turn.text in message.text for message in messages if message.speaker == "user")
    for message, following in zip(messages, [*messages[1:], None], strict=True):
        if message.calls:
            assert following is not None
            answered = [part.call_id for part in following.parts if isinstance(part, ToolResult)]
            assert answered == [call.id for call in message.calls]
