"""Makes the one moment that a phrase means: `tomorrow at 9`, `next Tuesday 6pm`, `25 December`, `in 20 minutes`."""

import calendar
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from cortex.ports.schedule import Timing
from cortex.schedule.cron_words import WEEKDAYS
from cortex.schedule.lines import line_of, usual_clock
from cortex.schedule.moments import first_change, following, utc_of
from cortex.schedule.phrase import Clock, Delay, Parts, refused


def once(words: str, parts: Parts, now: datetime, zone: ZoneInfo) -> Timing:
    """The timing of kind `at`; ToolFailed when the moment has passed or can't be told."""
    if len(parts.clocks) > 1:
        raise refused(words, "it names several times for one day; make one for each, or say 'every day at …'.")
    if parts.delay:
        return _after(words, parts, parts.delay, now, zone)
    here = now.astimezone(zone)
    clock = parts.clocks[0] if parts.clocks else usual_clock(parts)
    on = _day(words, parts, clock, here, zone)
    if on is None:
        wall, hint = _next_time(parts, clock, here)
    else:
        wall, hint = _on_day(parts, on, clock, here)
    return timing_at(words, utc_of(wall, zone), wall, now, zone, hint)


def timing_at(words: str, at: datetime, wall: datetime, now: datetime, zone: ZoneInfo, hint: str = "") -> Timing:
    """The timing of this moment; `wall`: as it was meant, which a change of the clock may forbid."""
    local = at.astimezone(zone)
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    day = f"{WEEKDAYS[(local.weekday() + 1) % 7]} {local.date().isoformat()} at {clock}"
    if at <= now:
        raise refused(words, f"{day} ({zone.key}) has passed; enter a time in the future.")
    notes = [note for note in (hint, _clock_note(at, wall, local, zone)) if note]
    ending = f" ({'; '.join(notes)})" if notes else ""
    return Timing(kind="at", expression=local.isoformat(), time_zone=zone.key, words=f"once on {day}{ending}")


def _clock_note(at: datetime, wall: datetime, local: datetime, zone: ZoneInfo) -> str:
    """Return what a change of the clock does to the time that was meant; "" for nothing."""
    if wall != local.replace(tzinfo=None):
        change = first_change(zone, at - timedelta(days=1), at)
        clocks = (
            f": the clock jumps {_shown(change.at + change.before)} -> {_shown(change.at + change.after)}"
            if change
            else ""
        )
        return f"{wall:%H:%M} does not exist that day{clocks}"
    if local.replace(fold=1).utcoffset() != local.replace(fold=0).utcoffset() and not local.fold:
        return f"the first of two {wall:%H:%M} that day: the clock goes back"
    return ""


def _shown(at: datetime) -> str:
    return f"{at:%H:%M}"


def _day(words: str, parts: Parts, clock: Clock, here: datetime, zone: ZoneInfo) -> date | None:
    """The day that was said; None when none was."""
    days, today = parts.days, here.date()
    named = days.weekdays or days.nths or days.monthdays
    if days.months and not (named or days.date):
        raise refused(words, "it names a month and no day; write such as 5 December at 10.")
    if days.date and days.date.year:
        found = date(days.date.year, days.date.month, days.date.day)
    elif days.offset is not None:
        found = today + timedelta(days=days.offset)
    elif days.ahead_unit or (days.ahead == "next" and days.weekdays):
        found = _ahead(words, parts, today)
    elif named or days.date:
        return _coming(words, parts, clock, here, zone)
    else:
        return None
    return _agreeing(words, parts, found)


def _agreeing(words: str, parts: Parts, found: date) -> date:
    """The day, when the weekday beside it fits."""
    weekday = (found.weekday() + 1) % 7
    if parts.days.weekdays and weekday not in parts.days.weekdays:
        raise refused(words, f"{found.isoformat()} is a {WEEKDAYS[weekday]}.")
    return found


def _ahead(words: str, parts: Parts, today: date) -> date:
    """`next Tuesday` and `Tuesday next week` are in the week from Monday to Sunday that follows this one."""
    days = parts.days
    if days.ahead_unit == "year" or days.nths or (days.ahead_unit == "week" and days.monthdays):
        raise refused(words, "write the date, such as 5 March 2027.")
    if days.ahead_unit == "month":
        first = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
        day = min(days.monthdays, default=1)
        if day > calendar.monthrange(first.year, first.month)[1]:
            raise refused(words, f"next month has no day {day}.")
        return first.replace(day=day)
    monday = today - timedelta(days=today.weekday()) + timedelta(days=7)
    return monday + timedelta(days=(min(days.weekdays, default=1) - 1) % 7)


