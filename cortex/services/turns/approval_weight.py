"""How much a question weighs: by what the deed does, never by the tool's class. Words and looks only; the gate decides.

Read by the cards of the chat and by every page that lists what waits.
"""

from typing import Literal

from msgspec import Struct

from cortex.agent.records import HERE
from cortex.ports.loop import ApprovalRequest
from cortex.storage.approvals import ApprovalRow
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Tool

Weight = Literal["low", "middle", "high"]
SHORT_LINES = 4  # of a detail that is no more than its line says


class Weighed(Struct, frozen=True, kw_only=True):
    """The weight of a question. `is_lasting`: it cannot be taken back. `leaves`: something goes out of the house.

    `spends`: it costs money.
    """

    weight: Weight
    is_lasting: bool
    leaves: bool
    spends: bool = False


def weigh(registry: Registry, row: ApprovalRow | ApprovalRequest) -> Weighed:
    """Weigh a question.

    High is what cannot be taken back and ends, sends or runs something, what costs money, and all that text from
    outside may have asked for, could it be undone or not. Low is what can be undone, stays here, is said in one line.
    """
    tool = registry.get(row.tool)
    if tool is None:  # nobody knows any more what it would do
        return Weighed(weight="high", is_lasting=True, leaves=row.destination != HERE)
    is_lasting, leaves = not _can_be_undone(registry, tool, row), _leaves(tool, row)
    if row.why or tool.spends or (is_lasting and (tool.is_grave or row.risk == "high")):
        weight: Weight = "high"
    elif is_lasting or leaves or tool.preview is not None or len(row.detail.splitlines()) > SHORT_LINES:
        weight = "middle"
    else:
        weight = "low"
    return Weighed(weight=weight, is_lasting=is_lasting, leaves=leaves, spends=tool.spends)


def _can_be_undone(registry: Registry, tool: Tool, row: ApprovalRow | ApprovalRequest) -> bool:
    """Tell whether a card would offer Undo; where arguments decide on the risk, those of high risk have no way back."""
    if tool.effect == "read":
        return True
    category = registry.category(tool.category)
    has_way_back = category is not None and category.undo is not None
    return has_way_back and not (tool.risk_of is not None and row.risk == "high")


def _leaves(tool: Tool, row: ApprovalRow | ApprovalRequest) -> bool:
    return (tool.sends_out or bool(tool.sends_to)) and row.destination != HERE
