"""The shapes of a homeserver's answers, as far as they are read; what is an event is looked at one by one."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field


class Events(Struct, frozen=True, kw_only=True):
    """Some events. `limited`: there were more, which `prev_batch` leads to."""

    events: list[Any] = field(default_factory=list)  # Any: the wire's
    limited: bool = False
    prev_batch: str = ""

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return those that can be one."""
        return [event for event in self.events if isinstance(event, dict)]


class Joined(Struct, frozen=True, kw_only=True):
    """The news of a room that Cortex is in."""

    timeline: Events = field(default_factory=Events)
    state: Events = field(default_factory=Events)


class Invited(Struct, frozen=True, kw_only=True):
    """A room that Cortex is asked into."""

    invite_state: Events = field(default_factory=Events)


class Rooms(Struct, frozen=True, kw_only=True):
    """The rooms in which something is new."""

    join: dict[str, Joined] = field(default_factory=dict)
    invite: dict[str, Invited] = field(default_factory=dict)


class Sync(Struct, frozen=True, kw_only=True):
    """The news since the last look, and the word for where it ends."""

    next_batch: str
    rooms: Rooms = field(default_factory=Rooms)


class EventPage(Struct, frozen=True, kw_only=True):
    """A page of events, and the word for where the next one begins; "" for none."""

    chunk: list[Any] = field(default_factory=list)  # Any: the wire's
    end: str = ""

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return those that can be an event."""
        return [event for event in self.chunk if isinstance(event, dict)]


class SentEvent(Struct, frozen=True, kw_only=True):
    """An event that was sent."""

    event_id: str


class MadeRoom(Struct, frozen=True, kw_only=True):
    """A room that was made, or found by its name."""

    room_id: str
