"""A daemon is killed ahead of each of its writes during a whole turn: nothing is lost, nothing done twice or elsewhere.

The turn reads, ticks a task off by its words, adds to a file, asks before a command, and hands work to an agent whose
result comes as a turn of its own. What then stands is what stands after the same turn in a life that was not cut.
"""

import logging
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from sqlalchemy import text

from cortex.agent.refusals import UNKNOWN
from cortex.app import Cortex
from cortex.base import messages
from cortex.base.messages import Text, ToolCall, ToolResult
from cortex.base.turn import LOOP_ENDS
from cortex.base.user import User
from cortex.services.chat.transcript import Transcript
from cortex.services.chat.transcript_views import AgentCard, CallCard, NoticePart, Part, SteerPart, TextPart
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.notices import NoticesRepository
from cortex.storage.tasks import TasksRepository
from tests.children import Child
from tests.databases import rows_of
from tests.e2e.caller import Caller
from tests.e2e.crowd import Found, Story, check_log, check_transcript, look, made_again
from tests.e2e.daemon import Daemon
from tests.e2e.tables import ask
from tests.knife import NEVER, VARIABLE, Knife
from tests.patience import PATIENCE_S
from tests.scripted_server import Asked, Say, ScriptedServer, Use, rule

WORDS = (
    "Show the tasks on my list {0}, tick off the task milk {0}, jot bottle {0} down on my scratchpad, run a command in "
    "the shell that adds bottle {0} to a file, and spawn an agent that puts bread {0} on my list of tasks."
)
FILE = "bottles.txt"
SAID = "All of {0} is done but for what the agent does."  # its fifth and last round: the agent's result comes after it
REPORTED = "The agent has put bread {0} on the list."
ONCE = {"scratch_append", "shell_exec"}  # their tools are not idempotent: cut in between, nobody knows
LOOK_S = 0.1
PARTS = 16
AGAIN = 17  # writes of a life that takes a turn up, up to which it is killed
TURNS = "SELECT channel, state FROM turns WHERE conversation_id = :it"
ASKED = """SELECT approvals.id FROM approvals JOIN turns ON turns.id = turn_id
    WHERE conversation_id = :it AND approvals.state = 'asked'"""
FRESH = re.compile(r"\(id [^)]*\)|\b[0-9a-z]{26,32}\b|\d+")  # ids, with how the row is just then, and numbers

log = logging.getLogger(__name__)
Lines = list[tuple[str, ...]]


@contextmanager
def obedient_model() -> Iterator[ScriptedServer]:
    """A model that makes the calls one after the other, whatever came of them."""

    def which(asked: Asked) -> str:
        return str(re.findall(r"n\d{3}", asked.user)[-1])

    def use(asked: Asked, tool: str, **arguments: str) -> Use:
        return Use(tool, {name: said.format(which(asked)) for name, said in arguments.items()})

    rules = (
        rule("What you had handed over is done", lambda asked: REPORTED.format(which(asked))),
        rule("^Put bread", lambda asked: use(asked, "task_create", title="bread {}"), "It is there."),
        rule(
            "^Show the tasks",
            lambda asked: Say(
                calls=(use(asked, "task_list", list_name="{}"), use(asked, "task_complete", task="milk {}"))
            ),
            lambda asked: use(asked, "scratch_append", text="bottle {}"),
            lambda asked: use(asked, "shell_exec", command=f"echo bottle {{}} >> {FILE}"),
            lambda asked: use(asked, "spawn_agent", task="Put bread {} on my list of tasks."),
            lambda asked: SAID.format(which(asked)),
        ),
    )
    with ScriptedServer(*rules) as server:
        yield server
        assert server.problems == []


class Mortal(Child):
    """A child with a knife in it."""

    def __init__(self, words: Sequence[str], *, env: Mapping[str, str], cwd: Path, **more: Any) -> None:
        super().__init__(words, env={**env, VARIABLE: str(knife_of(cwd))}, cwd=cwd, **more)


def knife_of(home: Path) -> Path:
    """The file of the knife of the daemon in this home."""
    return home.with_name("knife")


