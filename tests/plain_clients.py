"""Clients of tools in memory, faithful to their ports, where what they stand for leaves the machine or is not built."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from msgspec.structs import replace

from cortex.base.errors import Conflict, NotFound
from cortex.ports.aether import EntryChange, Journal, JournalEntry
from cortex.ports.agents import CodeRepository, CodingRun, CodingTask
from cortex.ports.memory import Fact
from cortex.ports.outgoing import PushCount, Room

START = datetime(2026, 11, 20, 8, tzinfo=UTC)
LATE = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)  # in Berlin the next day
TWO = PushCount(devices=2, failed=0)


@dataclass
class MemoryJournals:
    """Journals in memory; each entry is an hour younger than the one before it."""

    rows: dict[str, JournalEntry] = field(default_factory=dict)
    disabled: set[str] = field(default_factory=set)

    async def list(self) -> Sequence[Journal]:
        names = sorted({row.journal for row in self.rows.values()})
        held = {name: sum(row.journal == name for row in self._enabled()) for name in names}
        return [
            Journal(id=f"j-{name}", name=name, entries=held[name], changed_at=START, is_tainted=False) for name in names
        ]

    async def entries(
        self, journal_id: str | None, query: str, since: date | None, until: date | None, most: int
    ) -> Sequence[JournalEntry]:
        rows = [
            row
            for row in self._enabled()
            if journal_id in (None, row.journal_id)
            and all(word in f"{row.title} {row.text}".casefold() for word in query.casefold().split())
            and (since or date.min) <= row.written_at.date() <= (until or date.max)
        ]
        return sorted(rows, key=lambda row: row.written_at, reverse=True)[:most]

    async def entry(self, id: str) -> JournalEntry:
        if id not in self.rows or id in self.disabled:
            raise NotFound("This entry does not exist.")
        return self.rows[id]

    async def write(self, id: str, journal: str, title: str, text: str, is_tainted: bool) -> JournalEntry:
        row = JournalEntry(
            id=id,
            journal_id=f"j-{journal}",
            journal=journal,
            title=title,
            text=text,
            written_at=START + timedelta(hours=len(self.rows)),
            is_tainted=is_tainted,
            version=1,
        )
        return self.rows.setdefault(id, row)

    async def change(self, id: str, expected_version: int, change: EntryChange) -> JournalEntry:
        if id not in self.rows:
            raise NotFound("This entry does not exist.")
        old = self.rows[id]
        if old.version != expected_version:
            raise Conflict("The entry was changed in between.")
        self.disabled ^= {id} if change.is_enabled is (id in self.disabled) else set()
        given = {"title": change.title, "text": change.text}
        fields = {key: value for key, value in given.items() if value is not None}
        is_tainted = old.is_tainted or change.is_tainted
        self.rows[id] = replace(old, version=old.version + 1, is_tainted=is_tainted, **fields)
        return self.rows[id]

    def _enabled(self) -> Sequence[JournalEntry]:
        return [row for row in self.rows.values() if row.id not in self.disabled]


@dataclass
class PlainMemory:
    """Finds by shared words, the most first."""

    rows: dict[str, Fact] = field(default_factory=dict)
    proposed: dict[str, Fact] = field(default_factory=dict)
    forgotten: dict[str, Fact] = field(default_factory=dict)

    async def search(self, query: str, most: int) -> Sequence[Fact]:
        words = set(query.casefold().split())
        scored = [(len(words & set(row.text.casefold().split())), row) for row in self.rows.values()]
        hits = [(score, row) for score, row in scored if score or not words]
        return [row for _, row in sorted(hits, key=lambda pair: -pair[0])][:most]

    async def add(self, id: str, text: str, source: str, is_tainted: bool, turn_id: str = "") -> Fact:
        same = next((row for row in (*self.rows.values(), *self.proposed.values()) if row.text == text), None)
        made = Fact(id=id, text=text, source=source, at=LATE, is_tainted=is_tainted, is_proposed=is_tainted)
        return same or (self.proposed if is_tainted else self.rows).setdefault(id, made)

    async def forget(self, id: str) -> Fact:
        standing = self.proposed if id in self.proposed else self.rows
        if id not in standing:
            raise NotFound("This fact does not exist.")
        self.forgotten[id] = standing.pop(id)
        return self.forgotten[id]

    async def restore(self, id: str) -> Fact:
        if id not in self.forgotten:
            raise NotFound("This fact does not exist.")
        back = self.forgotten.pop(id)
        return (self.proposed if back.is_proposed else self.rows).setdefault(id, back)


@dataclass
class MemoryCoder:
    """Ends a run when it is waited for, as `ends` says."""

    ends: CodingRun | None = None
    rows: dict[str, CodingRun] = field(default_factory=dict)
    tasks: list[CodingTask] = field(default_factory=list)

    async def repositories(self) -> Sequence[CodeRepository]:
        return (CodeRepository(alias="cortex", folder="/srv/cortex"), CodeRepository(alias="shop", folder="/srv/shop"))

    async def start(self, id: str, task: CodingTask) -> CodingRun:
        self.tasks += [] if id in self.rows else [task]
        run = CodingRun(id=id, repository=task.repository, message=task.message, state="running", started_at=LATE)
        return self.rows.setdefault(id, run)

    async def wait(self, id: str, timeout_s: float) -> CodingRun:
        if self.ends is not None:
            self.rows[id] = replace(self.ends, id=id)
        return self.rows[id]

    async def runs(self, most: int) -> Sequence[CodingRun]:
        return list(self.rows.values())[:most]


@dataclass
class Folders:
    allowed: list[str] = field(default_factory=list)

    async def list(self) -> Sequence[str]:
        return self.allowed

    async def must_be_possible(self, folder: str) -> None:
        pass

    async def allow(self, folder: str) -> bool:
        is_new = folder not in self.allowed
        self.allowed += [folder] if is_new else []
        return is_new


@dataclass
class Phones:
    pushed: PushCount = TWO
    got: dict[str, tuple[str, str]] = field(default_factory=dict)

    async def push(self, id: str, title: str, text: str) -> PushCount:
        self.got[id] = (title, text)
        return self.pushed


@dataclass
class Letters:
    """Mail and Talk at once: sends as often as it is told to."""

    sent: list[str] = field(default_factory=list)
    threads: list[Mapping[str, str]] = field(default_factory=list, compare=False)

    async def own_address(self) -> str:
        return "ann@example.org"

    async def send_mail(self, id: str, to: Sequence[str], subject: str, text: str, thread: Mapping[str, str]) -> None:
        self.sent.append(text)
        self.threads.append(thread)

    async def rooms(self) -> Sequence[Room]:
        return (Room(token="t1", name="Family", unread=0),)

    async def post(self, id: str, token: str, text: str) -> None:
        self.sent.append(text)
