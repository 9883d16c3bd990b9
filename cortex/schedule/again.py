"""Makes the timing of a phrase that comes again: a cron line where one can say it, else an interval."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from cortex.ports.schedule import Timing
from cortex.schedule.cron import parse
from cortex.schedule.cron_words import WEEKDAYS, described
from cortex.schedule.lines import day_line, joined, line_of, usual_clock
from cortex.schedule.moments import every_days, every_seconds, utc_of
from cortex.schedule.phrase import Clock, Days, OnDate, Parts, Unit, refused

IN_A_DAY = {1: (9,), 2: (9, 21), 3: (8, 13, 18), 4: (8, 12, 16, 20)}
IN_A_WEEK = {1: (1,), 2: (1, 4), 3: (1, 3, 5)}
IN_A_MONTH = {1: (1,), 2: (1, 15), 3: (1, 11, 21)}


def again(words: str, parts: Parts, now: datetime, zone: ZoneInfo) -> Timing:
    """The timing of kind `cron` or `every`; ToolFailed when neither can say it."""
    if parts.times_in:
        parts = _spread(words, parts, *parts.times_in)
    days = parts.days
    if parts.delay or days.offset is not None or days.ahead or (days.date and days.date.year):
        raise refused(words, "it says one day, and that it comes again; say one of them.")
    count, unit = parts.every or (1, "day")
    match unit:
        case "minute" | "hour":
            return _short(words, parts, count, unit, now, zone)
        case "day" | "week" if count > 1:
            return _some_days(words, parts, count * (7 if unit == "week" else 1), unit, now, zone)
        case _:
            days = _with_usual_days(words, days, count, unit, parts, now.astimezone(zone))
            return timing_of(line_of(words, days, parts.clocks or (usual_clock(parts),)), zone)


def timing_of(line: str, zone: ZoneInfo) -> Timing:
    """A cron line as a timing, with its words; ToolFailed when it is none or never comes."""
    found = parse(line)
    return Timing(kind="cron", expression=found.text, time_zone=zone.key, words=described(found))


def _spread(words: str, parts: Parts, count: int, unit: Unit) -> Parts:
    """`twice a day` and the like, at usual times unless as many are named."""
    days = parts.days
    match unit:
        case "hour" if count > 0 and 60 % count == 0:
            return replace(parts, every=(1, "hour") if count == 1 else (60 // count, "minute"))
        case "day" if parts.clocks and len(parts.clocks) == count:
            return parts
        case "day" if not parts.clocks and count in IN_A_DAY:
            return replace(parts, clocks=tuple(Clock(hour=hour, minute=0) for hour in IN_A_DAY[count]))
        case "week" if len(days.weekdays) == count:
            return parts
        case "week" if not days.weekdays and count in IN_A_WEEK:
            return replace(parts, days=replace(days, weekdays=frozenset(IN_A_WEEK[count])))
        case "month" if len(days.monthdays) == count:
            return parts
        case "month" if not days.monthdays and not days.nths and count in IN_A_MONTH:
            return replace(parts, days=replace(days, monthdays=IN_A_MONTH[count]))
        case _:
            raise refused(words, f"say which {'times' if unit in ('hour', 'day') else 'days'} they are, all {count}.")


def _with_usual_days(words: str, days: Days, count: int, unit: Unit, parts: Parts, here: datetime) -> Days:
    """The days, filled up with what goes without saying: a week's Monday, a month's 1st, a year's 1 January."""
    named = days.weekdays or days.nths or days.monthdays or days.date
    match unit:
        case "week":
            if days.nths or days.monthdays or days.date:
                raise refused(words, "a week has no such day; name weekdays.")
            return days if days.weekdays else replace(days, weekdays=frozenset({1}))
        case "month":
            if days.date or days.weekdays:
                raise refused(words, "say which day of the month, such as the 1st or the first Monday.")
            filled = days if named else replace(days, monthdays=(1,))
            return filled if count == 1 else _some_months(words, filled, count, parts, here)
        case "year":
            if count > 1:
                raise refused(words, "only every year can be said; make one for each year.")
            if days.monthdays and not days.months:
                raise refused(words, "say the month as well, such as every year on 5 March.")
            return days if named else replace(days, date=OnDate(year=None, month=min(days.months, default=1), day=1))
        case _:
            return days


