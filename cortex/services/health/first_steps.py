"""The first steps with Cortex: what is done and what is left, for the set-up page and a new chat."""

from typing import Literal

from msgspec import Struct

from cortex.base.settings import Settings
from cortex.base.user import User
from cortex.services.chat.conversations import ConversationsService
from cortex.services.integrations.integrations import Integrations
from cortex.services.models.models import Models
from cortex.services.notices.addresses import Addresses
from cortex.services.notices.devices import DevicesService
from cortex.services.tools.plugins import KIND as PLUGIN
from cortex.storage.db import Database
from cortex.storage.integrations import IntegrationsRepository
from cortex.storage.preferences import PreferencesRepository

HIDDEN = "first_steps.hidden"
StepName = Literal["account", "model", "notifications", "integrations", "chat"]
Tip = Literal["outside", "passphrase", "key"]  # what a backup lacks


class FirstStep(Struct, frozen=True, kw_only=True):
    """One of them."""

    name: StepName
    is_done: bool


class FirstSteps(Struct, frozen=True, kw_only=True):
    """All that a person has to do, in their order. `is_hidden`: they want to hear no more of it.

    tips: what is left to make backups safe, for admins; optional, and not counted.
    """

    steps: tuple[FirstStep, ...]
    tips: tuple[Tip, ...] = ()
    is_hidden: bool = False

    @property
    def done(self) -> int:
        """Return how many are done."""
        return sum(step.is_done for step in self.steps)


class FirstStepsService(Struct, frozen=True, kw_only=True):
    """Looks at what is there; nothing but the wish to hide them is stored."""

    db: Database
    models: Models
    addresses: Addresses
    devices: DevicesService
    integrations: Integrations
    conversations: ConversationsService
    settings: Settings

    async def all(self, user: User) -> FirstSteps:
        """The steps of this person; members set up no integrations."""
        is_told = bool(await self.devices.list(user) or await self.addresses.named(user.id))
        found = {
            "account": True,
            "model": bool((await self.models.shown(user)).entries),
            "notifications": is_told,
            "integrations": any(row.kind != PLUGIN for row in await self.db.repository(IntegrationsRepository).list()),
            "chat": bool(await self.conversations.list(user)),
        }
        names: tuple[StepName, ...] = ("account", "model", "notifications", "integrations", "chat")
        mine = [name for name in names if user.is_admin or name != "integrations"]
        steps = tuple(FirstStep(name=name, is_done=found[name]) for name in mine)
        return FirstSteps(
            steps=steps, tips=self._tips() if user.is_admin else (), is_hidden=await self._is_hidden(user)
        )

    def _tips(self) -> tuple[Tip, ...]:
        settings = self.settings
        found: dict[Tip, bool] = {
            "outside": not settings.backup_to,
            "passphrase": not settings.backup_passphrase,
            "key": (settings.home / "secret.key").is_file(),
        }
        return tuple(name for name, is_left in found.items() if is_left)

    async def left(self, user: User) -> FirstSteps | None:
        """The steps while some are left and the person has not hidden them."""
        if await self._is_hidden(user):
            return None
        found = await self.all(user)
        return found if found.done < len(found.steps) else None

    async def hide(self, user: User, *, is_hidden: bool) -> None:
        """Show them in new chats no more, or again."""
        await self.db.repository(PreferencesRepository, user.id).set(HIDDEN, is_hidden)

    async def _is_hidden(self, user: User) -> bool:
        return bool(await self.db.repository(PreferencesRepository, user.id).get(HIDDEN, False))
