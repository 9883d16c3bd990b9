"""What can be counted of Cortex without a clock: modules, statements, commits, bytes, threads, packages.

The real daemon, started from nothing on a home where two people live, with a witness inside (`watched.py`). A
statement counts where its transaction names the person or one of the turns: what the daemon looks for by itself, at
its own times, does not.
"""

import json
import os
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # ships no types

from tests.bench.figure import Unmeasured
from tests.bench.lived import HELLO, MILK, live, model_server
from tests.bench.processes import DATABASES, check_streamed, number_of, opened, patiently, running, until_ended
from tests.bench.watched import FILE, LOOK
from tests.children import ROOT, Child, Program
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon

TURNS_BEFORE, ASKED = 8, 5
KEEPER, AT_REST, PAGES = "ToolReadiness.keep", "ToolReadiness._until_changed", "_load_pages"
ENDS = {"COMMIT", "ROLLBACK", "END"}
Facts = dict[str, Any]


class Watched(Program):
    """The daemon with the witness; it tells into a file beside its home."""

    module = "tests.bench.watched"

    def __init__(self, words: Sequence[str], *, env: Mapping[str, str], cwd: Path, output: Path, **how: Any) -> None:
        super().__init__(words, env={**env, FILE: str(told_by(cwd))}, cwd=cwd, output=output, **how)


def told_by(home: Path) -> Path:
    """Where the witness of this home's daemon tells."""
    return home.parent / "watched.jsonl"


class Witness:
    """What a watched daemon tells: `facts` is all of it so far, in order."""

    def __init__(self, daemon: Daemon) -> None:
        self.facts: list[Facts] = []
        self.home = daemon.home
        self._daemon = daemon
        self._read_to = 0

    def listen(self) -> int:
        """Take in what came since; how many facts there are now."""
        with told_by(self._daemon.home).open("rb") as file:
            file.seek(self._read_to)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read_to += len(whole)
        self.facts += map(json.loads, whole.splitlines())
        return len(self.facts)

    def look(self) -> Facts:
        """What is loaded, how many threads there are, and where the daemon waits, now."""
        before = self.listen()
        os.kill(self._daemon.pid, LOOK)
        for _ in patiently("the daemon does not answer to a look"):
            self.listen()
            for fact in self.facts[before:]:
                if "look" in fact:
                    return {**fact["look"], "threads": psutil.Process(self._daemon.pid).num_threads()}
        raise AssertionError

    @property
    def ready(self) -> list[str]:
        """The modules that were loaded when it said that it is ready."""
        self.listen()
        for fact in self.facts:
            if "ready" in fact:
                return list(fact["ready"])
        raise Unmeasured("the daemon did not say in the witness's words that it is ready")

    def until_warm(self) -> Facts:
        """Look again and again until what is made ready behind a start is ready."""
        for _ in patiently("the tools of the daemon do not get ready"):
            found = self.look()
            waiting = [chain for chain in found["tasks"] if KEEPER in chain]
            if not waiting:
                raise Unmeasured(f"no task is {KEEPER} any more: say here what makes the first message fast")
            if AT_REST in waiting[0] and not any(PAGES in chain for chain in found["tasks"]):
                return found
        raise AssertionError


def counted(folder: Path) -> dict[str, int]:
    """Every count by its name; Unmeasured where one could not be taken. About 20 s of a quiet core."""
    home = folder / "home"
    with model_server() as model:
        people = live(home, model, TURNS_BEFORE, starts=Child)
        with running(home, starts=Watched) as daemon, Caller(daemon) as ada:
            ada.become(people.admin)
            witness = Witness(daemon)
            warm = witness.until_warm()
            chat = ada.send("new", HELLO)
            until_ended(home)
            first, calls = witness.look(), len(model.log)
            hello = _asked(ada, witness, chat, HELLO)
            calls = len(model.log) - calls
            tool_turn = _asked(ada, witness, chat, MILK)
            last = witness.look()
            ready = witness.ready
        check_streamed(model)
    return {
        "modules, to ready": len(ready),
        "modules, behind the warm-up": len(warm["modules"]),
        "modules, first hello": len(set(first["modules"]) - set(warm["modules"])),
        "modules, later turns": len(set(last["modules"]) - set(first["modules"])),
        "threads, behind the warm-up": warm["threads"],
        "threads, behind ten turns": last["threads"],
        **{f"hello, {name}": count for name, count in hello.items()},
        "hello, calls of the model": calls // ASKED,
        **{f"turn with one tool, {name}": count for name, count in tool_turn.items()},
        "packages": packages(),
    }


def packages() -> int:
    """How many an installation brings."""
    found = re.findall(r"^[\w.-]+==", (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise Unmeasured("requirements/run.txt names no package")
    return len(found)


def _asked(person: Caller, witness: Witness, chat: str, text: str) -> dict[str, int]:
    """The median of what each of some turns with this message does, and what one of them leaves in the databases."""
    home = witness.home
    stored, windows = _stored_bytes(home), list[list[Facts]]()
    for _ in range(ASKED):
        begin = witness.listen()
        person.send(chat, text)
        until_ended(home)
        witness.look()  # what it says comes behind everything that the turn did
        windows.append(witness.facts[begin : witness.listen()])
    stored = _stored_bytes(home) - stored
    names = _names(home, chat)
    each = [counts_of(window, names) for window in windows]
    found = {name: round(statistics.median(one[name] for one in each)) for name in each[0]}
    if not found["statements"] or stored <= 0:
        raise Unmeasured(f"a turn with {text!r} left nothing: {found}, {stored} bytes")
    return {**found, "bytes stored": stored // ASKED}


def counts_of(facts: Sequence[Facts], names: Sequence[str]) -> dict[str, int]:
    """Return what was asked of the databases in the transactions that name one of these, and of all files."""
    mine = [one for one in _transactions(facts) if any(name in statement for statement in one for name in names)]
    statements = [statement for one in mine for statement in one]
    ended = sum(statement in ENDS for statement in statements)
    begun = sum(statement.startswith("BEGIN") for statement in statements)
    return {
        "statements": len(statements) - ended - begun,
        "transactions": ended,
        "files opened": sum("opened" in fact for fact in facts),
    }


def _transactions(facts: Sequence[Facts]) -> Iterator[list[str]]:
    """The statements of each, from BEGIN to its end; what stands outside of any is one of its own.

    What a trigger does is told as a comment, and behind it the statement that set it off once more.
    """
    is_open: dict[int, list[str]] = {}
    last: dict[int, str] = {}
    for fact in facts:
        statement, number = fact.get("sql", "--"), fact.get("connection", 0)
        if statement.startswith("--") or last.get(number) == statement:
            continue
        last[number] = statement
        if statement.startswith("BEGIN"):
            is_open[number] = []
        is_open.setdefault(number, []).append(statement)
        if statement in ENDS or not is_open[number][0].startswith("BEGIN"):
            yield is_open.pop(number)
    yield from is_open.values()


def _names(home: Path, chat: str) -> list[str]:
    """By what statements are told to be of this chat: its id, its turns and its person."""
    with closing(opened(home / DATABASES[0])) as rows:
        found = rows.execute("SELECT id, owner_id FROM turns WHERE conversation_id = ?", (chat,)).fetchall()
    if not found:
        raise Unmeasured(f"no turn of {chat} is stored")
    return sorted({chat, *(name for row in found for name in row)})


def _stored_bytes(home: Path) -> int:
    """What rows and indexes hold, without the room that pages keep free."""
    return sum(number_of(home / name, "SELECT coalesce(sum(payload), 0) FROM dbstat") for name in DATABASES)