def _some_months(words: str, days: Days, count: int, parts: Parts, here: datetime) -> Days:
    """Every second, third, fourth or sixth month, counted from the next that is due."""
    if 12 % count or days.months:
        raise refused(words, "a year divides into every 2, 3, 4 or 6 months; else name the months.")
    clock = (parts.clocks or (usual_clock(parts),))[0]
    first = min(days.monthdays, default=1)
    is_over = (here.day, here.hour, here.minute) >= (first, clock.hour, clock.minute)
    month = here.month + is_over
    return replace(days, months=tuple(sorted((month - 1 + away) % 12 + 1 for away in range(0, 12, count))))


def _some_days(words: str, parts: Parts, every: int, unit: Unit, now: datetime, zone: ZoneInfo) -> Timing:
    """Every so many days by the calendar, from the first that is to come."""
    days = parts.days
    if days.nths or days.monthdays or days.date or days.months or (days.weekdays and unit == "day"):
        raise refused(words, "an interval of days has no other days; leave one of them out.")
    if len(days.weekdays) > 1:
        raise refused(words, "every so many weeks has one weekday; make one for each.")
    if len(parts.clocks) > 1:
        raise refused(words, "every so many days has one time; make one for each.")
    clock = (parts.clocks or (usual_clock(parts),))[0]
    today = now.astimezone(zone).date()
    wanted = days.weekdays or (frozenset({1}) if unit == "week" else frozenset(range(7)))
    walls = (datetime.combine(today + timedelta(days=away), time(clock.hour, clock.minute)) for away in range(9))
    first = next(wall for wall in walls if utc_of(wall, zone) > now and (wall.weekday() + 1) % 7 in wanted)
    name = WEEKDAYS[(first.weekday() + 1) % 7]
    rhythm = f"every {every // 7} weeks on {name}" if unit == "week" else f"every {every} days"
    spoken = f"{rhythm} at {first:%H:%M}, first on {name} {first.date().isoformat()}"
    return Timing(kind="every", expression=every_days(every, first), time_zone=zone.key, words=spoken)


def _short(words: str, parts: Parts, count: int, unit: Unit, now: datetime, zone: ZoneInfo) -> Timing:
    """Minutes and hours: an interval from now, or a cron line where hours, days or the minute are named."""
    if parts.part or parts.clocks:
        raise refused(words, "an interval of minutes or hours goes with 'between 9:00 and 17:00', not with one time.")
    days = parts.days
    is_bare = days == Days(is_repeating=days.is_repeating)
    if is_bare and not parts.window and parts.mark is None:
        return _from_now(count, unit, now, zone)
    minutes, hours = _fields(words, parts, count, unit)
    return timing_of(day_line(words, days, minutes, hours), zone)


def _from_now(count: int, unit: Unit, now: datetime, zone: ZoneInfo) -> Timing:
    """Counted from this minute on; the first time is one interval away."""
    seconds = count * (60 if unit == "minute" else 3600)
    first = now.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(seconds=seconds)
    local = first.astimezone(zone)
    each = f"every {unit}" if count == 1 else f"every {count} {unit}s"
    spoken = f"{each}, first on {WEEKDAYS[(local.weekday() + 1) % 7]} {local:%Y-%m-%d} at {local:%H:%M}"
    return Timing(kind="every", expression=every_seconds(seconds, first), time_zone=zone.key, words=spoken)


def _fields(words: str, parts: Parts, count: int, unit: Unit) -> tuple[str, str]:
    """The minutes and hours of the line."""
    if unit == "minute" and count % 60 == 0:
        count, unit = count // 60, "hour"
    first, last = parts.window or (Clock(hour=0, minute=0), Clock(hour=23, minute=0))
    if parts.window and first.minute != last.minute:
        raise refused(words, "its first and last minute differ; write full hours, such as between 9:00 and 17:00.")
    rhythm = "*" if count == 1 else f"*/{count}"
    length = (last.hour - first.hour) % 24
    if unit == "minute":
        if parts.window and first.minute:
            raise refused(words, "an interval of minutes goes with full hours, such as between 9:00 and 17:00.")
        if 60 % count:
            raise refused(
                words, "within named hours or days an interval divides the hour: 5, 10, 15, 20 or 30 minutes."
            )
        if not parts.window:
            return rhythm, "*"
        return rhythm, joined(sorted((first.hour + away) % 24 for away in range(length or 24)))
    if not parts.window and 24 % count:
        raise refused(words, "within named days an interval divides the day: 1, 2, 3, 4, 6, 8 or 12 hours.")
    minute = first.minute if parts.mark is None else parts.mark
    if not parts.window:
        return str(minute), "*" if count == 1 else f"*/{count}"
    return str(minute), joined(sorted((first.hour + away) % 24 for away in range(0, length + 1, count)))
