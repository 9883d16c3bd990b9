"""Jobs and their runs in words: states, moments in a job's own zone, the last runs as one sentence, lines of a preview.

Pure; used by the pages of jobs and their templates, which have the words by `JobWordsContext`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from markupsafe import Markup
from msgspec import Struct

from cortex.base.job import SlotState
from cortex.services.jobs.jobs import Preview, RunBar
from web.figures import exact, moment, when
from web.render import Context, described

STATES: dict[SlotState, str] = {
    "planned": "queued",
    "running": "runs",
    "done": "done",
    "failed": "failed",
    "denied": "not allowed",
    "stopped": "stopped",
    "missed": "missed",
    "skipped": "skipped",
}
LIVE: tuple[SlotState, ...] = ("planned", "running")


class PreviewLine(Struct, frozen=True, kw_only=True):
    """A line of a preview: a time, or what a change of the clock means."""

    text: str
    is_change: bool = False


def at_zone(at: datetime, zone: str) -> str:
    """Mon 23 Nov 2026, 07:30 +01:00; in UTC where this machine does not know the zone."""
    there = at.astimezone(_zone(zone))
    return f"{exact(there, _zone(zone))} {there.isoformat()[-6:]}"


def said_at(at: datetime, zone: str, readers: str) -> str:
    """As people say it in this zone: tomorrow 07:30, and the zone where it is another than the reader's."""
    return moment(at, _zone(zone)) + _where(zone, readers)


def when_at(at: datetime, zone: str, readers: str) -> Markup:
    """The same where it stands for itself."""
    return when(at, _zone(zone), _where(zone, readers))


def _where(zone: str, readers: str) -> str:
    return "" if zone == readers else f", {zone}"


def in_line(since: datetime, before: int, zone: str) -> str:
    """Return what a run says that waits for a free place: since when, and how many begin before it."""
    told = f"waiting in line since {since.astimezone(_zone(zone)):%H:%M}"
    return f"{told}, {before} before it" if before else f"{told}, next to start"


def lines(preview: Preview) -> tuple[PreviewLine, ...]:
    """The times in order, each change of the clock before the first time that comes after it."""
    waiting = list(preview.changes)
    found: list[PreviewLine] = []
    zone = _zone(preview.timing.time_zone)
    is_plain = zone is not UTC and len({at.astimezone(zone).utcoffset() for at in preview.times}) == 1
    titles = preview.titles or ("",) * len(preview.times)
    for at, title in zip(preview.times, titles, strict=True):
        while waiting and waiting[0].day <= at.date():
            found.append(PreviewLine(text=waiting.pop(0).words, is_change=True))
        # The zone stands above: an offset says something only where it changes, or where the zone is not known.
        told = exact(at, zone) if is_plain else at_zone(at, preview.timing.time_zone)
        found.append(PreviewLine(text=f"{told}: {title}" if title else told))
    return (*found, *(PreviewLine(text=one.words, is_change=True) for one in waiting))


def summed(bars: Sequence[RunBar]) -> str:
    """The last 14 runs: 12 done, 2 failed; the newest failed."""
    if not bars:
        return "no runs yet"
    count = Counter(bar.state for bar in bars)
    told = ", ".join(f"{count[state]} {words}" for state, words in STATES.items() if count[state])
    newest = STATES[bars[-1].state]
    return f"the last {len(bars)}: {told}; the newest: {newest}" if len(bars) > 1 else f"one run: {newest}"


def titled(bar: RunBar, zone: str) -> str:
    """Return what a bar says when it is pointed at."""
    why = f", {bar.why}" if bar.why else ""
    by_hand = ", started manually" if bar.is_by_hand else ""
    return f"{bar.due_at.astimezone(_zone(zone)):%Y-%m-%d %H:%M}: {STATES[bar.state]}{why}{by_hand}"


def is_live(bars: Sequence[RunBar]) -> bool:
    """Tell whether the newest run is still to end."""
    return bool(bars) and bars[-1].state in LIVE


class JobWordsContext(Context, frozen=True, kw_only=True):
    """The values that `job_parts.html` needs on each page that shows jobs."""

    at_zone: Callable[..., str] = described("a moment in a zone, with its offset", default=at_zone)
    said_at: Callable[..., str] = described("a moment in words, with the zone where it differs", default=said_at)
    when_at: Callable[..., str] = described("the same where it stands for itself", default=when_at)
    in_line: Callable[..., str] = described("a run that waits in line, as words", default=in_line)
    summed: Callable[..., str] = described("bars as a sentence", default=summed)
    titled: Callable[..., str] = described("a bar as words", default=titled)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # of another machine, or gone from this one
        return UTC
