"""A turn of an admin's chat that is at work, as the loop hands it to the gate."""

from datetime import datetime

from cortex.base.turn import Turn


def admin_turn(id: str, conversation_id: str, user_id: str, now: datetime) -> Turn:
    """The turn; its row is made by whoever needs one."""
    return Turn(
        id=id,
        conversation_id=conversation_id,
        user_id=user_id,
        role="admin",
        channel="chat",
        text="do it",
        mode="auto",
        max_rounds=5,
        max_rounds_from="",
        models=("offline",),
        window_tokens=8_000,
        now=now.isoformat(),
    )
