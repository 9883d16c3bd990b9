"""What Cortex remembers of the user: single facts with source and date. Facts from outside stay marked as such."""

from typing import Any

from cortex.base.errors import NotFound, ToolFailed
from cortex.base.ids import derived_id, is_named, short
from cortex.base.zone import local
from cortex.ports.memory import Fact, Memory
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import Output
from cortex.toolkit.words import NO_CHANGE, counted

SUMMARY = "facts kept about the user"
NEEDS = ("Memory",)
ROLES = {"orchestrator": ("memory",)}
TESTED = "its tables, on SQLite and PostgreSQL"
FACT_CHARACTERS = 500
SHOWN = 12


@tool(words="Look into memory[ for {query}]", effect="read", reads_private=True)
async def memory_search(ctx: Ctx, query: str = "") -> Output:
    """Look up remembered facts about the user and their world.

    Args:
        query: What about; empty shows the newest.
    """
    facts = await ctx.use(Memory).search(query.strip(), SHOWN)
    lines = [_line(ctx, fact) for fact in facts]
    nothing = f"Nothing is remembered about {query!r}." if query.strip() else "Nothing is remembered yet."
    tainted = any(fact.is_tainted for fact in facts)
    return Output(text="\n".join(lines) or nothing, words=counted(len(facts), "fact"), is_tainted=tainted)


@tool(words="Remember: {fact}", idempotent=True, reads_private=True)
async def memory_add(ctx: Ctx, fact: str) -> Output:
    """Remember a fact about the user for good.

    Args:
        fact: One fact in a full sentence.
    """
    words = " ".join(fact.split())
    if not 0 < len(words) <= FACT_CHARACTERS:
        raise ToolFailed(f"A fact has 1 to {FACT_CHARACTERS} characters: keep one at a time.")
    source = "a turn that had read text from outside" if ctx.is_tainted else "the user"
    made_id = derived_id(ctx.call_id, "fact")
    made = await ctx.use(Memory).add(made_id, words, source, ctx.is_tainted, ctx.turn_id)
    if made.id != made_id:
        text = f"Already remembered: {made.text}"
        return Output(text=text, words=NO_CHANGE, is_tainted=made.is_tainted)
    ctx.leave_undo(target=made.id, before=None, expected="", label="Forget it again")
    if made.is_proposed:
        text = f"Not remembered yet: this turn has read external content. The user is asked on /memory: {made.text}"
        return Output(text=text, is_tainted=made.is_tainted)
    return Output(text=f"Remembered: {made.text}")


@tool(words="Forget: {fact}", ends=True, idempotent=True, reads_private=True)
async def memory_forget(ctx: Ctx, fact: str) -> Output:
    """Forget a remembered fact about the user.

    Args:
        fact: Its id, or its words.
    """
    memory = ctx.use(Memory)

    async def find() -> dict[str, Any]:
        found = await _find(memory, fact)
        return {"id": found.id, "text": found.text, "is_tainted": found.is_tainted}

    target = await ctx.target(find)
    try:
        await memory.forget(target["id"])
    except NotFound:
        if not ctx.is_again:  # else an earlier try has forgotten it
            raise
    ctx.leave_undo(target=target["id"], before={"text": target["text"]}, expected="", label="Remember it again")
    return Output(text=f"Forgotten: {target['text']}", is_tainted=target["is_tainted"])


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Forget what was added, or remember what was forgotten. NotFound when it is gone for good."""
    memory = ctx.use(Memory)
    if before is None:
        fact = await memory.forget(target)
        ctx.leave_redo(target=target, before={"text": fact.text}, expected="")
        return f"Forgotten again: {fact.text}"
    fact = await memory.restore(target)
    ctx.leave_redo(target=target, before=None, expected="")
    return f"Restored: {fact.text}"


async def _find(memory: Memory, wanted: str) -> Fact:
    """The one fact that is meant; ToolFailed names the candidates when it is not one."""
    key = " ".join(wanted.casefold().split()).removeprefix("#").rstrip(".")
    if not key:
        raise ToolFailed("Say which fact: its id, or its words.")
    facts = await memory.search("", 1_000)
    ways = (
        [fact for fact in facts if is_named(fact.id, key)],
        [fact for fact in facts if fact.text.casefold().rstrip(".") == key],
        [fact for fact in facts if set(key.split()) <= set(fact.text.casefold().rstrip(".").split())],
    )
    sure = next((one for one in ways if one), [])
    if len(sure) == 1:
        return sure[0]
    hits = sure or await memory.search(wanted, 5)
    if hits:
        names = "; ".join(f"{fact.text} (id {short(fact.id)})" for fact in hits[:5])
        told = f"Several facts fit {wanted!r}: {names}. Use the id."
        raise ToolFailed(told, is_tainted=any(fact.is_tainted for fact in hits))
    raise ToolFailed(f"Nothing is remembered about {wanted!r}.")


def _line(ctx: Ctx, fact: Fact) -> str:
    mark = " [from outside]" if fact.is_tainted else ""
    at = local(fact.at, ctx.user.time_zone).date().isoformat()
    return f"- {fact.text} (id {short(fact.id)}, {at}, from {fact.source[:80]}){mark}"
