"""One person's reminders, as the page and the tools handle them: add in words, change, hear, put off, take away.

Telling them when they are due is `due.py`. No model is asked. Rows: `storage/reminders.py`.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import NotFound, ToolFailed, UserError
from cortex.base.form_words import one_line
from cortex.base.user import User
from cortex.ports.schedule import Reminder, Timing, Timings
from cortex.schedule.parting import parted
from cortex.services.notifier import wake
from cortex.services.runtime import Runtime
from cortex.storage.accounts import AccountsRepository
from cortex.storage.notices import NoticeRow, NoticesRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.reminders import TOLD_MOST as TOLD_MOST
from cortex.storage.reminders import ReminderRow as ReminderRow
from cortex.storage.reminders import RemindersRepository, ReminderValues, values_of

Snooze = Literal["10min", "1h", "morning", "words"]
SNOOZES: dict[Snooze, str] = {"10min": "in 10 minutes", "1h": "in 1 hour", "morning": "tomorrow morning at 9"}
REPEATS_S = (300, 900, 3600, 14_400)
TEXT_CHARACTERS_MAX = 500
WORDS_CHARACTERS_MAX = 1_000
NOTHING = "Enter what to remind you of."
AHEAD = 3
WRITTEN = ("%Y-%m-%d", "%d %b %Y", "%d %B %Y", "%d.%m.%Y")
NO_DAY = "Write a day such as tomorrow, Friday, 24 Dec or 24.12.2026."
NO_CLOCK = "Write a time such as 22:00 or 10 pm."
NO_TIME = "A task is due on a day, without a time. To be told at a time, add a reminder."
_CLOCK = re.compile(r"\d:\d\d|\b\d{1,2} ?[ap]\.?m\b|\bat\s+\d|\b(?:noon|midnight)\b", re.IGNORECASE)
CLEARED = "reminders.cleared"  # what was taken away together last
GIVEN = "reminders.given"  # whose, which and at which version: what was given to another person last


class Reading(Struct, frozen=True, kw_only=True):
    """The meaning of words: what is told, when, and the next times, aware UTC."""

    text: str
    timing: Timing
    times: tuple[datetime, ...]


class ReminderListing(Struct, frozen=True, kw_only=True):
    """The reminders as the page shows them. `past`: a stretch of those that are over."""

    due: Sequence[ReminderRow]
    next: Sequence[ReminderRow]
    repeating: Sequence[ReminderRow]
    past: Sequence[ReminderRow]


class RemindersService(Struct, frozen=True, kw_only=True):
    """Every method takes whose; another person's are unknown (NotFound)."""

    runtime: Runtime
    timings: Timings

    def read(self, user: User, words: str, *, since: datetime | None = None) -> Reading:
        """Return what a sentence such as "call mum tomorrow at 9" means now, or seen from `since`.

        UserError says what is missing.
        """
        now = since or self.runtime.clock()
        if len(words) > WORDS_CHARACTERS_MAX:
            raise UserError(f"That is too long: at most {WORDS_CHARACTERS_MAX:,} characters.", field="words")
        text, timing = parted(words, self.timings, now, user.time_zone)
        times = self.timings.following(timing, now, AHEAD)
        if not times:  # as "in 1 second" is, by the time it was read
            raise UserError("That time has passed. Enter a time in the future.", field="words")
        return Reading(text=one_line(text, TEXT_CHARACTERS_MAX, "words", NOTHING), timing=timing, times=times)

    def read_time(self, user: User, words: str, field: str = "when") -> tuple[Timing, tuple[datetime, ...]]:
        """Return what words of time mean now, and the next times. UserError when that is no time to come."""
        try:
            timing = self.timings.read(words, self.runtime.clock(), user.time_zone)
        except ToolFailed as refused:
            raise UserError(refused.message, field=field) from refused
        times = self._times(timing)
        if not times:
            raise UserError(
                f"{words.strip()!r} is in the past or never happens. Enter a time in the future.", field=field
            )
        return timing, times

    def read_day(self, user: User, words: str, field: str = "due", *, is_past: bool = False) -> date | None:
        """Return the day that the words mean now; None for no words. UserError for what is no day.

        `is_past`: a weekday, or a date without its year, is the last one and not the next.
        """
        typed, today = words.strip(), self.runtime.clock().astimezone(ZoneInfo(user.time_zone)).date()
        if not typed:
            return None
        written = _written(typed) or {"today": today, "yesterday": today - timedelta(days=1)}.get(typed.casefold())
        if written:
            return written
        if _CLOCK.search(typed):  # no time is lost in silence
            raise UserError(NO_TIME if field == "due" else NO_DAY, field=field)
        morning = datetime.combine(today, time(), UTC)
        try:
            timing = self.timings.read(typed, morning, "UTC")
        except ToolFailed as refused:
            raise UserError(NO_DAY, field=field) from refused
        if timing.kind != "at":
            raise UserError(NO_DAY, field=field)
        found = datetime.fromisoformat(timing.expression).date()
        return _last(typed.casefold(), found) if is_past and found > today else found

    def read_clock(self, words: str, field: str) -> str:
        """Return the time of day that the words mean, as 22:00; "" for no words. UserError for what is none."""
        if not words.strip():
            return ""
        try:
            timing = self.timings.read(f"every day at {words.strip()}", self.runtime.clock(), "UTC")
        except ToolFailed as refused:
            raise UserError(NO_CLOCK, field=field) from refused
        minute, hour, *days = timing.expression.split()
        if days != ["*", "*", "*"] or not (minute.isdigit() and hour.isdigit()):
            raise UserError(NO_CLOCK, field=field)
        return f"{int(hour):02}:{int(minute):02}"

    async def listing(self, user: User, *, query: str = "", start: int = 0, most: int = 50) -> ReminderListing:
        """All that is to come, those that have all words of `query`, and a stretch of the past from `start` on."""
        reminders = self._of(user)
        rows = await reminders.list(("planned", "due", "snoozed"), query)
        past = await reminders.list(("done",), query, skip=start, limit=most)
        due = [row for row in rows if row.state == "due"]
        rhythm = [row for row in rows if row.timing_kind != "at" and row.next_at is not None]
        coming = [row for row in rows if row.state != "due" and row not in rhythm]
        coming += [row for row in rhythm if row.state == "snoozed"]
        return ReminderListing(
            due=due,
            next=sorted(coming, key=lambda row: (row.again_at or row.next_at or row.created_at, row.id)),
            repeating=sorted(rhythm, key=lambda row: (row.next_at or row.created_at, row.id)),
            past=past,
        )

    async def put_off(self, user: User) -> dict[str, datetime]:
        """Until when those that were put off wait, by their ids."""
        rows = await self._of(user).list(("snoozed",))
        return {row.id: row.again_at for row in rows if row.again_at is not None}

    async def get(self, user: User, reminder_id: str) -> ReminderRow:
        """One reminder; NotFound."""
        return await self._of(user).get(reminder_id)

    async def add(self, user: User, words: str, *, repeat_s: int | None = None, for_id: str = "") -> ReminderRow:
        """A new one, as `read` reads the words. `repeat_s`: told again so often until it is acknowledged.

        `for_id`: told to this other person, to whom it belongs from then on; NotFound.
        """
        found = self.read(user, words)
        values = values_of(found.text, found.timing, _repeat(repeat_s), is_tainted=False)
        row = await self.give(user.id, None, values, found.times[0], for_id)
        if row.owner_id != user.id:
            given = [row.owner_id, row.id, row.version]
            await self.runtime.db.repository(PreferencesRepository, user.id).set(GIVEN, given)
        return row

    async def others(self, user_id: str) -> Mapping[str, str]:
        """Return everybody else with an open account, whom one may have reminded: id to name."""
        accounts = await self.runtime.db.repository(AccountsRepository).list()
        return {one.id: one.name for one in accounts if one.is_active and one.id != user_id}

    async def give(
        self, user_id: str, id: str | None, values: ReminderValues, next_at: datetime, for_id: str
    ) -> ReminderRow:
        """Add it for the person, or for that other one, who reads whom it is from; NotFound without such an account."""
        to_id = for_id or user_id
        if to_id != user_id:
            if to_id not in await self.others(user_id):
                raise NotFound("Nobody with an open account here has this name.")
            giver = await self.runtime.db.repository(AccountsRepository).get(user_id)
            # Another person's words: their assistant takes them for no instruction.
            values = replace(values, text=f"{values.text} (from {giver.name})", is_tainted=True)
        row = await self.runtime.db.repository(RemindersRepository, to_id).add(id, values, next_at)
        wake(self.runtime.hub, to_id)
        return row

    async def take_back(self, id: str, for_id: str, version: int) -> bool:
        """Take away one that was given to this person; False when it was told, changed or removed since."""
        with suppress(NotFound):
            row = await self.runtime.db.repository(RemindersRepository, for_id).get(id)
            return row.version == version and await self.remove(for_id, [id]) == 1
        return False

    async def take_last_back(self, user: User) -> bool:
        """Take away what the person gave somebody last; False when it was told, changed or removed since."""
        given = await self.runtime.db.repository(PreferencesRepository, user.id).get(GIVEN, [])
        return bool(given) and await self.take_back(given[1], given[0], given[2])

    async def change(
        self, user: User, reminder_id: str, version: int, *, text: str, when: str, repeat_s: int | None = None
    ) -> ReminderRow:
        """Say it anew; `when` as it stood ("" or the same words) keeps the time. Conflict unless at that version."""
        before = await self.get(user, reminder_id)
        timing, next_at = before.timing, before.next_at
        if when.strip() not in ("", before.words):
            timing, times = self.read_time(user, when)
            next_at = times[0]
        elif next_at is None:
            raise UserError("It was already sent. Enter when to send it again.", field="when")
        values = values_of(
            one_line(text, TEXT_CHARACTERS_MAX, "text", NOTHING),
            timing,
            _repeat(repeat_s),
            is_tainted=before.is_tainted,
        )
        async with self.runtime.db.transaction(user.id) as repository:
            row = await repository(RemindersRepository).change(reminder_id, version, values, next_at)
            await repository(NoticesRepository).settle(reminder_id)
        wake(self.runtime.hub, user.id)
        return row

    async def acknowledge(self, user_id: str, reminder_id: str) -> ReminderRow:
        """Heard: it is not told again before its rhythm's next time, and its notices are answered."""
        async with self.runtime.db.transaction(user_id) as repository:
            row = await repository(RemindersRepository).acknowledge(reminder_id)
            await repository(NoticesRepository).settle(reminder_id)
        wake(self.runtime.hub, user_id)
        return row

    async def skip(self, user: User, reminder_id: str, at: str) -> ReminderRow:
        """Done ahead of time: it is not notified `at`, its next time in ISO 8601; Conflict when it is not (any more).

        One that repeats goes on with the time that follows. UserError for what is no time.
        """
        before = await self.get(user, reminder_id)
        due = _moment(at)
        following = self.timings.following(before.timing, due, 1)
        rows = self._of(user)
        row = await rows.skip(reminder_id, due, next((at for at in following if at > due), None))
        wake(self.runtime.hub, user.id)
        return row

    async def unskip(self, user: User, reminder_id: str, at: str) -> ReminderRow:
        """Take that back: it is notified `at` that time again, at once where it has passed. Errors as `skip`."""
        await self.get(user, reminder_id)
        row = await self._of(user).unskip(reminder_id, _moment(at))
        wake(self.runtime.hub, user.id)
        return row

    async def wait_again(self, user: User, reminder_id: str) -> ReminderRow:
        """Take back that it was heard or put off: it waits for an answer as before, and so does its notice."""
        async with self.runtime.db.transaction(user.id) as repository:
            row = await repository(RemindersRepository).wait_again(reminder_id)
            await repository(NoticesRepository).unsettle(reminder_id)
        wake(self.runtime.hub, user.id)
        return row

    async def snooze(self, user: User, reminder_id: str, choice: Snooze, words: str = "") -> ReminderRow:
        """Tell it again later; `words`: of the person's own choice. Conflict when it does not wait for an answer."""
        await self.get(user, reminder_id)
        timing, times = self.read_time(user, words if choice == "words" else SNOOZES[choice], "words")
        if timing.kind != "at":
            raise UserError("Enter one time, such as 'in 2 hours'.", field="words")
        return await self._put_off(user.id, reminder_id, times[0])

    async def answered(self, user_id: str, notice: NoticeRow, choice: str) -> None:
        """The notice of a reminder was acknowledged (`choice` "") or put off for so long, such as "10min"."""
        if not choice:
            await self.acknowledge(user_id, notice.subject_id)
            return
        row = await self.runtime.db.repository(RemindersRepository, user_id).get(notice.subject_id)
        words = next((words for name, words in SNOOZES.items() if name == choice), choice)
        timing = self.timings.read(words, self.runtime.clock(), row.time_zone)
        await self._put_off(user_id, row.id, self._times(timing)[0])

    async def _put_off(self, user_id: str, reminder_id: str, until: datetime) -> ReminderRow:
        async with self.runtime.db.transaction(user_id) as repository:
            row = await repository(RemindersRepository).snooze(reminder_id, until)
            await repository(NoticesRepository).settle(reminder_id)
        wake(self.runtime.hub, user_id)
        return row

    async def remove(self, user_id: str, ids: Sequence[str]) -> int:
        """Take them away, kept for `restore` a day long; how many there were."""
        async with self.runtime.db.transaction(user_id) as repository:
            count = await repository(RemindersRepository).remove(ids)
            for reminder_id in ids:
                await repository(NoticesRepository).settle(reminder_id)
        wake(self.runtime.hub, user_id)
        return count

    async def clear(self, user: User) -> int:
        """Take away all that are to come or wait for an answer; how many. `restore_cleared` takes that back."""
        rows = await self._of(user).list(("planned", "due", "snoozed"))
        ids = [row.id for row in rows]
        await self.runtime.db.repository(PreferencesRepository, user.id).set(CLEARED, ids)
        return await self.remove(user.id, ids)

    async def restore_cleared(self, user: User) -> int:
        """Put back what the last `clear` took away; how many are back."""
        return await self.restore(
            user.id, await self.runtime.db.repository(PreferencesRepository, user.id).get(CLEARED, [])
        )

    async def restore(self, user_id: str, ids: Sequence[str]) -> int:
        """Put removed ones back; how many. Those whose time has passed are told at once."""
        count = await self.runtime.db.repository(RemindersRepository, user_id).restore(ids)
        wake(self.runtime.hub, user_id)
        return count

    def for_user(self, user_id: str) -> "UserReminders":
        """The port of the tools, for one person."""
        return UserReminders(service=self, user_id=user_id)

    def _times(self, timing: Timing) -> tuple[datetime, ...]:
        return self.timings.following(timing, self.runtime.clock(), AHEAD)

    def _of(self, user: User) -> RemindersRepository:
        return self.runtime.db.repository(RemindersRepository, user.id)


