"""One text page of a user's home (scratchpad, the assistant's notes) as tools keep it: cut, marked, taken back.

Pure over two protocols; the tool file hands in the real home and the real marks. Words that a turn wrote after reading
from outside are marked, and stay so until the page is emptied or written anew.
"""

from collections.abc import Awaitable
from typing import Any, Protocol

from msgspec import Struct

from cortex.base.errors import Conflict, NotFound, ToolFailed
from cortex.toolkit.context import Ctx
from cortex.toolkit.spec import Output
from cortex.toolkit.stretch import stretch

KEEP_CHARACTERS = 200_000
ABSENT = ""


class VersionedText(Protocol):
    """A text with the tag of exactly this content."""

    @property
    def text(self) -> str:
        """The content."""
        ...

    @property
    def version(self) -> str:
        """Its tag."""
        ...


class PageTexts(Protocol):
    """Text files by path; a user's home is one."""

    def read(self, path: str) -> Awaitable[VersionedText]:
        """The text; NotFound when there is none."""
        ...

    def write(self, path: str, text: str, expected_version: str | None = None) -> Awaitable[str]:
        """Put it there; its new version. Conflict unless `expected_version` stands."""
        ...

    def remove(self, path: str, expected_version: str | None = None) -> Awaitable[object]:
        """Delete it; Conflict unless `expected_version` stands."""
        ...


class Marks(Protocol):
    """Small values by name; a user's preferences are some."""

    def get(self, key: str, default: Any = None) -> Awaitable[Any]:
        """The value, or the default."""
        ...

    def set(self, key: str, value: Any) -> Awaitable[None]:
        """Keep a value."""
        ...

    def unset(self, key: str) -> Awaitable[None]:
        """Forget it."""
        ...


def mark_of(path: str) -> str:
    """The name of the mark that says: this page holds words from outside."""
    return f"tainted:{path}"


def _before(was: dict[str, Any]) -> dict[str, Any] | None:
    """The page as it was, for `undo`; None when there was none."""
    return None if was["version"] == ABSENT else {"text": was["text"], "is_marked": was["is_marked"]}


class Page(Struct, frozen=True, kw_only=True):
    """A page at `path`; `title` is what the model and the person call it, `heading` what a new one begins with."""

    ctx: Ctx
    texts: PageTexts
    marks: Marks
    path: str
    title: str
    heading: str = ""

    async def exists(self) -> bool:
        """Tell whether there is such a page."""
        return (await self._now())[1] != ABSENT

    async def read(self, offset: int = 0) -> Output:
        """A stretch of the page from character `offset`, and how to go on."""
        text, _ = await self._now()
        shown = stretch(text, offset, "read on")
        return Output(text=shown or f"The {self.title} is empty.", is_tainted=await self._is_marked())

    async def write(self, text: str) -> str:
        """Replace all of it."""
        was = await self.ctx.target(self._as_it_is)
        label = f"Put the {self.title} back"
        await self._put(text.strip() + "\n", was, is_marked=self.ctx.is_tainted, label=label)
        return f"The {self.title} now holds {len(text.strip())} characters."

    async def append(self, text: str) -> str:
        """Add lines at the end."""
        was = await self._as_it_is()
        marked = self.ctx.is_tainted or was["is_marked"]
        kept = self.heading if was["version"] == ABSENT else was["text"].rstrip()
        joined = f"{kept}\n{text.strip()}\n".lstrip("\n") if text.strip() else ""
        await self._put(joined, was, is_marked=marked, label="Remove the addition")
        return f"Added to the {self.title}."

    async def clear(self) -> str:
        """Empty it."""
        was = await self.ctx.target(self._as_it_is)
        if was["version"] == ABSENT:
            return f"The {self.title} was empty already."
        if not self.ctx.is_again or (await self._now())[1] != ABSENT:  # else an earlier try has emptied it
            await self.texts.remove(self.path, was["version"])
        await self.marks.unset(mark_of(self.path))
        label = f"Put the {self.title} back"
        self.ctx.leave_undo(target=self.path, before=_before(was), expected=ABSENT, label=label)
        return f"The {self.title} is empty now."

    async def undo(self, before: dict[str, Any] | None, expected: str) -> str:
        """Put back what was there before a call; Conflict when it changed since."""
        was = await self._as_it_is()
        if was["version"] != expected:
            raise Conflict(f"The {self.title} has changed since and was left as it is.")
        is_marked = bool(before and before["is_marked"])
        if is_marked:  # first, as in `_put`
            await self._mark(True)
        made = ABSENT
        if before is None:
            await self.texts.remove(self.path, expected)
        else:
            made = await self.texts.write(self.path, str(before["text"]), expected)
        self.ctx.leave_redo(target=self.path, before=_before(was), expected=made)
        if not is_marked:
            await self._mark(False)
        return f"The {self.title} is as it was."

    async def _as_it_is(self) -> dict[str, Any]:
        """Text, version and mark, to be kept with the intent."""
        text, version = await self._now()
        return {"text": text, "version": version, "is_marked": await self._is_marked()}

    async def _now(self) -> tuple[str, str]:
        """Text and version as they stand; empty and `ABSENT` when there is no page."""
        try:
            kept = await self.texts.read(self.path)
        except NotFound:
            return "", ABSENT
        return kept.text, kept.version

    async def _put(self, text: str, was: dict[str, Any], *, is_marked: bool, label: str) -> None:
        """Write it over what was there, the mark set first: no moment shows outside words as the user's own."""
        if not text.strip():
            raise ToolFailed("There is nothing to write: the text is empty.")
        if len(text) > KEEP_CHARACTERS:
            raise ToolFailed(f"The {self.title} may have {KEEP_CHARACTERS} characters; put longer text into a file.")
        if was["text"] == text:
            return
        if is_marked:
            await self._mark(True)
        now, made = await self._now()
        if not self.ctx.is_again or now != text:  # else an earlier try has written it
            made = await self.texts.write(self.path, text, was["version"])
        if not is_marked:
            await self._mark(False)
        self.ctx.leave_undo(target=self.path, before=_before(was), expected=made, label=label)

    async def _is_marked(self) -> bool:
        return bool(await self.marks.get(mark_of(self.path), False))

    async def _mark(self, on: bool) -> None:
        await (self.marks.set(mark_of(self.path), True) if on else self.marks.unset(mark_of(self.path)))
