"""What a message wants that cannot be used here: the very plan that chooses tools, as if it could.

Grants and sends nothing; the gate has the last word on whose wish it is. Asked where words of the person are new.
"""

from collections.abc import Collection
from dataclasses import replace

from cortex.selection.pipeline import plan
from cortex.selection.types import PlanInput, PlannerMemory

LIKELY = 0.6  # a tool is sent at less, for it does no harm where nobody calls it; a note is read in any case
SERVES = 0.75  # of its chance: what is there and comes that near serves as well


def wanted_unset(given: PlanInput, unset: Collection[str], outside: tuple[str, ...] = ()) -> str:
    """The tool of `unset` that would have been sent, is likely meant, and in whose place no other serves; "" else.

    outside: those of them that the role or the account is not granted.
    """
    if given.mode == "chat" or not unset or (given.round > 1 and not given.is_heard):
        return ""
    there = frozenset(given.ready)
    ready = (*given.ready, *(name for name in unset if name not in there))
    never = tuple(name for name in given.never if name not in unset)
    role = replace(given.role, tools=(*given.role.tools, *outside))
    is_admin = given.is_admin or bool(outside)
    as_if = replace(given, ready=ready, never=never, role=role, is_admin=is_admin, memory=PlannerMemory(), mode="auto")
    made = plan(as_if)
    sent = {item.name for item in made.sent if item.stage != "form"}  # not what goes beside it in short form
    best = next(((name, p) for name, p in made.hints if name in unset and name in sent), ("", 0.0))
    other = max((p for name, p in made.hints if name not in unset), default=0.0)
    return best[0] if best[1] >= LIKELY and other < SERVES * best[1] else ""