class UserReminders(Struct, frozen=True, kw_only=True):
    """Implements the ports `Reminders` and `Housemates` for one person."""

    service: RemindersService
    user_id: str

    async def list(self) -> Sequence[Reminder]:
        """All that are to come or wait for an answer, the next first."""
        rows = await self._rows.list(("planned", "due", "snoozed"))
        times = [(row, row.wakes_at or row.due_at) for row in rows]
        return sorted((_reminder(row, at) for row, at in times if at is not None), key=lambda one: one.next_at)

    async def add(
        self, id: str, text: str, timing: Timing, next_at: datetime, is_tainted: bool, for_id: str = ""
    ) -> Reminder:
        """A new one; the one that stands under this id already is handed back. `for_id`: of this other person."""
        values = values_of(text, timing, None, is_tainted=is_tainted)
        row = await self.service.give(self.user_id, id, values, next_at, for_id)
        return _reminder(row, row.wakes_at or next_at)

    async def others(self) -> Mapping[str, str]:
        """Return everybody else who can be reminded: id to name."""
        return await self.service.others(self.user_id)

    async def take_back(self, id: str, for_id: str, version: int) -> bool:
        """Take away what was given to this person; False when it was told, changed or removed since."""
        return await self.service.take_back(id, for_id, version)

    async def remove(self, ids: Sequence[str]) -> int:
        """Take them off in one step."""
        return await self.service.remove(self.user_id, ids)

    async def restore(self, ids: Sequence[str]) -> int:
        """Put removed ones back; how many."""
        return await self.service.restore(self.user_id, ids)

    @property
    def _rows(self) -> RemindersRepository:
        return self.service.runtime.db.repository(RemindersRepository, self.user_id)


def _reminder(row: ReminderRow, next_at: datetime) -> Reminder:
    return Reminder(
        id=row.id, text=row.text, timing=row.timing, next_at=next_at, is_tainted=row.is_tainted, version=row.version
    )


def _last(typed: str, coming: date) -> date:
    """Return the day a week or a year before the coming one, where it was named by a weekday or without a year."""
    if coming.strftime("%b").casefold() in typed or f"{coming.day}." in typed:
        is_leap = (coming.month, coming.day) == (2, 29)
        return coming.replace(year=coming.year - 1, day=28 if is_leap else coming.day)
    return coming - timedelta(days=7) if coming.strftime("%a").casefold() in typed else coming


def _written(typed: str) -> date | None:
    """Return the day that is written as a date with its year."""
    for form in WRITTEN:
        with suppress(ValueError):
            return datetime.strptime(typed, form).date()  # noqa: DTZ007 - a day has no zone
    return None


def _moment(at: str) -> datetime:
    try:
        return datetime.fromisoformat(at).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UserError("This is no time of this reminder.") from error


def _repeat(repeat_s: int | None) -> int | None:
    if repeat_s is not None and repeat_s not in REPEATS_S:
        raise UserError("Choose one of the intervals.", field="repeat_s")
    return repeat_s
