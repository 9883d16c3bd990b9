"""The states of some hours in a few lines: lowest, highest and mean of numbers, times and durations of everything else.

Pure rules over `ports/home_assistant.py`; used by `tools/ha.py`.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from cortex.base.zone import moment
from cortex.ports.home_assistant import StateChange

SAMPLES = 8
CHANGES = 12
STATE_CHARACTERS = 60
UNTOLD = frozenset({"unavailable", "unknown", ""})


def history_lines(changes: Sequence[StateChange], unit: str, until: datetime, hours: int, time_zone: str) -> list[str]:
    """Some lines about the hours ahead of `until`, in the person's time zone; one line when nothing was kept."""
    since = until - timedelta(hours=hours)
    held = [one for one in changes if one.at < until]
    if not held:
        return [f"Home Assistant kept no state of the last {_span(timedelta(hours=hours))}."]
    numbers = [(one, number) for one in held if (number := _number(one.state)) is not None]
    if numbers and len(numbers) + sum(one.state in UNTOLD for one in held) == len(held):
        return _told_numbers(numbers, unit, since, until, time_zone)
    return _told_states(held, since, until, time_zone)


def _told_numbers(
    numbers: Sequence[tuple[StateChange, float]], unit: str, since: datetime, until: datetime, zone: str
) -> list[str]:
    low, high = min(numbers, key=lambda one: one[1]), max(numbers, key=lambda one: one[1])
    weighted, seconds = 0.0, 0.0
    for place, (one, number) in enumerate(numbers):
        end = numbers[place + 1][0].at if place + 1 < len(numbers) else until
        held_s = max(0.0, (end - max(one.at, since)).total_seconds())
        weighted, seconds = weighted + number * held_s, seconds + held_s
    mean = weighted / seconds if seconds else numbers[-1][1]
    mark = f" {unit}" if unit else ""
    lines = [
        f"last {_span(until - since)}: lowest {low[1]:g}{mark} ({moment(max(low[0].at, since), zone)}), highest "
        f"{high[1]:g}{mark} ({moment(max(high[0].at, since), zone)}), mean {mean:.4g}{mark}, {_times(len(numbers))}"
    ]
    if len(numbers) > 2:
        step = (until - since) / SAMPLES
        marks = [since + step * place for place in range(1, SAMPLES + 1)]
        known = [(mark_at, _at(numbers, mark_at)) for mark_at in marks]
        lines += [f"{moment(mark_at, zone)}: {value:g}" for mark_at, value in known if value is not None]
    return lines


def _told_states(held: Sequence[StateChange], since: datetime, until: datetime, zone: str) -> list[str]:
    spent: dict[str, timedelta] = {}
    for place, one in enumerate(held):
        end = held[place + 1].at if place + 1 < len(held) else until
        lasted = max(timedelta(0), end - max(one.at, since))
        spent[_shown(one.state)] = spent.get(_shown(one.state), timedelta(0)) + lasted
    longest = sorted(spent.items(), key=lambda each: -each[1])[:6]
    sums = ", ".join(f"{state} for {_span(lasted)}" for state, lasted in longest)
    lines = [f"last {_span(until - since)}: {sums}; {_times(len(held))}"]
    if len(held) > CHANGES:
        lines.append(f"the last {CHANGES} changes:")
    return [*lines, *(f"{moment(max(one.at, since), zone)}: {_shown(one.state)}" for one in held[-CHANGES:])]


def _at(numbers: Sequence[tuple[StateChange, float]], at: datetime) -> float | None:
    found = None
    for one, number in numbers:
        if one.at > at:
            break
        found = number
    return found


def _times(count: int) -> str:
    return f"{count} state{'' if count == 1 else 's'} kept"


def _shown(state: str) -> str:
    return " ".join(state.split())[:STATE_CHARACTERS]


def _number(state: str) -> float | None:
    try:
        number = float(state)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _span(length: timedelta) -> str:
    minutes = round(length.total_seconds() / 60)
    hours, left = divmod(minutes, 60)
    parts = [f"{hours} h" if hours else "", f"{left} min" if left or not hours else ""]
    return " ".join(part for part in parts if part)
