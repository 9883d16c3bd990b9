"""A home where people live: two of them, a model, and turns of the past, made by the daemon itself and then copied."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.bench.processes import add_model, running, until_ended
from tests.children import Child, Program
from tests.e2e.caller import Caller
from tests.scripted_server import Asked, ScriptedServer, Use, rule

TURNS = 200
TURNS_A_CHAT = 20
TOOL_EVERY = 4  # one in so many uses a tool
NEVER = 1 << 30
HELLO, MILK = "hello", "add milk to my shopping list"
ANSWER, ADDED = "Hello. What can I do for you today?", "It is on the list."
MILK_ADDED = Use("task_create", {"title": "milk"})


def model_server(*others: Use) -> ScriptedServer:
    """The model that all of them speak to, which calls a tool where milk is wanted and any tool is offered.

    `others`: what it calls instead where that is offered, for programs with other tools.
    """

    def add(asked: Asked) -> str | Use:
        if not asked.tools:
            return ADDED
        return next((use for use in others if use.tool in asked.tools), MILK_ADDED)

    # Without a cache of prefixes: to look for them in hundreds of requests takes longer than the answers.
    return ScriptedServer(rule("milk", add, ADDED), rule(".", ANSWER), cache_minimum_tokens=NEVER)


@dataclass(frozen=True, slots=True)
class Lived:
    """A home that is at rest, with the logins of its two people."""

    home: Path
    admin: str
    member: str

    def copy(self, to: Path) -> Path:
        """The same home once more, to be changed."""
        shutil.copytree(self.home, to, symlinks=True)
        return to


def live(home: Path, model: ScriptedServer, turns: int = TURNS, *, starts: type[Child | Program] = Program) -> Lived:
    """Make it there: every second chat is the member's; the model keeps its address. `starts`: how the daemon does."""
    with running(home, starts=starts) as daemon, Caller(daemon) as ada:
        ada.set_up()
        add_model(ada, model)
        with ada.invite("Ben") as ben:
            for chat in range(0, turns, TURNS_A_CHAT):
                person = ben if chat // TURNS_A_CHAT % 2 else ada
                _talk(home, person, min(TURNS_A_CHAT, turns - chat))
            return Lived(home, ada.token, ben.token)


def _talk(home: Path, person: Caller, turns: int) -> None:
    """A chat of so many turns, one after the other."""
    chat = "new"
    for number in range(turns):
        chat = person.send(chat, MILK if number % TOOL_EVERY == TOOL_EVERY - 1 else f"{HELLO} {number}")
        until_ended(home)
