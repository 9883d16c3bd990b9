"""`cortex jobs`: list them, and run one now, while the daemon runs. `preview` stands by itself in `preview.py`.

Both open the services at rest: a run is noted in the ledger, where the running daemon finds it within two seconds.
Where it can be known that none runs, nothing is noted; on a shared database what nobody begins is withdrawn.
"""

import asyncio
import json
from typing import Annotated, Any

import typer

from cortex.app import Cortex
from cortex.base.clock import ticks_s
from cortex.base.errors import NotFound, UserError
from cortex.base.ids import is_named, short
from cortex.base.job import SLOT_ENDS
from cortex.base.serve_lock import is_served
from cortex.base.settings import Settings
from cortex.base.start import settings_in_force
from cortex.base.user import User
from cortex.commands.preview import jobs
from cortex.services.jobs.jobs import JobView
from cortex.services.jobs.user_jobs import said
from cortex.storage.slots import SlotRow

__all__ = ["jobs"]

LOOK_S = 0.2
BEGUN_WITHIN_S = 8.0
NOT_RUNNING = "Cortex is not running: start it with `cortex serve`, then run the job again. Nothing was planned."
NOT_BEGUN = "no Cortex began it"

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Person = Annotated[str, typer.Option("--user", help="Only the jobs of this account; empty: everybody's.")]
Which = Annotated[str, typer.Argument(help="The job's id, its last six characters, or its name.")]
Wait = Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for the end; 0: only note it.")]

Owned = tuple[User, JobView]


@jobs.command("list")
def list_jobs(user: Person = "", as_json: Json = False) -> None:
    """List the jobs: when each runs next, and how its last run ended."""
    rows = asyncio.run(_listed(user))
    if as_json:
        typer.echo(json.dumps([_plain(*row) for row in rows], ensure_ascii=False, indent=2))
        return
    for owner, view in rows:
        job = view.job
        when = f"next {job.next_at:%Y-%m-%d %H:%M} UTC" if job.next_at else "paused" if not job.is_enabled else "over"
        last = f", last {said(view.last)}" if view.last else ""
        typer.echo(f"{short(job.id)}  {owner.name}  {job.name}: {job.words}, {when}{last}")
    if not rows:
        typer.echo("No job yet. Ask for one in a chat, such as: every weekday at 7 sum up my tasks")


@jobs.command("run")
def run_job(job: Which, user: Person = "", wait: Wait = 120.0) -> None:
    """Run a job now, beside its times; prints how it ended. Exit code 1 when it did not end well."""
    slot = asyncio.run(_run(job, user, wait))
    typer.echo(f"{said(slot)}" + (f"\n{slot.result}" if slot.result else ""))
    if slot.state not in ("done", *(("planned", "running") if wait == 0 else ())):
        raise typer.Exit(1)


async def _listed(name: str) -> list[Owned]:
    async with Cortex.at_rest(settings_in_force()) as cortex:
        return await _all(cortex, name)


async def _all(cortex: Cortex, name: str) -> list[Owned]:
    """Every job of this account, or of all."""
    people = [await cortex.accounts.named(name)] if name else await cortex.accounts.users()
    found: list[Owned] = []
    for person in people:
        page, has_more = 1, True
        while has_more:
            listed = await cortex.jobs.list(person, page=page)
            found += [(person, view) for view in listed.jobs]
            page, has_more = page + 1, listed.has_more
    return found


async def _run(wanted: str, name: str, wait_s: float) -> SlotRow:
    settings = settings_in_force()
    is_shared = _is_shared(settings)
    if not is_shared and not is_served(settings.home):
        raise UserError(NOT_RUNNING)
    async with Cortex.at_rest(settings) as cortex:
        owner, view = _one(await _all(cortex, name), wanted)
        id = await cortex.jobs.run_now(owner, view.job.id)
        if is_shared and wait_s:
            await _begun(cortex, owner, id, min(wait_s, BEGUN_WITHIN_S))
        return await _ended(cortex, owner, id, wait_s)


def _is_shared(settings: Settings) -> bool:
    """Tell whether others may serve this server without the lock of HOME, so that the lock says nothing."""
    return settings.is_postgresql or settings.allow_second_process


async def _begun(cortex: Cortex, owner: User, id: str, within_s: float) -> None:
    """Once somebody has begun the run, or lets it wait for a reason; else it is withdrawn, and UserError."""
    ends_s = ticks_s() + within_s
    while ticks_s() < ends_s:
        slot = await cortex.jobs.slot(owner, id)
        if slot.state != "planned" or slot.attempt or slot.why:
            return
        await asyncio.sleep(LOOK_S)
    if await cortex.jobs.withdraw(owner, id, NOT_BEGUN):
        raise UserError(
            f"It was not started within {within_s:g} s, so it was cancelled: is Cortex running (`cortex serve`, or "
            "`cortex worker`), and not busy with other jobs?"
        )


async def _ended(cortex: Cortex, owner: User, id: str, wait_s: float) -> SlotRow:
    """The slot once it has ended, or as it stands after so long."""
    began_s = ticks_s()
    while True:
        slot = await cortex.jobs.slot(owner, id)
        if slot.state in SLOT_ENDS or ticks_s() - began_s >= wait_s:
            return slot
        await asyncio.sleep(LOOK_S)


def _one(rows: list[Owned], wanted: str) -> Owned:
    """The one job that is meant; else an error that says which there are."""
    key = wanted.strip().casefold()
    by_id = [row for row in rows if is_named(row[1].job.id, key)]
    found = by_id or [row for row in rows if row[1].job.name.casefold() == key]
    if not found:
        raise NotFound(f"There is no job {wanted!r}. See `cortex jobs list`.")
    if len(found) > 1:
        names = ", ".join(f"{short(view.job.id)} ({owner.name})" for owner, view in found)
        raise UserError(f"{len(found)} jobs are called {wanted!r}: {names}. Name one by its id.")
    return found[0]


def _plain(owner: User, view: JobView) -> dict[str, Any]:  # Any: whatever JSON can say
    job = view.job
    return {
        "id": job.id,
        "user": owner.name,
        "name": job.name,
        "kind": job.kind,
        "when": job.words,
        "expression": job.expression,
        "time_zone": job.time_zone,
        "is_enabled": job.is_enabled,
        "next_at": job.next_at.isoformat() if job.next_at else None,
        "last": said(view.last) if view.last else "",
    }
