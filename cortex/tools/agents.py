"""Background agents: hand a piece of work to a turn of its own, look after it, stop it. It may start no other."""

from typing import Any

from cortex.base.errors import ToolFailed
from cortex.base.ids import derived_id, is_named, short
from cortex.base.zone import moment
from cortex.ports.agents import AgentRun, Agents
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import Output
from cortex.toolkit.words import NO_CHANGE

SUMMARY = "background agents for long work"
PREFIXES = ("spawn_agent", "agent_status", "agent_cancel")
NEEDS = ("Agents",)
ROLES = {"orchestrator": ("agents",)}
TESTED = "real background runs"
SAMPLES = {"spawn_agent": {"task": "compare the offers"}}
TASK_CHARACTERS = 4_000
RESULT_CHARACTERS = 4_000
SHOWN = 10
OPEN = ("queued", "running", "waiting")


def _task(task: str) -> str:
    words = task.strip()
    if not 0 < len(words) <= TASK_CHARACTERS:
        raise ToolFailed(f"A task has 1 to {TASK_CHARACTERS} characters.")
    return words


async def _can_spawn(ctx: Ctx, task: str, role: str) -> None:
    _task(task)
    await ctx.use(Agents).must_be_possible(ctx.turn_id, role.strip() or ctx.role)


@tool(words="Start a background agent: {task}", risk="medium", idempotent=True, check=_can_spawn)
async def spawn_agent(ctx: Ctx, task: str, role: str = "") -> str:
    """Hand a long task to an agent that works in the background.

    Args:
        task: All it must know; it sees nothing else.
        role: Such as research or coder; your own when left out.
    """
    words = _task(task)
    run_id = derived_id(ctx.call_id, "agent")
    run = await ctx.use(Agents).start(run_id, ctx.turn_id, words, role.strip() or ctx.role, ctx.is_tainted)
    return f"Started in the background: {_fact(ctx, run)}. Its result comes as a new message; do not wait for it."


@tool(words="Look at the background agents[: {agent}]", effect="read", reads_private=True)
async def agent_status(ctx: Ctx, agent: str = "") -> Output:
    """Show what background agents are doing, or one's result.

    Args:
        agent: Its id, or words of its task; empty lists the latest.
    """
    if not agent.strip():
        runs = await ctx.use(Agents).list(SHOWN + 1)
        lines = [f"- {_fact(ctx, run)}" for run in runs[:SHOWN]] or ["No agent has run."]
        lines += ["... and older ones: give words of the task."] if len(runs) > SHOWN else []
        return Output(text="\n".join(lines), is_tainted=any(run.is_tainted for run in runs[:SHOWN]))
    run = await _find(ctx, agent)
    cut = "..." if len(run.result) > RESULT_CHARACTERS else ""
    result = f"\n{run.result[:RESULT_CHARACTERS]}{cut}" if run.result else ""
    return Output(text=f"{_fact(ctx, run)}{result}", is_tainted=run.is_tainted)


async def _can_cancel(ctx: Ctx, agent: str) -> None:
    run = await _find(ctx, agent)
    if run.state not in OPEN:
        raise ToolFailed(f"It has ended already: {_fact(ctx, run)}", is_tainted=run.is_tainted)


@tool(
    words="Stop the background agent {agent}",
    risk="medium",
    ends=True,
    idempotent=True,
    reads_private=True,
    check=_can_cancel,
)
async def agent_cancel(ctx: Ctx, agent: str) -> Output:
    """Stop a background agent.

    Args:
        agent: Its id, or words of its task.
    """

    async def find() -> dict[str, Any]:
        return {"id": (await _find(ctx, agent)).id}

    run = await ctx.use(Agents).get((await ctx.target(find))["id"])
    if run.state not in OPEN and not (ctx.is_again and run.state == "cancelled"):
        text = f"It has ended already: {_fact(ctx, run)}"
        return Output(text=text, words=NO_CHANGE, is_tainted=run.is_tainted)
    run = await ctx.use(Agents).cancel(run.id)
    return Output(text=f"Stopped: {_fact(ctx, run)}", is_tainted=run.is_tainted)


async def _find(ctx: Ctx, wanted: str) -> AgentRun:
    """The one run that is meant, a running one before an ended one; ToolFailed names the candidates."""
    key = " ".join(wanted.casefold().split()).removeprefix("#")
    runs = await ctx.use(Agents).list(50)
    named = [run for run in runs if is_named(run.id, key)]
    words = [run for run in runs if key and set(key.split()) <= set(run.task.casefold().split())]
    hits = named or [run for run in words if run.state in OPEN] or words
    if len(hits) == 1:
        return hits[0]
    if hits:
        names = "; ".join(_fact(ctx, one) for one in hits[:5])
        told = f"{len(hits)} agents fit {wanted!r}: {names}. Use the id."
        raise ToolFailed(told, is_tainted=any(one.is_tainted for one in hits))
    raise ToolFailed(f"No agent fits {wanted!r}. Look with agent_status.")


def _fact(ctx: Ctx, run: AgentRun) -> str:
    """`compare the offers (id 1a2b3c, research, running since 2026-11-20 23:30, 1,200 tokens)`."""
    zone = ctx.user.time_zone
    since = f"since {moment(run.started_at, zone)}" if run.ended_at is None else moment(run.ended_at, zone)
    spent = f", {run.tokens:,} tokens" if run.tokens else ""
    return f"{' '.join(run.task.split())[:100]} (id {short(run.id)}, {run.role}, {run.state} {since}{spent})"
