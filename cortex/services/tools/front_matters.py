"""Front matters in the whole of YAML, each read once: what was read is kept with the person's preferences by its hash.

So a message of somebody whose skills did not change starts no program, also behind a restart.
"""

import hashlib
import io
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cortex.base.errors import ToolFailed, UserError
from cortex.base.front_matter import Words
from cortex.ports.foreign import ForeignReader, NotReadNowError
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

    async def keys(self, head: str) -> Mapping[str, Words]:
        """As the port says."""
        mark = hashlib.sha256(head.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        kept = await self._preferences.get(KEPT, {})
        if mark in kept:
            found = _Found.model_validate(kept[mark])
        else:
            found = await self._read(head)
            newest = {**await self._preferences.get(KEPT, {}), mark: found.model_dump(exclude_defaults=True)}
            if "\\u0000" not in found.model_dump_json():  # which PostgreSQL does not keep
                await self._preferences.set(KEPT, dict([*newest.items()][-KEPT_MOST:]))
        if found.slip:
            raise UserError(found.slip)
        return {key: tuple(value) if isinstance(value, list) else value for key, value in found.keys.items()}

    async def _read(self, head: str) -> _Found:
        lines: list[_Found] = []

        async def take(line: _Found) -> None:
            lines.append(line)

        try:
            await self._foreign.read("front_matter", io.BytesIO(head.encode("utf-8", "replace")), _Found, take)
        except NotReadNowError as error:
            raise ToolFailed(error.message) from error
        except UserError as error:
            return _Found(slip=error.message)
        return lines[0] if lines else _Found()