def _coming(words: str, parts: Parts, clock: Clock, here: datetime, zone: ZoneInfo) -> date:
    """The first such day whose time is still to come. A bare hour may also be the evening's, so today is still one."""
    days = parts.days
    if len(days.weekdays) > 1 or len(days.nths) > 1 or len(days.monthdays) > 1:
        raise refused(words, "it names several days; say 'every' for each of them.")
    dated = days.date
    loose = replace(days, weekdays=frozenset()) if dated or days.monthdays else days
    line = line_of(words, loose, (clock,))
    timing = Timing(kind="cron", expression=line, time_zone=zone.key, words="")
    found = following(timing, here, 1)[0].astimezone(zone).date()
    return _agreeing(words, parts, found)


def _on_day(parts: Parts, on: date, clock: Clock, here: datetime) -> tuple[datetime, str]:
    """The wall-clock time on that day; `tonight at 2` is tomorrow's, `today at 7` the evening's when 7 has passed."""
    is_tonight = parts.days.offset == 0 and parts.part == "night"
    if is_tonight and clock.hour < 6 and not here.hour < clock.hour:
        on += timedelta(days=1)
    wall = datetime.combine(on, time(clock.hour, clock.minute))
    if clock.is_bare and on == here.date() and clock.hour < 12 and wall <= here.replace(tzinfo=None):
        return wall + timedelta(hours=12), _other(clock, is_evening=True)
    is_early = clock.is_bare and clock.hour <= 6
    return wall, _other(clock, is_evening=False) if is_early else ""


def _next_time(parts: Parts, clock: Clock, here: datetime) -> tuple[datetime, str]:
    """The next time the clock shows this; `at 7` is 7 or 19, whichever comes first."""
    naive = here.replace(tzinfo=None)
    walls = [datetime.combine(here.date() + timedelta(days=away), time(clock.hour, clock.minute)) for away in (0, 1)]
    if clock.is_bare:
        half = timedelta(hours=12 if clock.hour < 12 else -12)
        walls = sorted([*walls, *(wall + half for wall in walls)])
    wall = next(wall for wall in walls if wall > naive)
    is_evening = wall.hour >= 12
    return wall, _other(clock, is_evening=is_evening) if clock.is_bare else ""


def _other(clock: Clock, *, is_evening: bool) -> str:
    """Says that a bare hour could be meant otherwise, and how to write that."""
    hour = clock.hour % 12 + (0 if is_evening else 12)
    return f"write {hour:02}:{clock.minute:02} for the {'morning' if is_evening else 'afternoon or evening'}"


def _after(words: str, parts: Parts, delay: Delay, now: datetime, zone: ZoneInfo) -> Timing:
    """So long from now: days and months keep the time of day unless another is said."""
    days = parts.days
    if days.date or days.weekdays or days.monthdays or days.nths or days.offset is not None:
        raise refused(words, "it says how long from now, and a day as well; say one of them.")
    if delay.seconds and (parts.clocks or parts.part):
        raise refused(words, "it says how long from now, and a time of day as well; say one of them.")
    here = now.astimezone(zone).replace(microsecond=0)
    on = _months_on(here.date(), delay.months) + timedelta(days=delay.days)
    clock = here.time()
    if parts.clocks or parts.part:
        said = parts.clocks[0] if parts.clocks else usual_clock(parts)
        clock = time(said.hour, said.minute)
    if not (delay.months or delay.days):
        at = now.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=delay.seconds)
        return timing_at(words, at, at.astimezone(zone).replace(tzinfo=None), now, zone)
    wall = datetime.combine(on, clock)
    at = utc_of(wall, zone) + timedelta(seconds=delay.seconds)
    return timing_at(words, at, wall + timedelta(seconds=delay.seconds), now, zone)


def _months_on(on: date, months: int) -> date:
    """The same day so many months on, or the last one of a shorter month."""
    number = on.year * 12 + on.month - 1 + months
    year, month = number // 12, number % 12 + 1
    return date(year, month, min(on.day, calendar.monthrange(year, month)[1]))
