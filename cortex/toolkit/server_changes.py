"""A change of somebody's calendar, address book or mail: kept ahead of the question, written once, taken back.

What it acts on is the whole change as it will be, the fact in words, and where to (`aim`), as the person is asked.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from msgspec import Struct, convert
from msgspec.structs import replace

from cortex.base.errors import Conflict, ToolFailed
from cortex.base.record import as_dict
from cortex.ports.calendars import Written
from cortex.ports.loop import Readers
from cortex.toolkit.context import Ctx

SEEN = "which others here see"
Change_contra = TypeVar("Change_contra", bound=Struct, contravariant=True)
Change = TypeVar("Change", bound=Struct)


class Place(Protocol):
    """A calendar or an address book. `readers`: a key of it with those of the household who read it, "" for nobody."""

    @property
    def name(self) -> str:
        """Return what it is called."""
        ...

    @property
    def readers(self) -> str:
        """Return the key."""
        ...


class Writes(Protocol[Change_contra]):
    """The port that writes there."""

    async def write(self, written: Change_contra, /) -> str:
        """Write it, once however often it is called; what stands there then, by which it is taken back."""
        ...


class PutsBack(Protocol):
    """The port that has a resource as it was."""

    async def put_back(self, written: Written, version: str) -> str:
        """Have it as it was before; the version then."""
        ...


def target_of(written: Struct, fact: str, aim: str, place: Place | None = None) -> dict[str, Any]:
    """Return what a call does, as it is kept (`Ctx.target`). `place`: where others may read it, None for nowhere."""
    seen = f" ({SEEN})" if place and place.readers else ""
    return {"written": as_dict(written), "fact": fact, "aim": f"{aim}{seen}"}


def readers_of(place: Place) -> list[Readers]:
    """Return who else of the household reads what is written there."""
    return [Readers(key=place.readers, words=f"{place.name}, {SEEN}")] if place.readers else []


async def make(
    ctx: Ctx, writes: Writes[Change], kind: type[Change], target: Mapping[str, Any], said: str, label: str
) -> str:
    """Make the change, and leave a way back under this label. ToolFailed where another change came in between."""
    written, fact = convert(target["written"], kind), str(target["fact"])
    try:
        version = await writes.write(written)
    except Conflict as error:
        raise ToolFailed(f"{error.message} Look at it again first.") from error
    ctx.leave_undo(target=fact, before={"written": as_dict(written)}, expected=version, label=label)
    return f"{said}: {fact}"


async def take_back(ctx: Ctx, writes: PutsBack, target: str, before: Mapping[str, Any] | None, expected: str) -> str:
    """Have it as it was. Conflict when it changed since."""
    written = convert((before or {})["written"], Written)
    version = await writes.put_back(written, expected)
    back = replace(written, data=written.before, before=written.data, etag=expected, stamp="")
    ctx.leave_redo(target=target, before={"written": as_dict(back)}, expected=version)
    return f"As it was before: {target}"
