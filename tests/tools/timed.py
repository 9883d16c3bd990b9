"""Doubles of the ports that deal in time: a reader of a few plain wordings, reminders and jobs in memory."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace

from cortex.base.errors import Conflict, NotFound, ToolFailed
from cortex.base.zone import local
from cortex.ports.schedule import Job, Reminder, Timing


class PlainTimings:
    """Reads "in 20 minutes", "tomorrow at 9", "yesterday at 9", "every day at 7" and "every 30 seconds"."""

    def read(self, words: str, now: datetime, time_zone: str) -> Timing:
        here = local(now, time_zone)
        if found := re.fullmatch(r"in (\d+) minutes", words):
            at = now + timedelta(minutes=int(found[1]))
            return Timing(kind="at", expression=at.isoformat(), time_zone=time_zone, words=words)
        if found := re.fullmatch(r"(tomorrow|yesterday) at (\d+)", words):
            days = {"tomorrow": 1, "yesterday": -1}[found[1]]
            at = here.replace(hour=int(found[2]), minute=0) + timedelta(days=days)
            return Timing(kind="at", expression=at.isoformat(), time_zone=time_zone, words=words)
        if found := re.fullmatch(r"every day at (\d+)", words):
            line = f"0 {found[1]} * * *"
            return Timing(kind="cron", expression=line, time_zone=time_zone, words=f"every day at {found[1]:0>2}:00")
        if found := re.fullmatch(r"every (\d+) seconds", words):
            return Timing(kind="every", expression=found[1], time_zone=time_zone, words=words)
        raise ToolFailed(f"{words!r} is no time. Write such as tomorrow at 9, or a cron line.")

    def by_appointments(self, words: str, time_zone: str) -> Timing | None:
        return None

    def following(self, timing: Timing, after: datetime, count: int) -> tuple[datetime, ...]:
        if timing.kind == "at":
            at = datetime.fromisoformat(timing.expression)
            return (at.astimezone(after.tzinfo),) if at > after else ()
        if timing.kind == "every":
            return tuple(after + timedelta(seconds=int(timing.expression)) * n for n in range(1, count + 1))
        first = local(after, timing.time_zone).replace(hour=int(timing.expression.split()[1]), minute=0)
        first += timedelta(days=first <= after)
        return tuple((first + timedelta(days=n)).astimezone(after.tzinfo) for n in range(count))


@dataclass
class MemoryReminders:
    rows: dict[str, Reminder] = field(default_factory=dict)
    removed: dict[str, Reminder] = field(default_factory=dict)

    async def list(self) -> Sequence[Reminder]:
        return sorted(self.rows.values(), key=lambda row: row.next_at)

    async def add(
        self, id: str, text: str, timing: Timing, next_at: datetime, is_tainted: bool, for_id: str = ""
    ) -> Reminder:
        assert not for_id, "tests/services/reminders has those for another person"
        row = Reminder(id=id, text=text, timing=timing, next_at=next_at, is_tainted=is_tainted, version=1)
        return self.rows.setdefault(id, row)

    async def take_back(self, id: str, for_id: str, version: int) -> bool:
        return False

    async def remove(self, ids: Sequence[str]) -> int:
        gone = {id: self.rows.pop(id) for id in ids if id in self.rows}
        self.removed |= gone
        return len(gone)

    async def restore(self, ids: Sequence[str]) -> int:
        back = {id: self.removed.pop(id) for id in ids if id in self.removed}
        self.rows |= back
        return len(back)


@dataclass
class MemoryJobs:
    rows: dict[str, Job] = field(default_factory=dict)
    removed: dict[str, Job] = field(default_factory=dict)

    async def list(self) -> Sequence[Job]:
        return sorted(self.rows.values(), key=lambda job: job.name)

    async def add(
        self, id: str, name: str, prompt: str, timing: Timing, role: str, *, is_tainted: bool, is_private: bool
    ) -> Job:
        job = Job(
            id=id,
            name=name,
            prompt=prompt,
            timing=timing,
            role=role,
            is_enabled=True,
            next_at=None,
            last="",
            is_tainted=is_tainted,
            version=1,
        )
        return self.rows.setdefault(id, job)

    async def enable(self, id: str, is_enabled: bool, expected_version: int) -> Job:
        job = self._at(id, expected_version)
        self.rows[id] = replace(job, is_enabled=is_enabled, version=job.version + 1)
        return self.rows[id]

    async def remove(self, id: str, expected_version: int) -> None:
        self.removed[id] = self._at(id, expected_version)
        del self.rows[id]

    async def following(self, timing: Timing, count: int) -> Sequence[datetime]:
        raise AssertionError("tests/services/jobs has those beside appointments")

    async def restore(self, id: str) -> Job:
        if id not in self.removed:
            raise NotFound("This job does not exist.")
        self.rows[id] = self.removed.pop(id)
        return self.rows[id]

    def _at(self, id: str, version: int) -> Job:
        if id not in self.rows:
            raise NotFound("This job does not exist.")
        if self.rows[id].version != version:
            raise Conflict("The job was changed in between.")
        return self.rows[id]
