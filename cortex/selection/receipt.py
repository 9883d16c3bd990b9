"""The receipt of a plan: what is stored each round and shown under "Why these tools?"."""

from typing import Any

from cortex.base.portable import plain
from cortex.selection.decisions import LISTED, Decisions
from cortex.selection.types import META, PlannerMemory, ToolPlan


def receipt(plan: ToolPlan) -> dict[str, Any]:
    """The plan as portable JSON for the log; services add what system, message and history cost.

    TypeError for one that was read from JSON: it no longer knows what its decisions follow from.
    """
    decisions = _decisions(plan)
    listed = decisions.telling()
    entries = {decided.name: decided for decided in listed}
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
        {"name": name, "category": one.category, "stage": one.stage, "reason": one.reason}
        for name in plan.noted
        for one in (entries[name],)
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
        "left_out": left_out(plan, decisions),
        "decisions": [plain(decided) for decided in listed],
        **({"unlisted": len(plan.decisions) - len(listed)} if len(listed) < len(plan.decisions) else {}),
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
        "reachable": list(plan.reachable[:LISTED]),
    }


def _decisions(plan: ToolPlan) -> Decisions:
    """Those of a plan as it was made; TypeError for one read from JSON, which knows no more what they follow from."""
    if not isinstance(plan.decisions, Decisions):
        raise TypeError("a receipt is written of a plan as it was made")
    return plan.decisions


def left_out(plan: ToolPlan, decisions: Decisions) -> dict[str, int]:
    """Tokens that did not go out, by the stage that removed them; `form` = what shorter forms spare."""
    found = decisions.left_out(plan.costs.permitted)
    found["gate"] += plan.costs.total - plan.costs.permitted
    return {stage: tokens for stage, tokens in sorted(found.items()) if tokens}


def _facts(memory: PlannerMemory) -> dict[str, Any]:
    """The memory without what the receipt says already."""
    return {key: value for key, value in plain(memory).items() if key not in ("sent", "opening")}
