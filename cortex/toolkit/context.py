"""`Ctx`: what a tool function gets besides its arguments. Hidden from the schema; bound to one user and one call."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from cortex.base.ports import Scope
from cortex.base.user import User

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoNote:
    """How to take a call back: the category's `undo` gets `target`, `before` and the version it must still have."""

    target: str
    before: dict[str, Any] | None
    expected: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ctx:
    """The world of one call.

    `call_id` seeds deterministic primary keys (uuid5), so that a repeated step writes the same row. `is_tainted`,
    `has_read_private`: the turn has read words from outside, or private data; what is written then is marked so.
    `undo_notes` collects what `leave_undo` was given; the executor stores it with the result.
    """

    user: User
    conversation_id: str
    turn_id: str
    call_id: str
    role: str
    now: datetime
    scope: Scope
    is_tainted: bool = False
    has_read_private: bool = False
    undo_notes: list[UndoNote] = field(default_factory=list)

    def use(self, kind: type[T]) -> T:
        """A repository or client of this kind, bound to this user."""
        return self.scope.open(kind, self.user.id)

    def leave_undo(self, *, target: str, before: dict[str, Any] | None, expected: str, label: str) -> None:
        """Offer to take this call back for 24 hours; `label` is the button's words ("Delete the task again")."""
        self.undo_notes.append(UndoNote(target=target, before=before, expected=expected, label=label))
