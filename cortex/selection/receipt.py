"""The receipt of a plan: what is stored each round and shown under "Why these tools?"."""

from collections import Counter
from typing import Any

from cortex.base.portable import plain
from cortex.selection.types import META, PlannerMemory, ToolPlan


def receipt(plan: ToolPlan) -> dict[str, Any]:
    """The plan as portable JSON for the log; services add what system, message and history cost."""
    entries = {decided.name: decided for decided in plan.decisions}
    sent = [
        {
            "name": item.name,
            "category": entries[item.name].category if item.name in entries else META,
            "form": item.form,
            "tokens": tokens,
            "stage": item.stage,
            "reason": item.reason,
        }
        for item, tokens in zip(plan.sent, plan.sent_tokens, strict=True)
    ]
    noted = [
        {
            "name": name,
            "category": entries[name].category,
            "stage": entries[name].stage,
            "reason": entries[name].reason,
        }
        for name in plan.noted
    ]
    spent = plan.costs.tools + plan.costs.catalog
    memory = plan.memory
    return {
        "mode": plan.mode,
        "role": plan.role,
        "recipe": plan.recipe,
        "total": plan.total,
        "total_tokens": plan.costs.total,
        "permitted": len(plan.decisions),
        "permitted_tokens": plan.costs.permitted,
        "sent": sent,
        "noted": noted,
        "catalog_tokens": plan.costs.catalog,
        "notes_tokens": plan.costs.notes,
        "skills": [plain(fit) for fit in plan.skills],
        "skills_tokens": plan.costs.skills,
        "tokens": spent,
        "saved": max(0, plan.costs.total - spent),
        "left_out": left_out(plan),
        "decisions": [plain(decided) for decided in plan.decisions],
        "epoch": {
            "number": plan.epoch_number,
            "is_open": bool(plan.sent),
            "boundary": plan.boundary,
            "opening": memory.opening,
            "facts": _facts(memory),
        },
        "late": plan.late,
        "added": list(plan.added),
        "labels": dict(plan.labels),
        "reachable": list(plan.reachable),
    }


def left_out(plan: ToolPlan) -> dict[str, int]:
    """Tokens that did not go out, by the stage that removed them; `form` = what shorter forms spare."""
    found: Counter[str] = Counter()
    for decided in plan.decisions:
        if not decided.is_in:
            found[decided.stage] += decided.tokens
    found["gate"] += plan.costs.total - plan.costs.permitted
    found["form"] += plan.costs.permitted - sum(decided.tokens for decided in plan.decisions)
    return {stage: tokens for stage, tokens in sorted(found.items()) if tokens}


def _facts(memory: PlannerMemory) -> dict[str, Any]:
    """The memory without what the receipt says already."""
    return {key: value for key, value in plain(memory).items() if key not in ("sent", "opening")}
