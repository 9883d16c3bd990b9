"""Writes the cron line of days and times that a phrase named, or says why one line can't hold them."""

from collections.abc import Sequence

from cortex.base.errors import ToolFailed
from cortex.schedule.cron import parse
from cortex.schedule.phrase import Clock, DayPart, Days, Parts, refused

USUAL = Clock(hour=9, minute=0)  # of a day without a time
TONIGHT = Clock(hour=20, minute=0)
OF_PART: dict[DayPart, Clock] = {
    "morning": Clock(hour=8, minute=0),
    "afternoon": Clock(hour=15, minute=0),
    "evening": Clock(hour=19, minute=0),
    "night": Clock(hour=22, minute=0),
}


def usual_clock(parts: Parts) -> Clock:
    """The time of day of a phrase that says none."""
    if parts.days.offset == 0 and parts.part == "night":
        return TONIGHT
    return OF_PART.get(parts.part, USUAL)


def line_of(words: str, days: Days, clocks: Sequence[Clock]) -> str:
    """The cron line of these days at these times; ToolFailed when one line can't say it, or it never comes."""
    minutes = sorted({clock.minute for clock in clocks})
    hours = sorted({clock.hour for clock in clocks})
    if len(minutes) * len(hours) != len(clocks):
        times = " and ".join(f"{clock.hour:02}:{clock.minute:02}" for clock in clocks)
        raise refused(words, f"{times} have different minutes; make one for each time.")
    return day_line(words, days, joined(minutes), joined(hours))


def day_line(words: str, days: Days, minutes: str, hours: str) -> str:
    """The same for minutes and hours that are written already."""
    weekdays, monthdays = joined(sorted(days.weekdays)), joined(days.monthdays)
    months = joined(days.months)
    if days.date:
        monthdays, months = str(days.date.day), joined(sorted({*days.months, days.date.month}))
    if days.nths:
        if weekdays != "*" or monthdays != "*":
            raise refused(words, "it names days in two ways; make one for each.")
        monthdays, weekdays = _nth_fields(words, days)
    if weekdays != "*" and monthdays != "*":
        raise refused(words, "it names weekdays and days of the month; a schedule follows one of them.")
    line = f"{minutes} {hours} {monthdays} {months} {weekdays}"
    try:
        parse(line)
    except ToolFailed as error:
        raise refused(words, "that day never comes.") from error
    return line


def joined(numbers: Sequence[int]) -> str:
    """A field of these sorted numbers, three or more in a row as a range; a star for none."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    ranges = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs]
    return ",".join(ranges) or "*"


def _nth_fields(words: str, days: Days) -> tuple[str, str]:
    """The fields for days of the month and weekdays that say `last Friday` or `first day`."""
    if len({isinstance(day, int) for _, day in days.nths}) > 1:
        raise refused(words, "it names days in two ways; make one for each.")
    fields = [_nth_field(words, number, day) for number, day in days.nths]
    if isinstance(days.nths[0][1], int):
        return "*", ",".join(fields)
    return ",".join(fields), "*"


def _nth_field(words: str, number: int, day: int | str) -> str:
    if isinstance(day, int):
        if number > 5:
            raise refused(words, "a month has five of a weekday at most.")
        return f"{day}L" if number == -1 else f"{day}#{number}"
    if day == "day":
        return "L" if number == -1 else str(number)
    if number != -1:
        raise refused(words, "only the last weekday (Mon-Fri) of a month can be named; else write a date.")
    return "LW"
