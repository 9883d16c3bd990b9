"""A person's preferences: what the browser may change, its default, and where each value in force comes from."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.base.record import field_names
from cortex.base.role import ToolMode
from cortex.base.user import User
from cortex.services.roles.roles import PERSONA_FILE, typed_rounds
from cortex.storage.db import Database
from cortex.storage.home import ABSENT, HomeFile, Homes
from cortex.storage.preferences import PreferencesRepository as Rows

Theme = Literal["auto", "light", "dark"]
Density = Literal["normal", "dense"]
FirstDay = Literal["monday", "sunday", "saturday"]
TextSize = Literal["normal", "small", "large"]
Origin = Literal["default", "yours"]
DEFAULT_ROLE = "orchestrator"
PERSONA_CHARS_MAX = 8_000
_UNSET = ""


class Preferences(Struct, frozen=True, kw_only=True):
    """The preferences in force for a person. None: not set on this level, so role and settings decide.

    `follows`: whether the page scrolls with an answer while it is written. `keys`: single-key shortcuts. `engine`:
    whether tokens, tools and rounds stand under each answer; an admin's default is yes. `first_day`: of a
    week, None by the language of the browser. `role`, `mode`, `max_rounds`: what a new conversation starts with.
    """

    theme: Theme = "auto"
    density: Density = "normal"
    text_size: TextSize = "normal"
    follows: bool = False
    keys: bool = True
    engine: bool = False
    first_day: FirstDay | None = None
    role: str = DEFAULT_ROLE
    mode: ToolMode | None = None
    max_rounds: int | None = None


NAMES = field_names(Preferences)
_CHOICES: dict[str, tuple[str, ...]] = {
    "theme": get_args(Theme),
    "density": get_args(Density),
    "text_size": get_args(TextSize),
    "first_day": get_args(FirstDay),
    "mode": get_args(ToolMode),
}


class PreferencesService(Struct, frozen=True):
    """Reads and writes one person's preferences."""

    db: Database
    homes: Homes

    async def get(self, user: User) -> Preferences:
        """The values in force."""
        return Preferences(**{"engine": user.is_admin, **await self._stored(user)})

    async def origins(self, user: User) -> dict[str, Origin]:
        """For each name whether the value is the default or the person's own."""
        stored = await self._stored(user)
        return {name: "yours" if name in stored else "default" for name in NAMES}

    async def change(self, user: User, values: Mapping[str, str], *, roles: tuple[str, ...] = ()) -> Preferences:
        """Store these values, as a form gives them; an empty one returns to the default.

        `roles`: names that a person may choose as the role of new conversations. UserError names the wrong field.
        """
        checked = {name: _checked(name, value.strip(), roles) for name, value in values.items() if name in NAMES}
        rows = self.db.repository(Rows, user.id)
        for name, value in checked.items():
            await rows.set(name, value)
        return await self.get(user)

    async def persona(self, user: User) -> HomeFile:
        """The person's own words on who the assistant is to them; empty while the shipped ones are in force."""
        return await self.homes.home_of(user.id).configured(PERSONA_FILE) or HomeFile(text="", version=ABSENT)

    async def save_persona(self, user: User, text: str, version: str) -> str:
        """Put these words in force; none at all brings the shipped ones back. Conflict when `version` is an old one."""
        words = text.replace("\r\n", "\n").strip()
        if len(words) > PERSONA_CHARS_MAX:
            raise UserError(f"That is too long: at most {PERSONA_CHARS_MAX:,} characters.", field="persona")
        return await self.homes.home_of(user.id).write(PERSONA_FILE, f"{words}\n" if words else "", version)

    async def _stored(self, user: User) -> dict[str, Any]:
        """Return what was chosen and not taken back. Any: each value was checked by `change` before it was written."""
        rows = await self.db.repository(Rows, user.id).all()
        return {name: value for name, value in rows.items() if name in NAMES and value is not None}


def _checked(name: str, value: str, roles: tuple[str, ...]) -> str | int | bool | None:
    if name in ("keys", "engine", "follows"):
        return value not in ("", "0", "off", "false")
    if name == "max_rounds":
        return typed_rounds(value)
    if name == "role" and value and value not in roles:
        raise UserError(f"There is no role {value!r}.", field=name)
    if value == _UNSET:
        return None
    if name in _CHOICES and value not in _CHOICES[name]:
        raise UserError(f"Choose one of {', '.join(_CHOICES[name])}.", field=name)
    return value
