"""The receipt of a plan: what is stored each round and shown under "Why these tools?"."""

from typing import Any

from cortex.base.portable import plain
from cortex.selection.plan.decisions import LISTED, Decisions
from cortex.selection.types import META, ToolPlan


def receipt(plan: ToolPlan) -> dict[str, Any]:
    """The plan as portable JSON for the log; services add what system, message and history cost.

    TypeError for one that was read from JSON: it no longer knows what its decisions follow from.
    """
    decisions, memory, costs = plan.decisions, plan.memory, plan.costs
    if not isinstance(decisions, Decisions):
        raise TypeError("a receipt is written of a plan as it was made")
    entries = {decided.name: decided for decided in decisions.telling}
    unlisted = len(decisions) - len(entries)
    left_out = decisions.left_out(costs.permitted)
    left_out["gate"] += costs.total - costs.permitted
    return {
        "mode": plan.mode,
        "role": plan.role,
        "recipe": plan.recipe,
        "total": plan.total,
        "total_tokens": costs.total,
        "permitted": len(decisions),
        "permitted_tokens": costs.permitted,
        "sent": [
            {**plain(item), "category": entries[item.name].category if item.name in entries else META, "tokens": tokens}
            for item, tokens in zip(plan.sent, plan.sent_tokens, strict=True)
        ],
        "noted": [
            {"name": one.name, "category": one.category, "stage": one.stage, "reason": one.reason}
            for one in map(entries.__getitem__, plan.noted)
        ],
        "catalog_tokens": costs.catalog,
        "notes_tokens": costs.notes,
        "skills": [plain(fit) for fit in plan.skills],
        "skills_tokens": costs.skills,
        "tokens": costs.tools + costs.catalog,
        "saved": max(0, costs.total - costs.tools - costs.catalog),
        "left_out": {stage: tokens for stage, tokens in sorted(left_out.items()) if tokens},
        "decisions": [plain(decided) for decided in entries.values()],
        **({"unlisted": unlisted} if unlisted else {}),
        "epoch": {
            "number": plan.epoch_number,
            "is_open": bool(plan.sent),
            "boundary": plan.boundary,
            "opening": memory.opening,
            "facts": {key: value for key, value in plain(memory).items() if key not in ("sent", "opening")},
        },
        "late": plan.late,
        "added": list(plan.added),
        "labels": dict(plan.labels),
        "reachable": list(plan.reachable[:LISTED]),
    }
