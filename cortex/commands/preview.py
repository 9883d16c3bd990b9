"""`cortex jobs preview`: when a cron line or words about time come next. Opens no services and reads no database.

`web/__main__.py` runs it by itself, so that it need not wait for what the other commands load.
"""

import json
import re
import zoneinfo
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from cortex.base import clock
from cortex.base.errors import ToolFailed, UserError
from cortex.base.settings import read_settings
from cortex.ports.schedule import Timing
from cortex.schedule.clock_changes import clock_changes
from cortex.schedule.moments import zone_of
from cortex.schedule.phrase import YEARS
from cortex.schedule.reading import Reader

MOST = 1000
OPTION = re.compile(r"--?[A-Za-z]")

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
jobs = typer.Typer(help="Scheduled jobs.", no_args_is_help=True)
app.add_typer(jobs, name="jobs")

When = Annotated[
    list[str] | None, typer.Argument(help="A cron line in quotes, or words: every weekday at half past seven.")
]
Zone = Annotated[str, typer.Option("--tz", help="The time zone, such as Europe/Berlin; none: CORTEX_TIME_ZONE.")]
From = Annotated[str, typer.Option("--from", help="Times after this moment, such as 2027-03-27T00:00; none: now.")]
Count = Annotated[str, typer.Option("--count", help="How many times, 1 to 1000.")]
Json = Annotated[bool, typer.Option("--json", help="Print a JSON list of ISO times with their offset.")]


@jobs.callback()
def about() -> None:
    """Scheduled jobs."""


@jobs.command("preview", context_settings={"ignore_unknown_options": True})  # a cron line may begin with a dash
def preview(when: When = None, tz: Zone = "", since: From = "", count: Count = "10", as_json: Json = False) -> None:
    """Show when it comes next: the reading in words, the times, and the days on which the clock changes."""
    _refuse_options(when or ())
    zone = _zone(tz or read_settings().time_zone)
    after = _moment(since, zone)
    if not (count.isdecimal() and count.isascii() and len(count) < 6 and 1 <= int(count) <= MOST):
        raise UserError(f"{count!r} is not valid; write a number from 1 to {MOST}.")
    reader, words = Reader(), " ".join(when or ())
    timing = reader.read(words, after, zone.key)
    times = [at.astimezone(zone) for at in reader.following(timing, after, int(count))]
    if not times:
        raise ToolFailed(f"{words!r} never comes after {after.isoformat()}.")
    if as_json:
        typer.echo(json.dumps([at.isoformat() for at in times], indent=2))
        return
    _print_times(timing, times, after)


def _print_times(timing: Timing, times: list[datetime], after: datetime) -> None:
    typer.echo(f"{timing.words} ({timing.time_zone})")
    for at in times:
        typer.echo(f"  {at:%a} {at.isoformat(sep=' ', timespec='seconds' if at.second else 'minutes')}")
    for change in clock_changes(timing, times, after):
        typer.echo(change.words)


def _refuse_options(words: Sequence[str]) -> None:
    """UserError for a word that is an option which this command does not have."""
    if strange := next((word for word in words if OPTION.match(word)), ""):
        raise UserError(f"There is no option {strange!r} here; there are --tz, --from, --count and --json.")


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zone_of(name)
    except ToolFailed as error:
        raise UserError(error.message) from error


def _moment(text: str, zone: zoneinfo.ZoneInfo) -> datetime:
    """The moment in ISO's form, in the zone unless it says its own; now for no text. UserError for anything else."""
    if not text:
        return clock.now()
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UserError(f"{text!r} is not a time; write it like 2027-03-27T00:00.") from error
    if found.year not in YEARS:
        raise UserError(f"Write a year from {YEARS[0]} to {YEARS[-1]}.")
    return found if found.tzinfo else found.replace(tzinfo=zone)
