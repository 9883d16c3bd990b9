"""The user's scheduled jobs: prompts that run by themselves. Slots and firing are the scheduler's, not this file's."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from cortex.base.errors import Conflict, ToolFailed
from cortex.base.ids import derived_id, is_named
from cortex.base.ids import short as short_id
from cortex.base.record import as_dict
from cortex.base.zone import moment, short_moment
from cortex.ports.schedule import Job, Jobs, Timing, Timings
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import CallPreview, Output
from cortex.toolkit.words import NO_CHANGE, counted, indented, short

SUMMARY = "jobs that run on a schedule"
NEEDS = ("Jobs", "Timings")
ROLES = {"orchestrator": ("cron",)}
TESTED = "the real scheduler, and accelerated years"
SAMPLES = {"cron_add": {"prompt": "sum up the news", "when": "every day at 9"}}
SHOWN = 40
PROMPT_CHARACTERS = 4_000
NAME_CHARACTERS = 80
TIMES = 3
LEAST_GAP = timedelta(minutes=1)


@tool(words="Look at your jobs[, for {query}]", effect="read", reads_private=True)
async def cron_list(ctx: Ctx, query: str = "") -> Output:
    """Show the user's scheduled jobs and when they run next.

    Args:
        query: Words in the name or prompt.
    """
    words = query.casefold().split()
    jobs = [job for job in await ctx.use(Jobs).list() if _holds(job, words)]
    lines = [_line(ctx, job) for job in jobs[:SHOWN]]
    if len(jobs) > SHOWN:
        lines.append(f"... and {len(jobs) - SHOWN} more: narrow it by query.")
    nothing = f"No job has {query!r}." if query else "There is no scheduled job. Add one with cron_add."
    tainted = any(job.is_tainted for job in jobs[:SHOWN])
    return Output(text="\n".join(lines) or nothing, words=counted(len(jobs), "job"), is_tainted=tainted)


def _prompt(prompt: str) -> str:
    asked = prompt.strip()
    if not 0 < len(asked) <= PROMPT_CHARACTERS:
        raise ToolFailed(f"A prompt has 1 to {PROMPT_CHARACTERS} characters.")
    return asked


def _title(name: str, asked: str) -> str:
    """Call a job by its name, else by the first words of what it does."""
    return " ".join(name.split())[:NAME_CHARACTERS] or " ".join(asked.split())[:40]


async def _can_add(ctx: Ctx, prompt: str, when: str, name: str) -> None:
    _prompt(prompt)
    await _times(ctx, when)


async def _preview(ctx: Ctx, prompt: str, when: str, name: str) -> CallPreview:
    timing, times = await _times(ctx, when)
    zone = ctx.user.time_zone
    nexts = [short_moment(at, zone, ctx.now) for at in times]
    is_once = timing.kind == "at"
    moments = f"once, {nexts[0]}" if is_once else timing.words_in(zone)
    facts = [f"When: {nexts[0] if is_once else timing.words}", f"Next: {', '.join(nexts) or 'none yet'} ({zone})"]
    return CallPreview(
        title=f"Schedule “{_title(name, _prompt(prompt))}” {moments}",
        detail="\n".join([*facts, "What to do:", *indented(prompt)]),
    )


@tool(words="Schedule[ “{name}”] {when}", risk="high", idempotent=True, check=_can_add, preview=_preview)
async def cron_add(ctx: Ctx, prompt: str, when: str, name: str = "") -> str:
    """Schedule a job: a prompt you will run at these times.

    Args:
        prompt: What to do then, complete in itself.
        when: Such as every weekday at 7, a cron line, or an hour before each appointment named dentist.
        name: A short name.
    """
    asked = _prompt(prompt)
    title = _title(name, asked)

    async def find() -> dict[str, Any]:
        timing, times = await _times(ctx, when)
        return {"timing": as_dict(timing), "next": _shown(ctx, times)}

    target = await ctx.target(find)
    timing, marks = Timing(**target["timing"]), {"is_tainted": ctx.is_tainted, "is_private": ctx.has_read_private}
    job = await ctx.use(Jobs).add(derived_id(ctx.call_id, "job"), title, asked, timing, ctx.role, **marks)
    ctx.leave_undo(target=job.id, before=None, expected=str(job.version), label="Remove the job again")
    return f"Scheduled: {_fact(ctx, job)}. Next: {target['next'] or 'no such appointment yet'}."


@tool(words="Delete the job {job}", ends=True, idempotent=True, reads_private=True)
async def cron_remove(ctx: Ctx, job: str) -> Output:
    """Delete a scheduled job.

    Args:
        job: Its id, or words of its name.
    """
    target = await ctx.target(lambda: _target(ctx, job))
    if not ctx.is_again or await _now(ctx, target["id"]) is not None:  # else an earlier try has deleted it
        await ctx.use(Jobs).remove(target["id"], target["version"])
    ctx.leave_undo(target=target["id"], before={"name": target["name"]}, expected="", label="Put the job back")
    text = f"Deleted the job {target['name']!r}; it will not run again."
    return Output(text=text, is_tainted=target["is_tainted"])


def _switched(arguments: Mapping[str, Any]) -> str:
    return f"{'Resume' if arguments['enabled'] else 'Pause'} the job {short(arguments['job'])}"


@tool(words=_switched, idempotent=True, reads_private=True)
async def cron_toggle(ctx: Ctx, job: str, enabled: bool) -> Output:
    """Pause a scheduled job, or let it run again.

    Args:
        job: Its id, or words of its name.
        enabled: False pauses it.
    """
    target = await ctx.target(lambda: _target(ctx, job))
    if target["is_enabled"] == enabled:
        told = f"The job {target['name']!r} is {'on' if enabled else 'paused'} already."
        return Output(text=told, words=NO_CHANGE, is_tainted=target["is_tainted"])
    made = await _now(ctx, target["id"]) if ctx.is_again else None
    if made is None or made.is_enabled != enabled:  # else an earlier try has switched it
        made = await ctx.use(Jobs).enable(target["id"], enabled, target["version"])
    before = {"is_enabled": not enabled}
    label = "Pause the job again" if enabled else "Let the job run again"
    ctx.leave_undo(target=made.id, before=before, expected=str(made.version), label=label)
    if not enabled:
        return Output(text=f"Paused the job {made.name!r}.", is_tainted=made.is_tainted)
    times = await _following(ctx, made.timing)
    told = f"The job {made.name!r} runs again. Next: {_shown(ctx, times) or 'never'}."
    return Output(text=told, is_tainted=made.is_tainted)


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Take a job back out, put a deleted one back, or switch it as it was. Conflict when it changed since."""
    jobs = ctx.use(Jobs)
    if before is not None and "name" in before:
        job = await jobs.restore(target)
        ctx.leave_redo(target=target, before=None, expected=str(job.version))
        return f"The job {job.name!r} is back."
    found = next((job for job in await jobs.list() if job.id == target), None)
    if found is None or str(found.version) != expected:
        raise Conflict("The job has changed since and was left as it is.")
    if before is None:
        await jobs.remove(target, found.version)
        ctx.leave_redo(target=target, before={"name": found.name}, expected="")
        return f"Removed the job {found.name!r} again."
    made = await jobs.enable(target, bool(before["is_enabled"]), found.version)
    ctx.leave_redo(target=target, before={"is_enabled": found.is_enabled}, expected=str(made.version))
    return f"The job {made.name!r} is {'on' if made.is_enabled else 'paused'} again."


