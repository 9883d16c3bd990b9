"""What the admins change about tools for everybody: on or off, when sent, ask first, words. Each change is audited.

Every process reads the changes again once their number has grown, so that the very next message goes by them.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.user import User
from cortex.selection.types import META, Snapshot
from cortex.services.integrations.access import NO_ACCESS, PortAccess
from cortex.services.integrations.integrations import Integrations
from cortex.services.tools.edits import NO_EDITS, Edits, Sending
from cortex.services.tools.own_ports import with_own_ports
from cortex.services.tools.own_weights import is_loaded, with_own_model
from cortex.services.tools.words import read_description, shipped_examples, words_of
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.halts import OUTWARD, HaltsRepository
from cortex.storage.refits import RefitRow, RefitsRepository
from cortex.storage.tool_settings import ToolSettingRow, ToolSettingsRepository, ToolWordRow
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Category, Tool

Added = Callable[[], Awaitable[Sequence[Category]]]
Field = Literal["is_on", "sending", "asks_first", "description"]

ONLY = "change everybody's tools"  # for admins


class ToolSettings(Struct, frozen=True, kw_only=True):
    """The settings in force. `asks_first`: tools that ask although they ship without; it only ever tightens.

    off: nobody has these; outward_off: those of them that were switched off all at once.

    `refit`: the fitted model of its own that is in force, None = the shipped one. `access`: what the outside systems
    that are set up, and what people connect for themselves, open to whom.
    """

    number: int = 0
    off: frozenset[str] = frozenset()
    outward_off: frozenset[str] = frozenset()
    asks_first: frozenset[str] = frozenset()
    edits: Edits = NO_EDITS
    refit: RefitRow | None = None
    access: PortAccess = NO_ACCESS


AS_SHIPPED = ToolSettings()


class ToolSettingsService:
    """Reads and changes the settings of tools; only admins change them."""

    def __init__(
        self, db: Database, registry: Registry, integrations: Integrations, added: Added | None = None
    ) -> None:
        """Nothing is read before it is asked for. added: the tools that are set up besides those that ship."""
        self._added = added
        self._db = db
        self._integrations = integrations
        self._registry = registry
        self._kept: list[ToolSettings] = []

    async def in_force(self) -> ToolSettings:
        """Return what holds now: one number is read, and the rest only where it has grown.

        Who reads in a transaction that began before a change is given what this process knows of it already.
        """
        number = await self._db.repository(ToolSettingsRepository).number()
        if not self._kept or self._kept[0].number < number:
            found = await self._read(number)
            added = await self._added() if self._added else ()
            if not self._kept or self._kept[0].number < number:  # else somebody has read more meanwhile
                self._registry.put(added)
                outward = await self._outward_off()
                self._kept[:] = [replace(found, off=found.off | outward, outward_off=outward)]
        return self._kept[0]

    async def judged(self, snapshot: Snapshot, settings: ToolSettings) -> Snapshot:
        """The snapshot with the server's own model, if one is in force and fits the shipped one it was made from."""
        if settings.refit is None:
            return snapshot
        data = (
            None
            if is_loaded(settings.refit)
            else await self._db.repository(RefitsRepository).weights(settings.refit.number)
        )
        return await asyncio.to_thread(with_own_model, snapshot, settings.refit, data)

    async def all(self) -> Mapping[str, ToolSettingRow]:
        """Return what was set, by tool."""
        return {setting.tool: setting for setting in await self._db.repository(ToolSettingsRepository).all()}

    async def words(self, category: str) -> Sequence[ToolWordRow]:
        """Return what was added to a category and what that ships was left out; NotFound for an unknown one.

        What an earlier version shipped and this one does not, nobody has to leave out.
        """
        self._category(category)
        shipped = shipped_examples(self._registry, category)
        found = await self._db.repository(ToolSettingsRepository).words(category)
        return [word for word in found if not word.is_left_out or word.text_key in shipped]

    async def change(self, user: User, name: str, *, is_on: bool, sending: str, asks_first: bool) -> None:
        """Set these three; what is as it ships is no setting. UserError names what cannot be."""
        tool = self._changeable(user, name)
        if sending not in get_args(Sending):
            raise UserError(f"Choose when it is sent: {', '.join(get_args(Sending))}.", field="sending")
        await self._set(
            user,
            name,
            is_on=None if is_on else False,
            sending=None if sending == shipped_sending(tool) else sending,
            asks_first=True if asks_first and not asks_itself(tool) else None,
        )

    async def describe(self, user: User, name: str, description: str) -> int:
        """Have models read these words of the tool; the number of the change in the audit log, 0 where none was made.

        The shipped words are no setting. UserError says what is wrong with them.
        """
        tool = self._changeable(user, name)
        words = read_description(description)
        return await self._set(user, name, description=None if words == tool.full.description else words)

    async def undo_description(self, user: User, name: str, number: int) -> None:
        """Put back what stood there before this change of the audit log; Conflict where it was changed again since."""
        tool = self._changeable(user, name)
        found = await self._db.repository(AuditRepository).list(1, number + 1, subject=name)
        is_it = bool(found) and found[0].number == number and found[0].action == "tool.changed"
        change = json.loads(found[0].detail).get("description") if is_it else None
        if change is None:
            raise NotFound("This change to undo does not exist.")
        before, after = change
        if (await self.all()).get(name, ToolSettingRow(tool=name)).description != after:
            raise Conflict("The description was changed again since, so it stays as it is.")
        await self._set(user, name, description=None if before == tool.full.description else before)

    async def take_back(self, user: User, name: str, field: str) -> int:
        """Let one thing be as it ships again; the number of the change as in `describe`."""
        self._changeable(user, name)
        if field not in get_args(Field):
            raise UserError(f"{field!r} cannot be undone.")
        return await self._set(user, name, **{field: None})

    async def save_words(self, user: User, category: str, words: Sequence[ToolWordRow]) -> int:
        """Put these in the place of what was done to the category's words; how many lines that changes."""
        user.must_be_admin(ONLY)
        self._category(category)
        async with self._db.transaction() as repository:
            settings = repository(ToolSettingsRepository)
            before = await settings.words(category)
            gone = [word for word in before if word not in words]
            new = [word for word in words if word not in before]
            if gone or new:
                await settings.drop_words(gone)
                await settings.add_words(new, user.id)
                detail = {
                    "added": [_audit_values(word) for word in new],
                    "taken_back": [_audit_values(word) for word in gone],
                }
                await repository(AuditRepository).add(user.id, "tool.words", category, detail)
        return len({(word.kind, word.text_key) for word in (*gone, *new)})

    async def _set(self, user: User, name: str, **values: Any) -> int:  # Any: a field's value
        """Set these, leave the rest; the audit log's number, 0 where nothing changed."""
        async with self._db.transaction() as repository:
            settings = repository(ToolSettingsRepository)
            found = [setting for setting in await settings.all() if setting.tool == name]
            before = found[0] if found else ToolSettingRow(tool=name)
            changes = {field: [getattr(before, field), to] for field, to in values.items()}
            changes = {field: change for field, change in changes.items() if change[0] != change[1]}
            if not changes:
                return 0
            await settings.set(replace(before, **values), user.id)
            return (await repository(AuditRepository).add(user.id, "tool.changed", name, changes)).number

    async def _read(self, number: int) -> ToolSettings:
        settings = self._db.repository(ToolSettingsRepository)
        found, words = await settings.all(), await settings.words()
        sending = {each.tool: cast("Sending", each.sending) for each in found if each.sending in get_args(Sending)}
        return ToolSettings(
            number=number,
            off=frozenset(each.tool for each in found if each.is_on is False),
            asks_first=frozenset(each.tool for each in found if each.asks_first),
            edits=Edits(
                sending=sending,
                words=words_of(words),
                descriptions={each.tool: each.description for each in found if each.description is not None},
            ),
            refit=await self._db.repository(RefitsRepository).in_force(),
            access=await with_own_ports(await self._integrations.access(), self._db),
        )

    async def _outward_off(self) -> frozenset[str]:
        """The tools that reach outside, while an admin has them switched off all at once."""
        halts = await self._db.repository(HaltsRepository).list()
        if not any(halt.scope == OUTWARD for halt in halts):
            return frozenset()
        return frozenset(name for name, tool in self._registry.tools.items() if tool.is_outward)

    def _changeable(self, user: User, name: str) -> Tool:
        user.must_be_admin(ONLY)
        tool = self._registry.get(name)
        if tool is None:
            raise NotFound(f"There is no tool {name!r}.")
        if tool.category == META:
            raise UserError(f"{name} finds and calls other tools. It has no settings.")
        return tool

    def _category(self, name: str) -> None:
        if self._registry.category(name) is None or name == META:
            raise NotFound(f"There is no category {name!r}.")


def shipped_sending(tool: Tool) -> Sending:
    """When a tool is sent if nobody says otherwise."""
    return "always" if tool.policy == "core" or tool.ambient else "needed"


def asks_itself(tool: Tool) -> bool:
    """Tell whether the tool asks before each call as it ships: no setting takes that away."""
    return tool.confirm or tool.risk == "high"


def _audit_values(word: ToolWordRow) -> dict[str, Any]:  # Any: what the audit log takes
    return {"kind": word.kind, "text": word.text, "tools": list(word.tools), "left_out": word.is_left_out}
