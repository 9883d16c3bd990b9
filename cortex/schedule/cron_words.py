"""A cron line in words for a person, exact: `every weekday (Mon-Fri) at 07:30`. Never guesses what was meant."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from cortex.schedule.cron import LAST, LAST_WORKDAY, CronLine, Nth

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
TIMES_LISTED = 8
WORKDAYS = frozenset(range(1, 6))
_NTH = {LAST: "last", 1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}


def described(line: CronLine) -> str:
    """The whole line: its days, then its times; what is not said is every day."""
    times, is_points = _times(line)
    days = _days(line)
    if is_points:
        return f"{days or 'every day'} {times}"
    return f"{times}, {days}" if days else times


def ordinal(number: int) -> str:
    """`1st`, `22nd`, `13th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def listed(words: Sequence[str]) -> str:
    """`Monday, Wednesday and Friday`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _times(line: CronLine) -> tuple[str, bool]:
    """The times of a day, and whether they are points (`at 09:00`) and not a rhythm (`every 15 minutes`)."""
    minutes, hours = line.minutes, line.hours
    if len(hours) == 24:
        return _through_the_day(minutes), False
    if len(minutes) * len(hours) <= min(TIMES_LISTED, 4 if len(minutes) > 1 else TIMES_LISTED):
        return "at " + listed([f"{hour:02}:{minute:02}" for hour in hours for minute in minutes]), True
    minute_step, hour_step = _step(minutes), _step(hours)
    if len(minutes) == 1 and hour_step:
        rhythm = "every hour" if hour_step == 1 else f"every {hour_step} hours"
        return f"{rhythm} from {hours[0]:02}:{minutes[0]:02} to {hours[-1]:02}:{minutes[0]:02}", False
    spans = _over_midnight(hours)
    if minute_step and 60 % minute_step == 0 and len(minutes) == 60 // minute_step and len(spans) <= 2:
        each = "every minute" if minute_step == 1 else f"every {minute_step} minutes"
        spans_read = [f"from {first:02}:{minutes[0]:02} to {last:02}:{minutes[-1]:02}" for first, last in spans]
        return f"{each} {' and '.join(spans_read)}", False
    ranges = [_range_text(run, "{:02}".format) for run in _runs(hours)]
    return f"at {_minute_marks(minutes)} of the hours {listed(ranges)}", True


def _through_the_day(minutes: Sequence[int]) -> str:
    if len(minutes) == 60:
        return "every minute"
    if minutes == (0,):
        return "every hour, on the hour"
    step = _step(minutes)
    if step and 60 % step == 0 and minutes[0] < step and len(minutes) == 60 // step:
        return f"every {step} minutes (at {_minute_marks(minutes)})" if len(minutes) <= 6 else _from_mark(step, minutes)
    return f"every hour at {_minute_marks(minutes)}"


def _from_mark(step: int, minutes: Sequence[int]) -> str:
    return f"every {step} minutes from {_minute_marks(minutes[:1])} of each hour"


def _minute_marks(minutes: Sequence[int]) -> str:
    return listed([f":{minute:02}" for minute in minutes])


def _step(numbers: Sequence[int]) -> int:
    """The even distance of the numbers, three at least; 0 when there is none."""
    gaps = {later - sooner for sooner, later in pairwise(numbers)}
    return gaps.pop() if len(gaps) == 1 and (len(numbers) > 2 or 60 in (len(numbers) * gap for gap in gaps)) else 0


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Numbers that follow one another, as first and last."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _over_midnight(hours: Sequence[int]) -> list[tuple[int, int]]:
    """Stretches of hours, first and last; one that goes on over midnight is one."""
    runs = _runs(hours)
    if len(runs) > 1 and runs[0][0] == 0 and runs[-1][1] == 23:
        return [*runs[1:-1], (runs[-1][0], runs[0][1])]
    return runs


def _range_text(run: tuple[int, int], word: Callable[[int], str]) -> str:
    first, last = run
    return word(first) if first == last else f"{word(first)} to {word(last)}"


def _days(line: CronLine) -> str:
    """The days; "" when it is every day of the year."""
    by_month = "" if line.is_any_day else _month_days(line)
    by_week = "" if line.is_any_weekday else _weekdays(line)
    months = "" if len(line.months) == 12 else listed([MONTHS[month - 1] for month in line.months])
    if by_month and by_week:
        joint = f"{by_week} that falls {by_month}" if line.is_both else f"{by_month}, and also {by_week}"
        return f"{joint}, in {months}" if months else joint
    is_open = not line.is_both and (line.is_any_day or line.is_any_weekday)  # either is enough, and one is every day
    only = "" if is_open else by_month or by_week
    if not only:
        return f"every day in {months}" if months else ""
    if len(line.months) == 1 and only == by_month and _is_one_date(line):
        return f"every year on {min(line.days)} {months}{_leap(line)}"
    return f"{only} in {months}" if months else only


def _is_one_date(line: CronLine) -> bool:
    return len(line.days) == 1 and min(line.days) > 0


def _leap(line: CronLine) -> str:
    return " (leap years only)" if line.months == (2,) and line.days == {29} else ""


def _weekdays(line: CronLine) -> str:
    words = []
    if line.weekdays == WORKDAYS:
        words.append("every weekday (Mon-Fri)")
    elif len(line.weekdays) == 6:
        words.append(f"every day except {WEEKDAYS[(set(range(7)) - line.weekdays).pop()]}")
    elif line.weekdays:
        names = [WEEKDAYS[one] for one in sorted(line.weekdays, key=lambda one: (one - 1) % 7)]
        words.append(f"every {listed(names)}")
    if line.nths:
        words.append(f"on the {_nths(sorted(line.nths, key=_rank))} of the month")
    return " and ".join(words)


def _rank(one: Nth) -> tuple[int, int]:
    return (one.nth if one.nth > 0 else 9, (one.weekday - 1) % 7)


def _nths(which: Sequence[Nth]) -> str:
    if len({one.weekday for one in which}) == 1:
        return f"{listed([_NTH[one.nth] for one in which])} {WEEKDAYS[which[0].weekday]}"
    return listed([f"{_NTH[one.nth]} {WEEKDAYS[one.weekday]}" for one in which])


def _month_days(line: CronLine) -> str:
    numbers = sorted(day for day in line.days if day > 0)
    words = [_range_text(run, ordinal) for run in _runs(numbers)]
    words += ["last weekday (Mon-Fri)"] if LAST_WORKDAY in line.days else []
    words += ["last day"] if LAST in line.days else []
    longest = numbers[-1] if numbers and len(line.days) == 1 else 0
    has_short = longest > 28 and any(longest > _length(month) for month in line.months)
    note = f" (only in months that have a {ordinal(longest)})" if has_short and len(line.months) > 1 else ""
    return f"on the {listed(words)} of the month{note}"


def _length(month: int) -> int:
    return 28 if month == 2 else 30 if month in (4, 6, 9, 11) else 31
