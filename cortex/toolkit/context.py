"""`Ctx`: what a tool function gets besides its arguments. Hidden from the schema; bound to one user and one call."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct, field

from cortex.base.user import User
from cortex.ports.loop import Scope, Targets

T = TypeVar("T")


REDO = "Redo"  # the label of a way back that an undo left


class UndoNote(Struct, frozen=True, kw_only=True):
    """The way to take a call back: the category's `undo` gets `target`, `before` and the version it must still have."""

    target: str
    before: dict[str, Any] | None
    expected: str
    label: str


class Ctx(Struct, frozen=True, kw_only=True):
    """The world of one call.

    `call_id` seeds deterministic primary keys (uuid5), so that a repeated step writes the same row. `is_tainted`,
    `has_read_private`: the turn has read words from outside, or private data; what is written then is marked so.
    `undo_notes` collects what `leave_undo` was given; the executor stores it with the result. `is_again`: an earlier
    try of this call was killed, ahead of its act or behind it. `is_aimed`: the gate found what it acts on ahead of its
    question, or finds it now. `private_looks` collects what `note_private` was told; the executor marks the turn.
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
    is_again: bool = False
    is_aimed: bool = False
    undo_notes: list[UndoNote] = field(default_factory=list)
    private_looks: list[str] = field(default_factory=list)

    def use(self, kind: type[T]) -> T:
        """A repository or client of this kind, bound to this user."""
        return self.scope.provide(kind, self.user.id)

    async def target(self, find: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Return what this call acts on, found and kept ahead of the act; a try after a kill is given the same.

        find: looks it up: portable JSON with ids and versions, never words that may mean another thing by then.
        """
        targets = self.use(Targets)
        if (self.is_again or self.is_aimed) and (kept := await targets.target(self.call_id)) is not None:
            return kept
        return await targets.keep_target(self.call_id, await find())

    def note_private(self, what: str) -> None:
        """Count this call as one that read private data, whatever comes of it; for a tool that mostly reads none.

        what: such as "the file's text", for whoever reads a test.
        """
        self.private_looks.append(what)

    def leave_undo(self, *, target: str, before: dict[str, Any] | None, expected: str, label: str) -> None:
        """Offer to take this call back for 24 hours; `label` is the button's words ("Delete the task again")."""
        self.undo_notes.append(UndoNote(target=target, before=before, expected=expected, label=label))

    def leave_redo(self, *, target: str, before: dict[str, Any] | None, expected: str) -> None:
        """From a category's `undo`: offer to take that back too. The arguments are those that `undo` will be given."""
        self.leave_undo(target=target, before=before, expected=expected, label=REDO)
