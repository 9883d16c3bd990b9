"""Finds what a turn teaches about the choice of its tools: how a called one came, and which were sent for nothing.

`services/turns/calls.py` stores how a call's tool came; `record_case` keeps what an ended turn teaches.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cortex.base.crypto import wording_key
from cortex.selection.recipes import GUESSES
from cortex.selection.types import META
from cortex.selection.words import text
from cortex.services.tools.plans import PLANNED_FOR
from cortex.storage.calls import CallRow, Came
from cortex.storage.db import Opener
from cortex.storage.learning import CasesRepository
from cortex.storage.plans import PlanRow
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.turns import TurnRow

SEARCH = "tools_discover"
SHARES = "learning.shares_words"  # the preference: whether others may read the words of one's cases


class Lesson(Struct, frozen=True, kw_only=True):
    """`needed`: tool -> how it came although the first request lacked it. `called`: all that ran.

    `unused`: chosen for this message and not called.
    """

    needed: Mapping[str, Came]
    called: tuple[str, ...]
    unused: tuple[str, ...]


def came_late(first: Mapping[str, Any], name: str) -> bool:
    """Tell whether the first plan of the turn left this tool out: it was found, missed or called by its name later.

    A plan that may not choose (chat only, a model without tools, all) left out nothing.
    """
    if first.get("mode", "auto") != "auto":
        return False
    is_in = next((each["is_in"] for each in first.get("decisions", ()) if each["name"] == name), None)
    return not is_in if is_in is not None else bool(first.get("unlisted"))


def was_late(plans: Sequence[PlanRow], name: str) -> bool:
    """Tell whether each plan that read new words of the person, the first one and later ones, left it out."""
    firsts = [plan.receipt for at, plan in enumerate(plans) if not at or _is_for_later_words(plan)]
    return bool(firsts) and all(came_late(first, name) for first in firsts)


def came(plans: Sequence[PlanRow], round_number: int, earlier: Sequence[CallRow], name: str) -> Came:
    """Tell how the tool of a call was had; "" where the first request had it or an earlier call of the turn says so."""
    if not was_late(plans, name) or any(row.name == name for row in earlier):
        return ""
    now = next((plan.receipt for plan in plans if plan.round == round_number), {})
    decided = next((each for each in now.get("decisions", ()) if each["name"] == name), None)
    is_in = decided is not None and decided["is_in"]
    if decided and is_in and decided["stage"] == "missing":
        return "missing"
    if any(row.name == SEARCH and f"- {name}(" in row.text for row in earlier):
        return "discovered"
    return "" if is_in else "rescued"


def lesson(plans: Sequence[PlanRow], calls: Sequence[CallRow]) -> Lesson | None:
    """Return what the turn teaches; None where its first request fitted, or where two messages wanted tools.

    Of those nobody can tell which words asked for what.
    """
    if any(_is_for_later_words(plan) for plan in plans):
        return None
    ran = {row.name for row in calls if row.state in ("done", "failed", "unknown")}
    needed = {row.name: row.came for row in calls if row.came and row.name in ran}
    unused = [name for plan in plans for name in _chosen(plan.receipt) if name not in ran]
    if not needed and not unused:
        return None
    metas = {item["name"] for plan in plans for item in plan.receipt["sent"] if item["category"] == META}
    called = dict.fromkeys(row.name for row in calls if row.name in ran - metas)
    return Lesson(needed=needed, called=tuple(called), unused=tuple(dict.fromkeys(unused)))


def _is_for_later_words(plan: PlanRow) -> bool:
    """Tell whether this round was the first to read what was sent while the turn ran."""
    return PLANNED_FOR in plan.receipt.get("labels", {})


def _chosen(receipt: Mapping[str, Any]) -> list[str]:
    """Return what the message's words brought into this request; what stood there before is not their doing."""
    added = frozenset(receipt.get("added", ()))
    carried = (*receipt["sent"], *receipt.get("noted", ()))
    return [item["name"] for item in carried if item["name"] in added and item["stage"] in GUESSES]


async def record_case(repository: Opener, row: TurnRow, found: Lesson | None, secret_key: str) -> None:
    """Keep what the ended turn of a chat teaches, in the transaction that ends it; one without a lesson, nothing."""
    if found is None:
        return
    is_shared = bool(await repository(PreferencesRepository).get(SHARES, False))
    await repository(CasesRepository).add(
        row.id,
        row.role,
        needed=dict(found.needed),
        called=found.called,
        unused=found.unused,
        text_hash=wording_key(secret_key, text.normal(row.text)),
        text=row.text if is_shared else None,
    )