async def _times(ctx: Ctx, when: str) -> tuple[Timing, Sequence[datetime]]:
    """The timing that the words mean and its next moments; ToolFailed when there is none, or they come too thick."""
    timings = ctx.use(Timings)
    beside = timings.by_appointments(when, ctx.user.time_zone)
    timing = beside or timings.read(when, ctx.now, ctx.user.time_zone)
    times = await _following(ctx, timing)
    if beside:
        return timing, times  # none may be to come today, and some tomorrow
    if not times:
        raise ToolFailed(f"{when!r} never happens. Enter a time in the future.")
    if any(later - sooner < LEAST_GAP for sooner, later in pairwise(times)):
        raise ToolFailed("A job can run at most once per minute. Choose a longer interval.")
    return timing, times


async def _following(ctx: Ctx, timing: Timing) -> Sequence[datetime]:
    if timing.kind == "appointment":
        return await ctx.use(Jobs).following(timing, TIMES)
    return ctx.use(Timings).following(timing, ctx.now, TIMES)


async def _target(ctx: Ctx, wanted: str) -> dict[str, Any]:
    """The job that is meant, as it stands now."""
    job = await _find(ctx, wanted)
    return {name: getattr(job, name) for name in ("id", "version", "name", "is_enabled", "is_tainted")}


async def _now(ctx: Ctx, id: str) -> Job | None:
    """The job as it stands now; None when it is gone."""
    return next((job for job in await ctx.use(Jobs).list() if job.id == id), None)


def _holds(job: Job, words: list[str]) -> bool:
    text = f"{job.name} {job.prompt}".casefold()
    return all(word in text for word in words)


async def _find(ctx: Ctx, wanted: str) -> Job:
    """The one job that is meant; ToolFailed names the candidates when it is not one."""
    key = " ".join(wanted.casefold().split()).removeprefix("#")
    if not key:
        raise ToolFailed("Say which job: its id, or words of its name.")
    jobs = await ctx.use(Jobs).list()
    ways = (
        [job for job in jobs if is_named(job.id, key)],
        [job for job in jobs if job.name.casefold() == key],
        [job for job in jobs if set(key.split()) <= set(job.name.casefold().split())],
        [job for job in jobs if _holds(job, key.split())],
    )
    for hits in ways:
        if len(hits) == 1:
            return hits[0]
        if hits:
            names = "; ".join(f"{job.name} (id {short_id(job.id)})" for job in hits[:5])
            told = f"{len(hits)} jobs fit {wanted!r}: {names}. Use the id."
            raise ToolFailed(told, is_tainted=any(job.is_tainted for job in hits))
    raise ToolFailed(f"No job fits {wanted!r}. Look with cron_list.")


def _fact(ctx: Ctx, job: Job) -> str:
    return f"{job.name} (id {short_id(job.id)}, {job.timing.words_in(ctx.user.time_zone)})"


def _line(ctx: Ctx, job: Job) -> str:
    """One job in one line: `- News (id 1a2b3c, every day at 07:00, next 2026-11-21 07:00, last: done): Sum up ...`."""
    facts = [f"id {short_id(job.id)}", job.timing.words_in(ctx.user.time_zone)]
    if not job.is_enabled:
        facts.append("paused")
    elif job.next_at is not None:
        facts.append(f"next {moment(job.next_at, ctx.user.time_zone)}")
    if job.last:
        facts.append(f"last: {job.last[:80]}")
    return f"- {job.name} ({', '.join(facts)}): {' '.join(job.prompt.split())[:120]}"


def _shown(ctx: Ctx, times: Sequence[datetime]) -> str:
    return ", ".join(moment(at, ctx.user.time_zone) for at in times)
