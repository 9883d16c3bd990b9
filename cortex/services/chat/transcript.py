"""The fold of a conversation's events into what is shown, one event at a time. Pure: no storage, no markup.

The page folds the log up to `seq`; its stream applies the rest and renders only what `apply` says has changed.
What happens inside one turn is folded by `services/chat/transcript_turn.py`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from cortex.base.attachments import attachments_of
from cortex.base.events import Event
from cortex.services.chat.transcript_turn import FOLDS, part_of
from cortex.services.chat.transcript_views import Marker, Part, SteerPart, TurnView, ViewChange

NO_VERSIONS: Mapping[str, Sequence[str]] = MappingProxyType({})
NONE_LOST: Mapping[str, bool] = MappingProxyType({})
ALL_READ: Mapping[str, str] = MappingProxyType({})


class Transcript:
    """The folded conversation. `turns` in order of their messages, without those that are out of view."""

    def __init__(
        self,
        events: Iterable[Event] = (),
        *,
        title: str = "",
        versions: Mapping[str, Sequence[str]] = NO_VERSIONS,
        lost: Mapping[str, bool] = NONE_LOST,
        unread: Mapping[str, str] = ALL_READ,
    ) -> None:
        """Fold what is there already; `title` is the one in force before these events.

        versions: the turns whose place has several -> all of them, as far as that is known already.
        lost: the files that were deleted -> whether they can be restored, as of now.
        unread: the files of which something was not read -> what, as of now.
        """
        self.seq = 0
        self.title = title
        self.markers: dict[str, Marker] = {}
        self._turns: dict[str, TurnView] = {}
        self._hidden: set[str] = set()
        self._versions = versions
        self._lost = lost
        self._unread = unread
        self._context_tokens: dict[str, int] = {}
        self._handlers: dict[str, Callable[[Event], list[ViewChange]]] = {
            "message": self._on_message,
            "steer": self._on_steer,
            "turn.drop": self._on_drop,
            "turn.show": self._on_show,
            "summary": self._on_summary,
            "title": self._on_title,
        }
        for event in events:
            self.apply(event)

    @property
    def turns(self) -> tuple[TurnView, ...]:
        """The turns in order."""
        return tuple(turn for turn in self._turns.values() if turn.id not in self._hidden)

    @property
    def context_tokens(self) -> int:
        """Return how long the request was, with its answer, that was counted last in this branch."""
        return next((self._context_tokens[turn.id] for turn in self.turns[::-1] if turn.id in self._context_tokens), 0)

    @property
    def running(self) -> TurnView | None:
        """The turn that is being answered, if any."""
        return next((turn for turn in self.turns if turn.is_live), None)

    def turn(self, turn_id: str) -> TurnView | None:
        """One turn; None when it is older than the page, or out of view."""
        return None if turn_id in self._hidden else self._turns.get(turn_id)

    def part(self, turn_id: str, part_id: str) -> Part | None:
        """One part of a turn by its id."""
        turn = self.turn(turn_id)
        return part_of(turn, part_id) if turn else None

    def marker_after(self, turn: TurnView) -> Marker | None:
        """The newest summary that ends with this turn, if any."""
        ends_here = [marker for marker in self.markers.values() if marker.upto_ordinal == turn.ordinal]
        return ends_here[-1] if ends_here else None

    @property
    def beginning(self) -> Marker | None:
        """The summary of another chat that this one begins with, if it is in this stretch."""
        return next((marker for marker in self.markers.values() if marker.source), None)

    def apply(self, event: Event) -> list[ViewChange]:
        """Take the next event; what changed. An event that was folded already changes nothing."""
        if event.seq <= self.seq:
            return []
        self.seq = event.seq
        if handler := self._handlers.get(event.kind):
            return handler(event)
        if event.kind == "usage":
            tokens = (event.payload.get("input") or 0) + (event.payload.get("output") or 0)
            self._context_tokens[event.payload["turn"]] = tokens
        return self._fold(event)

    def _fold(self, event: Event) -> list[ViewChange]:
        turn_id = event.payload.get("turn", "")
        turn, fold = self._turns.get(turn_id), FOLDS.get(event.kind)
        if fold is None:
            return []
        if turn is None:  # older than the page; an undone card may still stand there
            return [ViewChange(kind="undo", turn=turn_id, part=event.payload["call"])] if event.kind == "undo" else []
        self._turns[turn_id], changes = fold(turn, event)
        return changes

    def _on_message(self, event: Event) -> list[ViewChange]:
        data, turn_id = event.payload, event.payload["turn"]
        if turn_id in self._turns:
            return []
        waits = any(turn.state != "ended" for turn in self.turns)
        self._turns[turn_id] = TurnView(
            id=turn_id,
            ordinal=data.get("ordinal") or 0,
            text=data["text"],
            at=event.at,
            mode=data.get("mode") or "auto",
            state="queued" if waits or data.get("is_steer") else "running",
            agent=data.get("agent") or "",
            resumed=data.get("resumed") or "",
            attachments=(files := attachments_of(data)),
            lost={file.id: self._lost[file.id] for file in files if file.id in self._lost},
            unread={file.id: self._unread[file.id] for file in files if file.id in self._unread},
            versions=tuple(self._versions.get(turn_id) or data.get("versions") or ()),
        )
        return [ViewChange(kind="turn.new", turn=turn_id)]

    def _on_steer(self, event: Event) -> list[ViewChange]:
        """A queued message becomes a part of the turn that took it in."""
        data = event.payload
        taken, into = self._turns.pop(data["turn"], None), self._turns.get(data["into"])
        gone = [ViewChange(kind="turn.drop", turn=data["turn"])]
        if taken is None or into is None:
            return gone
        part = SteerPart(id=f"steer-{event.seq}", text=taken.text)
        self._turns[into.id] = into.with_part(part)
        return [*gone, ViewChange(kind="part.new", turn=into.id, part=part.id)]

    def _on_drop(self, event: Event) -> list[ViewChange]:
        gone = event.payload["turns"]
        known = [turn for turn_id in gone if (turn := self.turn(turn_id))]
        markers = [marker.id for turn in known if (marker := self.marker_after(turn))]
        self._hidden.update(gone)
        drops = [ViewChange(kind="turn.drop", turn=turn_id) for turn_id in gone]
        return [*drops, *(ViewChange(kind="marker.drop", part=marker) for marker in markers)]

    def _on_show(self, event: Event) -> list[ViewChange]:
        """Show and hide turns. Those that are back may be older than what was folded: who follows reads anew."""
        self._hidden.update(event.payload["hidden"])
        self._hidden.difference_update(event.payload["shown"])
        return []

    def _on_summary(self, event: Event) -> list[ViewChange]:
        data = event.payload
        last = next((turn for turn in self._turns.values() if turn.ordinal == data["upto_turn"]), None)
        turn_id = last.id if last else ""
        if data["state"] == "undone":
            gone = self.markers.pop(data["summary"], None)
            return [ViewChange(kind="marker.drop", turn=turn_id, part=gone.id)] if gone else []
        marker = Marker(
            id=data["summary"],
            upto_ordinal=data["upto_turn"],
            text=data.get("text") or "",
            is_tainted=bool(data.get("is_tainted")),
            source=data.get("source") or "",
            source_title=data.get("source_title") or "",
            why=data.get("why") or "",
        )
        self.markers[marker.id] = marker
        return [ViewChange(kind="marker.new", turn=turn_id, part=marker.id)] if last else []

    def _on_title(self, event: Event) -> list[ViewChange]:
        self.title = event.payload["title"]
        return [ViewChange(kind="title")]
