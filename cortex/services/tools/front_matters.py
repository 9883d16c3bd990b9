"""Front matters in the whole of YAML, each read once: what was read is kept with the person's preferences by its hash.

So a message of somebody whose skills did not change starts no program, also behind a restart.
"""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cortex.base.errors import ToolFailed, UserError
from cortex.base.front_matter import Words
from cortex.ports.foreign import ForeignReader, NotReadNowError, all_of
from cortex.storage.preferences import PreferencesRepository

KEPT = "front_matter.read"
KEPT_MOST = 200
Text = Annotated[str, Field(max_length=20_000)]


class _Found(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    keys: dict[Text, Text | Annotated[list[Text], Field(max_length=2_000)]] = Field(default={}, max_length=200)
    slip: Text = ""


class UserFrontMatters:
    """Implements `FrontMatters` for one user."""

    def __init__(self, foreign: ForeignReader, preferences: PreferencesRepository) -> None:
        self._foreign = foreign
        self._preferences = preferences
        self._known: dict[str, _Found] = {}

    async def ready(self, heads: Sequence[str]) -> None:
        """Read all of these that are not known, by one start of the program."""
        kept = await self._preferences.get(KEPT, {})
        self._known |= {_mark(head): _Found.model_validate(kept[_mark(head)]) for head in heads if _mark(head) in kept}
        unknown = [head for head in dict.fromkeys(heads) if _mark(head) not in self._known]
        if unknown:
            with suppress(UserError, ToolFailed):  # together they may be too much; then each is read by itself
                await self._keep(unknown, await self._read(unknown))

    async def keys(self, head: str) -> Mapping[str, Words]:
        """As the port says."""
        if _mark(head) not in self._known:
            await self.ready([head])
        if _mark(head) not in self._known:
            try:
                await self._keep([head], await self._read([head]))
            except NotReadNowError as error:
                raise ToolFailed(error.message) from error
            except UserError as error:
                await self._keep([head], [_Found(slip=error.message)])
        found = self._known[_mark(head)]
        if found.slip:
            raise UserError(found.slip)
        return {key: tuple(value) if isinstance(value, list) else value for key, value in found.keys.items()}

    async def _read(self, heads: Sequence[str]) -> Sequence[_Found]:
        lines = await all_of(self._foreign, "front_matter", io.BytesIO(json.dumps(heads).encode()), _Found)
        if len(lines) != len(heads):
            raise NotReadNowError("The front matter could not be read. Try again.")
        return lines

    async def _keep(self, heads: Sequence[str], found: Sequence[_Found]) -> None:
        new = {_mark(head): one for head, one in zip(heads, found, strict=True)}
        self._known |= new
        kept = await self._preferences.get(KEPT, {})
        fit = [mark for mark, one in new.items() if "\\u0000" not in one.model_dump_json()]  # PostgreSQL keeps no NUL
        kept |= {mark: new[mark].model_dump(exclude_defaults=True) for mark in fit}
        await self._preferences.set(KEPT, dict([*kept.items()][-KEPT_MOST:]))


def _mark(head: str) -> str:
    return hashlib.sha256(head.encode("utf-8", "surrogatepass")).hexdigest()[:32]
