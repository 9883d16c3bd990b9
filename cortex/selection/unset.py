"""What a message wants that is not set up on this server: the same evidence, as if it were.

Grants and sends nothing; the gate has the last word on whose wish it is. Asked before the first round only.
"""

from collections.abc import Collection
from dataclasses import replace

from cortex.selection.cache_economics import threshold
from cortex.selection.index import index_of
from cortex.selection.pipeline import plan
from cortex.selection.types import PlanInput, PlannerMemory


def wanted_unset(given: PlanInput, unset: Collection[str]) -> str:
    """The tool that fits the message best, where that is one of `unset` and it would have been sent; "" else."""
    if given.mode != "auto" or given.round != 1 or not unset:
        return ""
    hints = plan(replace(given, ready=(*given.ready, *unset), memory=PlannerMemory(), mode="auto")).hints
    if not hints or hints[0][0] not in unset:
        return ""
    name, p = hints[0]
    return name if p >= threshold(given.profile, index_of(given.snapshot).entries[name].tokens_stub) else ""
