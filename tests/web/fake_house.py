"""A house in memory for the page's own tests: real log, hub and fold; answers are scripts, no model and no database.

What leaves the page is what the real services are asked for, with the same names and arguments.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cortex.base.clock import Clock, now, ticks_s
from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.events import Event, OpenPart
from cortex.base.settings import Settings, load_settings
from cortex.base.user import User
from cortex.engine.hub import Hub
from cortex.services.accounts.accounts import LoginView
from cortex.services.chat.chat import LogPage, Tick
from cortex.services.chat.composer import Composer
from cortex.services.chat.transcript import Transcript
from cortex.services.notices.notices import NoticeFilter, NoticePage
from cortex.services.roles.preferences import Preferences
from cortex.storage.conversations import Conversation
from tests.web.receipts import receipt

START = datetime(2026, 11, 20, 8, 52, tzinfo=UTC)
BRIAN = User(id="u1", name="brian", rank="admin", time_zone="UTC")
ANNA = User(id="u2", name="anna", rank="member", time_zone="UTC")
TOKENS = {"brian-token": BRIAN, "anna-token": ANNA}


@dataclass(frozen=True)
class Group:
    label: str
    conversations: tuple[Conversation, ...]


@dataclass(frozen=True)
class Hit:
    conversation_id: str
    title: str
    turn_id: str
    snippet: str
    at: datetime


@dataclass
class Book:
    """One conversation: its head and its log."""

    head: Conversation
    owner: User
    events: list[Event] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    tasks: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    answers: dict[str, "asyncio.Future[str]"] = field(default_factory=dict)


class FakeHouse:
    """Has the attributes of the wired Cortex that the pages use."""

    def __init__(self, home: Path, *, words_per_s: float = 200.0) -> None:
        self.settings: Settings = load_settings(None, home=home, port=0)
        self.hub = Hub()
        self.books: dict[str, Book] = {}
        self.deleted: dict[str, Book] = {}
        self.chosen = Preferences()
        self.words_per_s = words_per_s
        self.pause_s = 0.25
        self.is_offline = False
        self.role_mode: Any = "auto"
        self.clock = START
        self.count = 0
        self.follow_s = 300.0
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.accounts = FakeAccounts()
        self.conversations = FakeConversations(self)
        self.chat = FakeChat(self)
        self.approvals = FakeApprovals(self)
        self.undo = FakeUndo(self)
        self.composer = FakeComposer(self)
        self.planning = self.composer
        self.preferences = self
        self.doctor = self
        self.reach = SimpleNamespace(notices=FakeNotices(self.hub))

    async def get(self, user: User) -> Preferences:
        return self.chosen

    async def is_ready(self) -> bool:
        return True

    async def is_well(self) -> bool:
        return True

    async def slips(self, user: User) -> tuple[str, ...]:
        return ()

    def book(self, user: User, conversation_id: str) -> Book:
        book = self.books.get(conversation_id)
        if book is None or book.owner != user:
            raise NotFound("There is no such conversation.")
        return book

    def new_book(self, user: User, role: str, mode: Any, title: str = "", **more: Any) -> Book:
        self.count += 1
        conversation_id = f"{self.count:04d}"
        head = Conversation(
            **{
                **{name: None for name in Conversation.__dataclass_fields__},
                "id": conversation_id,
                "title": title,
                "is_title_auto": True,
                "role": role or "orchestrator",
                "mode": mode,
                "recipe": "",
                "is_pinned": False,
                "created_at": self.clock,
                "updated_at": self.clock,
                "seq": 0,
                "selection_state": {},
                "source": "chat",
                **more,
            }
        )
        book = self.books[conversation_id] = Book(head=head, owner=user)
        return book

    def append(self, book: Book, kind: Any, payload: dict[str, Any], turn_id: str | None = None) -> None:
        seq = len(book.events) + 1
        at = self.clock + timedelta(seconds=seq)
        turn = turn_id or payload.get("turn")
        book.events.append(
            Event(conversation_id=book.head.id, seq=seq, kind=kind, payload=payload, turn_id=turn, at=at)
        )
        book.head = replace(book.head, seq=seq)
        self.hub.ring(book.head.id)

    async def close(self) -> None:
        for book in self.books.values():
            for task in book.tasks.values():
                task.cancel()
            await asyncio.gather(*book.tasks.values(), return_exceptions=True)


class FakeAccounts:
    async def who(self, token: str) -> LoginView | None:
        user = TOKENS.get(token)
        return LoginView(user=user, login_id="l1", is_confirmed=True) if user else None

    async def has_users(self) -> bool:
        return True


@dataclass
class FakeNotices:
    """Nothing is ever told here."""

    hub: Hub
    clock: Clock = now

    async def page(self, user_id: str, wanted: NoticeFilter | None = None, before_id: str = "") -> NoticePage:
        return NoticePage(notices=(), earlier="")

    async def unread(self, user_id: str) -> int:
        return 0

    async def changed(self, user_id: str, since: int, timeout_s: float) -> int:
        return await self.hub.changed(f"notices:{user_id}", since, timeout_s)


@dataclass
class FakeConversations:
    house: FakeHouse

    async def list(self, user: User, query: str = "") -> tuple[Group, ...]:
        mine = [b.head for b in self.house.books.values() if b.owner == user and query.lower() in b.head.title.lower()]
        return (Group("Today", tuple(reversed(mine))),) if mine else ()

    async def get(self, user: User, conversation_id: str) -> Conversation:
        return self.house.book(user, conversation_id).head

    async def new(self, user: User, role: str, mode: Any) -> Conversation:
        return self.house.new_book(user, role, mode).head

    async def rename(self, user: User, conversation_id: str, title: str) -> None:
        book = self.house.book(user, conversation_id)
        if not title.strip():
            raise UserError("A conversation needs a title.")
        book.head = replace(book.head, title=title.strip())
        self.house.append(book, "title", {"title": title.strip()})

    async def set_recipe(self, user: User, conversation_id: str, recipe: str) -> None:
        book = self.house.book(user, conversation_id)
        if recipe == "nonsense":
            raise UserError("There is no recipe 'nonsense'.")
        book.head = replace(book.head, recipe=recipe)

    async def pin(self, user: User, conversation_id: str, on: bool) -> None:
        book = self.house.book(user, conversation_id)
        book.head = replace(book.head, is_pinned=on)

    async def delete(self, user: User, conversation_id: str) -> None:
        self.house.book(user, conversation_id)
        self.house.deleted[conversation_id] = self.house.books.pop(conversation_id)

    async def restore(self, user: User, conversation_id: str) -> None:
        self.house.books[conversation_id] = self.house.deleted.pop(conversation_id)

    async def branch(self, user: User, conversation_id: str, upto_turn: str) -> str:
        old = self.house.book(user, conversation_id)
        new = self.house.new_book(user, old.head.role, old.head.mode, f"{old.head.title} (branch)")
        for event in old.events:
            self.house.append(new, event.kind, event.payload, event.turn_id)
            if event.kind == "turn.end" and event.payload["turn"] == upto_turn:
                break
        return new.head.id

    async def search(self, user: User, query: str) -> tuple[Hit, ...]:
        return tuple(
            Hit(book.head.id, book.head.title, event.payload["turn"], event.payload["text"], event.at)
            for book in self.house.books.values()
            if book.owner == user
            for event in book.events
            if event.kind == "message" and query.lower() in event.payload["text"].lower()
        )

    async def export_markdown(self, user: User, conversation_id: str) -> str:
        return f"# {self.house.book(user, conversation_id).head.title}\n"

    async def export_json(self, user: User, conversation_id: str) -> str:
        return json.dumps([event.payload for event in self.house.book(user, conversation_id).events])


@dataclass
class FakeChat:
    house: FakeHouse

    async def send(
        self, user: User, cid: str, text: str, *, mode: Any = None, max_rounds: int | None = None, role: Any = None
    ) -> str:
        book = self.house.book(user, cid)
        if not text.strip():
            raise UserError("Write a message first.")
        self.house.asked.append(("send", (text, mode, max_rounds)))
        self.house.count += 1
        turn_id = f"turn:{self.house.count:04d}"
        book.turns.append(turn_id)
        busy = Transcript(book.events).running is not None
        payload = {"turn": turn_id, "text": text.strip(), "mode": mode or "auto", "is_steer": busy}
        self.house.append(book, "message", {**payload, "ordinal": len(book.turns)})
        if not book.head.title:
            book.head = replace(book.head, title=text.strip()[:40])
            self.house.append(book, "title", {"title": book.head.title})
        if not busy:
            self._start(book, turn_id, text.strip(), mode or "auto", max_rounds or 5)
        return turn_id

    def _start(self, book: Book, turn_id: str, text: str, mode: Any, rounds: int) -> None:
        work = Script(self.house, book, turn_id, text, mode, rounds).run()
        book.tasks[turn_id] = asyncio.create_task(work)

    async def stop(self, user: User, cid: str) -> None:
        book = self.house.book(user, cid)
        running = Transcript(book.events).running
        if running:
            book.tasks[running.id].cancel()

    async def again(self, user: User, turn_id: str, mode: Any = None) -> str:
        book, text, old_mode = self._settled(user, turn_id)
        return await self._replace(user, book, turn_id, text, mode or old_mode)

    async def edit(self, user: User, turn_id: str, text: str) -> str:
        book, _, mode = self._settled(user, turn_id)
        if not text.strip():
            raise UserError("Write a message first.")
        return await self._replace(user, book, turn_id, text, mode)

    async def keep_going(self, user: User, turn_id: str) -> str:
        book, _, mode = self._settled(user, turn_id)
        return await self.send(user, book.head.id, "Continue where you stopped.", mode=mode)

    async def _replace(self, user: User, book: Book, turn_id: str, text: str, mode: Any) -> str:
        at = book.turns.index(turn_id)
        dropped, book.turns = book.turns[at:], book.turns[:at]
        self.house.append(book, "turn.drop", {"turns": dropped})
        return await self.send(user, book.head.id, text, mode=mode)

    def _settled(self, user: User, turn_id: str) -> tuple[Book, str, Any]:
        for book in self.house.books.values():
            turn = Transcript(book.events).turn(turn_id) if book.owner == user else None
            if turn:
                if turn.state != "ended":
                    raise Conflict("This answer is still being written. Stop it first.")
                return book, turn.text, turn.mode
        raise NotFound("There is no such turn.")

    async def log(self, user: User, cid: str, *, before: int | None = None, turns: int = 30) -> LogPage:
        book = self.house.book(user, cid)
        starts = {e.payload["turn"]: e.seq for e in book.events if e.kind == "message"}
        shown = [(turn, i + 1) for i, turn in enumerate(book.turns) if before is None or i + 1 < before]
        page, has_more = shown[-turns:], len(shown) > turns
        first = starts[page[0][0]] if has_more else 1
        end = starts[book.turns[before - 1]] if before is not None else len(book.events) + 1
        events = [event for event in book.events if first <= event.seq < end]
        return LogPage(
            conversation=book.head, events=events, earlier=page[0][1] if has_more else None, seq=len(book.events)
        )

    async def follow(self, user: User, cid: str, after: int) -> AsyncIterator[Event | OpenPart | Tick]:
        book, seq, bell, shown = self.house.book(user, cid), after, -1, dict[str, OpenPart]()
        ends = ticks_s() + self.house.follow_s
        while ticks_s() < ends:
            heard = await self.house.hub.changed(cid, bell, min(15.0, self.house.follow_s))
            if heard == bell:
                yield Tick()
                continue
            bell = heard
            parts = self.house.hub.open_parts(cid)
            for event in book.events[seq:]:
                seq = event.seq
                yield event
            for part in parts:
                if shown.get(part.part) != part:
                    shown[part.part] = part
                    yield part

    async def receipt(self, user: User, turn_id: str) -> dict[str, Any]:
        for book in self.house.books.values():
            for event in book.events:
                if event.kind == "selection" and event.payload["turn"] == turn_id and book.owner == user:
                    return dict(event.payload["receipt"])
        raise NotFound("This turn has not chosen any tools yet.")

    @contextmanager
    def watching(self, user_id: str, conversation_id: str) -> Iterator[Callable[[], bool]]:
        yield lambda: True

    async def undo_summary(self, user: User, cid: str, summary_id: str) -> None:
        payload = {"summary": summary_id, "upto_turn": 1, "state": "undone", "text": "", "is_tainted": False}
        self.house.append(self.house.book(user, cid), "summary", payload)


@dataclass
class FakeApprovals:
    house: FakeHouse

    async def pending(self, user: User) -> list[Any]:
        open_books = [book for book in self.house.books.values() if book.owner == user]
        return [
            SimpleNamespace(conversation_id=book.head.id)
            for book in open_books
            for waiting in book.answers.values()
            if not waiting.done()
        ]

    async def answer(self, user: User, approval_id: str, choice: str) -> None:
        for book in self.house.books.values():
            waiting = book.answers.get(approval_id)
            if waiting and book.owner == user:
                if waiting.done():
                    raise Conflict("This was answered already.")
                return waiting.set_result(choice)
        raise NotFound("There is no such question.")


@dataclass
class FakeUndo:
    house: FakeHouse

    async def undo(self, user: User, undo_id: str) -> str:
        for book in self.house.books.values():
            for event in list(book.events):
                if event.kind == "tool.result" and event.payload.get("undo") == undo_id and book.owner == user:
                    told = {"turn": event.payload["turn"], "call": event.payload["call"], "undo": undo_id}
                    self.house.append(book, "undo", {**told, "state": "undone", "text": "The task is gone again."})
                    return "The task is gone again."
        raise NotFound("There is nothing to undo.")


@dataclass
class FakeComposer:
    house: FakeHouse

    async def composer(self, user: User, conversation: Conversation | None = None, role: str = "") -> Composer:
        return Composer(
            role=conversation.role if conversation else role or "orchestrator",
            roles=("orchestrator", "research", "coder", "chat"),
            mode=conversation.mode if conversation else self.house.role_mode,
            max_rounds=5,
            max_rounds_from="CORTEX_MAX_ROUNDS",
            model="offline" if self.house.is_offline else "local/qwen",
            is_offline=self.house.is_offline,
            window_tokens=128_000,
            examples=("What is on my list today?", "Turn off the kitchen lights", "Which jobs run tonight?"),
            recipe=conversation.recipe if conversation else "",
            recipes=("cortex", "inara", "punch"),
        )

    async def keep(self, user: User, cid: str, mode: Any, rounds: int | None) -> None:
        book = self.house.book(user, cid)
        book.head = replace(book.head, mode=mode, max_rounds=rounds or book.head.max_rounds)

    async def preview(self, user: User, cid: str | None, text: str, mode: Any, *, role: str = "") -> dict[str, Any]:
        return receipt(text, mode)


@dataclass
class Script:
    """One answer: chosen by words in the message, told through the log and the hub like a real turn."""

    house: FakeHouse
    book: Book
    turn_id: str
    text: str
    mode: Any
    rounds: int
    parts: int = 0

    async def run(self) -> None:
        state, rounds = "done", 1
        try:
            self.tell("turn.start", role="orchestrator", model="local/qwen", max_rounds=self.rounds, max_rounds_from="")
            await asyncio.sleep(self.house.pause_s)
            self.receipt = receipt(self.text, self.mode)
            self.tell("selection", round=1, receipt=self.receipt)
            state, rounds = await self.play()
        except asyncio.CancelledError:
            state = "stopped"
            for part in self.house.hub.open_parts(self.book.head.id):
                self.tell("part.end", round=1, part=part.part, kind="text", text=part.text, attempt=1, is_partial=True)
                self.house.hub.close(self.book.head.id, part.part)
        sent = self.receipt
        self.tell("usage", round=1, model="local/qwen", input=11_900, output=500, cached=0, written=0, cost_usd=None)
        self.tell(
            "turn.end",
            state=state,
            rounds=rounds,
            seconds=2.1,
            tools_sent=len(sent["sent"]),
            tokens_sent=sent["tokens"],
            tokens_saved=sent["saved"],
            can_continue=state in ("interrupted", "out_of_rounds"),
        )

    def tell(self, kind: Any, /, **payload: Any) -> None:
        self.house.append(self.book, kind, {"turn": self.turn_id, **payload}, self.turn_id)

    async def play(self) -> tuple[str, int]:
        from_word: dict[str, Callable[[], Awaitable[tuple[str, int]]]] = {
            "ECHO": self.echo,
            "job": self.jobs,
            "shell": self.shell,
            "milk": self.milk,
            "fail": self.fail,
            "rounds": self.out_of_rounds,
            "many": self.many,
            "retry": self.retry,
        }
        for word, scene in from_word.items():
            if word in self.text:
                return await scene()
        await self.say("Understood. I kept this to plain conversation: no tool was needed, so none was sent.")
        return "done", 1

    async def say(self, text: str, kind: Any = "text", attempt: int = 1, part: str = "", cut: int = 0) -> None:
        self.parts += not part
        part = part or f"{self.turn_id[5:]}-1-{self.parts}"
        self.tell("part.start", round=1, part=part, kind=kind, attempt=attempt)
        words, shown, cid = text.split(" "), "", self.book.head.id
        for i, word in enumerate(words[: cut or None]):
            shown += word if i == 0 else f" {word}"
            self.house.hub.publish(
                OpenPart(conversation_id=cid, turn_id=self.turn_id, part=part, kind=kind, attempt=attempt, text=shown)
            )
            await asyncio.sleep(1 / self.house.words_per_s)
        if not cut:
            self.tell("part.end", round=1, part=part, kind=kind, text=text, attempt=attempt)
            self.house.hub.close(cid, part)

    async def call(self, name: str, arguments: Any, result: str, brief: str, **more: Any) -> None:
        call = f"{self.turn_id[5:]}.c{len(self.book.events)}"
        risk = more.pop("risk", "low")
        text = json.dumps(arguments)
        self.tell("tool.call", round=1, call=call, name=name, arguments=text, brief=brief, risk=risk)
        await asyncio.sleep(self.house.pause_s)
        known = {"state": "ok", "ms": 34, "undo": None, "spill": "", "is_tainted": False, **more}
        self.tell("tool.result", call=call, name=name, text=result, **known)

    async def echo(self) -> tuple[str, int]:
        await self.say(self.text.removeprefix("ECHO").lstrip("\n"))
        return "done", 1

    async def jobs(self) -> tuple[str, int]:
        await self.say("The user wants last night's runs. One listing is enough.", kind="thinking")
        rows = [{"job": "nightly-backup", "ok": True, "secs": 341}, {"job": "cert-check", "ok": False}]
        await self.call("cron_list", {"window": "24h"}, json.dumps(rows), "status of the last 24 h")
        await self.say(ANSWER)
        return "done", 2

    async def milk(self) -> tuple[str, int]:
        await self.call(
            "task_create", {"title": "milk", "list_name": "shopping"}, "Added milk.", "milk · shopping", undo="undo-1"
        )
        await self.say("**Milk** is on your shopping list.")
        return "done", 2

    async def many(self) -> tuple[str, int]:
        for number in range(5):
            await self.call("task_list", {"page": number}, f"page {number}", f"page {number}")
        await self.say("Five pages read.")
        return "done", 5

    async def retry(self) -> tuple[str, int]:
        part = f"{self.turn_id[5:]}-1-0"
        await self.say("A first try that will be taken back", part=part, cut=6)
        self.tell("notice", level="warn", text="The model broke off; asking again.")
        self.tell("part.end", round=1, part=part, kind="text", text="", attempt=1)
        self.house.hub.close(self.book.head.id, part)
        await self.say("The second try came to its end.", part=part, attempt=2)
        return "done", 1

    async def fail(self) -> tuple[str, int]:
        await self.say("So far")
        self.tell(
            "error", text="The model did not answer within 120 s. Your message is kept.", kind="timeout", can_retry=True
        )
        return "failed", 1

    async def out_of_rounds(self) -> tuple[str, int]:
        await self.say("I read three of five files; two remain.")
        return "out_of_rounds", self.rounds

    async def shell(self) -> tuple[str, int]:
        call, ask = f"{self.turn_id[5:]}.c1", f"ask-{self.turn_id[5:]}"
        command = "df -h /srv/backup \u202e&& du -sh /srv/backup/* | sort -h"
        said = {"command": command}
        self.tell(
            "tool.call", round=1, call=call, name="shell_exec", arguments=json.dumps(said), brief="df -h", risk="high"
        )
        asked = {
            "call": call,
            "approval": ask,
            "tool": "shell_exec",
            "verb": "run a command in the sandbox",
            "destination": "this server, workspace folder",
            "detail": command,
            "why": "because it read a page from the web",
            "risk": "high",
            "expires_at": (self.house.clock + timedelta(minutes=15)).isoformat(),
        }
        self.tell("approval", state="asked", **asked)
        self.book.answers[ask] = asyncio.get_running_loop().create_future()
        choice = await self.book.answers[ask]
        self.tell("approval", state="denied" if choice == "deny" else "allowed", **asked)
        if choice == "deny":
            self.tell("tool.result", call=call, name="shell_exec", state="err", text="The person said no.", ms=None)
            await self.say("You denied it, so I left the volume alone.")
        else:
            self.tell("tool.result", call=call, name="shell_exec", state="ok", text="212G free", ms=120)
            await self.say("The backup volume has **212 GB** free of 931 GB.")
        return "done", 2


ANSWER = """\
Three of the four nightly jobs finished. **`cert-check` failed** with a timeout after 30 s; all others are fine.

| Job | Result | Time |
|---|---|--:|
| nightly-backup | finished | 5 min 41 s |
| journal-sync | finished | 12 s |
| cert-check | timed out | 30 s |

### What I would do

1. Run it again by hand, to see whether the host answers at all
2. Raise its limit to 60 s if it is only slow:

```python
# jobs/cert_check.py
async def check(host: str, timeout_s: float = 60.0) -> bool:
    \"\"\"Whether the certificate is good for 14 more days.\"\"\"
    left = await days_left(host, timeout_s)
    return left > 14
```

It failed on 19 November too, so this is *not* a single hiccup. See [the log](https://example.org/log)."""
