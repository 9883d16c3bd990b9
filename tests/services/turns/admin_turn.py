"""A turn of an admin's chat that is at work, as the loop hands it to the gate."""

from datetime import datetime

from msgspec.structs import replace

from cortex.base.turn import Turn
from tests.plain_world import TURN


def admin_turn(id: str, conversation_id: str, user_id: str, now: datetime) -> Turn:
    """The turn; its row is made by whoever needs one."""
    return replace(TURN, id=id, conversation_id=conversation_id, user_id=user_id, role="admin", now=now.isoformat())