@dataclass
class Sweep:
    """A person who has the same turn done again and again, by a daemon that dies at another place each time."""

    words: ClassVar[str] = WORDS
    daemon: Daemon
    person: Caller
    knife: Knife
    deaths: int = 0
    _coming: deque[int] = field(default_factory=deque)

    def turn(self, name: str, *dies_at: int) -> str:
        """One whole turn about things of this name; its conversation. dies_at: a write for each life to die at."""
        self.prepare(name)
        self._coming.extend(dies_at)
        self._arm()
        try:
            place = self._send(self.words.format(name))
            self._wait_for_end(place)
        finally:
            self._coming.clear()
            is_dying = self.knife.disarm()
        if is_dying:  # after the turn, of what comes behind it
            self._rise()
            self.knife.disarm()
        return place

    def prepare(self, name: str) -> None:
        """Have there what a turn is about."""
        for title in ("milk", "oat milk"):
            self.person.post("/tasks", title=f"{title} {name}", list_name=name)

    def is_over(self, turns: list[tuple[str, ...]]) -> bool:
        """Tell whether the agent's result came and nothing is at work."""
        return any(channel == "result" for channel, _ in turns) and all(state in LOOP_ENDS for _, state in turns)

    def _arm(self) -> None:
        self.knife.arm(self._coming.popleft() if self._coming else NEVER)

    def _send(self, words: str) -> str:
        """Send it until it stands there: one that nobody acknowledged may stand there all the same."""
        while True:
            try:
                return self.person.send("new", words, mode="all")
            except httpx.TransportError:
                self._rise()
            if found := self._rows("SELECT conversation_id FROM turns WHERE text = :it", words):
                return str(found[0][0])

    def _wait_for_end(self, place: str) -> None:
        """Until what the agent found is answered, whatever dies meanwhile; all questions are answered yes."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not self.is_over(turns := self._rows(TURNS, place)):
            assert time.monotonic() < deadline_s, (turns, self.daemon.log[-2000:])
            try:
                for (approval,) in self._rows(ASKED, place):
                    self.person.post(f"/approvals/{approval}", choice="once")
            except httpx.TransportError:
                self._rise()
            if self.daemon.has_ended:
                self._rise()
            time.sleep(LOOK_S)

    def _rows(self, statement: str, it: str) -> list[tuple[str, ...]]:
        with rows_of(self.daemon.home) as rows:
            return [tuple(row) for row in rows.execute(text(statement), {"it": it})]

    def _rise(self) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not self.daemon.has_ended:
            assert time.monotonic() < deadline_s, "nobody answers, and the daemon is there"
            time.sleep(0.01)
        self.deaths += 1
        dies_again = bool(self._coming)
        self._arm()
        try:
            self.daemon.start()
        except AssertionError:  # before it was ready
            if not dies_again:
                raise
            self._rise()


@pytest.fixture
def sweep(daemon: Daemon) -> Iterator[tuple[Sweep, ScriptedServer]]:
    daemon.starts = Mortal
    with obedient_model() as model, Caller(daemon) as ada:
        daemon.start()
        ada.set_up()
        form = {"provider": "openai", "model": "s", "base_url": model.base_url, "api_key": model.api_key}
        ada.post("/models", name="obedient", streams="on", tools="on", **form)
        yield Sweep(daemon=daemon, person=ada, knife=Knife(knife_of(daemon.home))), model


# --- what stands ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """All that there is, once the daemon has ended. `agents`: the conversations of agents, by where they began."""

    found: Found
    agents: dict[str, list[str]]
    tasks: Counter[tuple[str, bool]]
    lines: Counter[str]
    notices: Counter[tuple[str, str]]


def kept(daemon: Daemon, places: Sequence[str]) -> Kept:
    """Ask for it."""

    async def beside(cortex: Cortex, ada: User) -> Kept:
        opened = cortex.runtime.db
        conversations = opened.repository(ConversationsRepository, ada.id)
        notices = await opened.repository(NoticesRepository, ada.id).list(limit=1000)
        file = daemon.home / ada.id / "files" / FILE
        return Kept(
            found=Found(stories={}, titles=[], jotted=[]),
            agents={place: [one.id for one in await conversations.agents_of(place)] for place in places},
            tasks=Counter((row.title, row.is_done) for row in await opened.repository(TasksRepository, ada.id).list()),
            lines=Counter(file.read_text("utf-8").splitlines()),
            notices=Counter((row.kind, row.subject_id) for row in notices),
        )

    made = ask(daemon, beside)
    return replace(made, found=look(daemon, [*places, *(one for ids in made.agents.values() for one in ids)]))


def shown(story: Story) -> Lines:
    """The page, line by line."""
    lines: Lines = []
    for turn in Transcript(story.events).turns:
        lines += [("message", turn.text), *(line for part in turn.parts for line in _shown(part))]
        lines.append(("ended", turn.ending.state if turn.ending else turn.state))
    return lines


def _shown(part: Part) -> Lines:
    match part:
        case SteerPart():
            return [("message", part.text)]
        case TextPart():
            return [("text", part.text, "partial" if part.is_partial else "whole")]
        case CallCard():
            return [("call", part.name, part.arguments, part.state, part.text)]
        case AgentCard():
            return [("agent", part.task, part.state, part.error)]
        case NoticePart():
            return []  # that it went on after a restart
        case _:
            return [("other", repr(part))]


def read(story: Story) -> Lines:
    """What a model reads of it."""
    said = [message for of_turn in story.messages.values() for message in of_turn]
    return [_read(message.speaker, part) for message in said for part in message.parts]


def _read(speaker: str, part: messages.Part) -> tuple[str, ...]:
    match part:
        case Text():
            return (speaker, part.text)
        case ToolCall():
            return ("call", part.name, part.arguments)
        case ToolResult():
            return ("result", part.name, part.text)
        case _:
            return ("other", repr(part))


def alike(lines: Lines, name: str) -> Lines:
    """Without what differs from life to life."""
    return [tuple(FRESH.sub("#", word.replace(name, "N")) for word in line) for line in lines]


def known(lines: Lines, whole: Lines) -> Lines:
    """With the result that a call of unknown outcome has in a whole life, in the place of what is said of it."""
    results = {line[:2]: line for line in whole}
    return [results[line[:2]] if UNKNOWN in line else line for line in lines]


def check(kept: Kept, places: Mapping[str, str]) -> Counter[str]:
    """Each turn against the first one, which nobody cut; how many calls are of unknown outcome, by their tool."""
    stories, unknown = kept.found.stories, Counter[str]()
    first, uncut = next(iter(places.items()))
    for name, place in places.items():
        for view in (shown, read):
            lines = alike(view(stories[place]), name)
            whole = alike(view(stories[uncut]), first)
            assert known(lines, whole) == whole, name
        (agent,) = kept.agents[place]
        for one in (place, agent):
            check_log(stories[one])
            for turn in stories[one].turns:
                assert turn.state == "done", (name, turn)
                check_transcript(turn, stories[one].messages[turn.taken_by or turn.id])
        cut = {card[1] for card in shown(stories[place]) if card[0] == "call" and card[3] == "unknown"}
        assert cut <= ONCE, (name, cut)
        unknown.update(cut)
        check_effects(kept, name, cut)
    assert kept.notices.most_common(1)[0][1] == 1
    return unknown


def check_effects(kept: Kept, name: str, cut: set[str]) -> None:
    """Each once, on the row that was meant; of a call of unknown outcome once or not at all."""
    tasks = {
        title: (kept.tasks[f"{title} {name}", False], kept.tasks[f"{title} {name}", True])
        for title in ("milk", "oat milk", "bread")
    }
    assert tasks == {"milk": (0, 1), "oat milk": (1, 0), "bread": (1, 0)}, name
    made = {"scratch_append": kept.found.jotted.count(f"bottle {name}"), "shell_exec": kept.lines[f"bottle {name}"]}
    assert all(times == 1 or (times == 0 and tool in cut) for tool, times in made.items()), (name, made)


def survive(sweep: Sweep, model: ScriptedServer, moments: Callable[[int], Sequence[tuple[int, ...]]]) -> None:
    """Die at these moments of so many, in one turn after the other."""
    places = {"n000": sweep.turn("n000")}
    writes = sweep.knife.writes
    for dies_at in moments(writes):
        name = f"n{dies_at[0]:03}"
        places[name] = sweep.turn(name, *dies_at)
    assert sweep.daemon.stop() == 0
    unknown = check(kept(sweep.daemon, list(places.values())), places)
    assert made_again(model) == [], "a completed step was made again"
    log.info("%d writes, %d kills; of unknown outcome: %s", writes, sweep.deaths, dict(unknown))
    assert sum(unknown.values()) <= sweep.deaths
    assert sweep.deaths >= len(places) - 2  # the last of the moments may lie behind the end


def test_a_turn_killed_ahead_of_a_write_is_whole_in_the_end(sweep: tuple[Sweep, ScriptedServer]) -> None:
    survive(*sweep, lambda writes: [(at,) for at in range(5, writes, writes // 5)])


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_turn_killed_ahead_of_any_write_is_whole_in_the_end(sweep: tuple[Sweep, ScriptedServer], part: int) -> None:
    survive(*sweep, lambda writes: [(at,) for at in range(1 + part, writes + 1, PARTS)])


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_turn_killed_once_more_while_it_is_taken_up_is_whole_in_the_end(sweep: tuple[Sweep, ScriptedServer]) -> None:
    survive(*sweep, lambda writes: [(at, 1 + at % AGAIN) for at in range(3, writes + 1, 5)])
