"""A person's report that a message had the wrong tools: one was missing, or one was not needed.

It joins what the turn taught by itself, under the same consent: the words are kept only while their writer shares
them. What comes of it is the admins' answer on the page *Learn from use* (`learning.py`).
"""

from collections.abc import Sequence

from msgspec import Struct

from cortex.base.crypto import wording_key
from cortex.base.errors import NotFound, UserError
from cortex.base.turn import LOOP_ENDS
from cortex.base.user import User
from cortex.selection.words import text
from cortex.services.turns.tool_outcomes import SHARES, lesson
from cortex.storage.calls import CallsRepository
from cortex.storage.db import Database, Opener
from cortex.storage.learning import CasesRepository, LearningCaseRow
from cortex.storage.plans import PlanRow, PlansRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.turns import TurnRow, TurnsRepository

REPORTED = "reported"  # how a tool came that was not there: beside those of `storage/calls.py: Came`


class Reports(Struct, frozen=True, kw_only=True):
    """Takes the reports of one's own turns."""

    db: Database
    secret_key: str

    async def report(self, user: User, turn_id: str, tool: str, *, is_missing: bool) -> None:
        """Keep that this tool was missing, or not needed; the same report again changes nothing.

        NotFound for a foreign turn and for a tool that was never to be had; UserError where the report can't be right.
        """
        async with self.db.transaction(user.id) as repository:
            turn = await repository(TurnsRepository).get(turn_id)
            if not tool:
                raise UserError("Choose what was wrong.", field="wrong")
            plans = await repository(PlansRepository).of_turn(turn_id)
            _check(turn, plans, tool, is_missing=is_missing)
            case = await _case(repository, turn, plans, self.secret_key)
            needed = {**case.needed, tool: REPORTED} if is_missing else case.needed
            unneeded = case.unneeded if is_missing else tuple(dict.fromkeys((*case.unneeded, tool)))
            await repository(CasesRepository).report(turn_id, needed=needed, unneeded=unneeded)


def _check(turn: TurnRow, plans: Sequence[PlanRow], tool: str, *, is_missing: bool) -> None:
    """Refuse what cannot be: a tool that was sent was not missing, one that was not sent was not in the way."""
    if turn.channel != "chat" or turn.mode != "auto" or not plans:
        raise UserError("Tools are chosen only in Auto.")
    if turn.state not in LOOP_ENDS:
        raise UserError("The answer is still being written. Report it when it is done.")
    first, *later = [{each["name"]: bool(each["is_in"]) for each in plan.receipt["decisions"]} for plan in plans]
    if tool not in first and not plans[0].receipt.get("unlisted"):
        raise NotFound(f"{tool} was not available for this message.")
    if is_missing and first.get(tool):
        raise UserError(f"{tool} was sent with this message.")
    if not is_missing and not any(plan.get(tool) for plan in (first, *later)):
        raise UserError(f"{tool} was not sent with this message.")


async def _case(repository: Opener, turn: TurnRow, plans: Sequence[PlanRow], secret_key: str) -> LearningCaseRow:
    """Return what the turn taught by itself; a new case where that was nothing."""
    cases = repository(CasesRepository)
    found = await cases.of_turn(turn.id)
    if found is not None:
        return found
    calls = await repository(CallsRepository).of_turn(turn.id)
    taught = lesson(plans, calls)
    is_shared = bool(await repository(PreferencesRepository).get(SHARES, False))
    await cases.add(
        turn.id,
        turn.role,
        needed=taught.needed if taught else {},
        called=taught.called if taught else tuple(dict.fromkeys(row.name for row in calls if row.state == "done")),
        unused=taught.unused if taught else (),
        text_hash=wording_key(secret_key, text.normal(turn.text)),
        text=turn.text if is_shared else None,
    )
    made = await cases.of_turn(turn.id)
    if made is None:
        raise NotFound("This message no longer exists.")
    return made
