"""The four questions of the first day, and whether what was answered works. A step is done once it was tried and works.

For the set-up page, and for whoever says how far set-up is. Members are asked two of the four.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from cortex.base.user import User
from cortex.services.accounts.accounts import Accounts
from cortex.services.health.opening import OpeningService
from cortex.services.models.models import Models
from cortex.services.notices.addresses import Addresses
from cortex.services.notices.devices import DevicesService
from cortex.storage.db import Database
from cortex.storage.deliveries import DeliveriesRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.rounds import RoundsRepository

HIDDEN = "first_steps.hidden"
ALONE = "first_steps.alone"
TOLD = "first_steps.told"  # the channel by which a test went out, and when
StepName = Literal["open", "notify", "model", "people"]
StepState = Literal["todo", "found", "waiting", "failed", "works"]


class FirstStep(Struct, frozen=True, kw_only=True):
    """One question. `what`: the address, channel, model or person that it is about; `by`: the browser that was seen.

    `at`: when it worked; `why`: what went wrong.
    """

    name: StepName
    state: StepState = "todo"
    what: str = ""
    by: str = ""
    at: datetime | None = None
    why: str = ""

    @property
    def is_done(self) -> bool:
        """Tell whether it was tried and works."""
        return self.state == "works"


class FirstSteps(Struct, frozen=True, kw_only=True):
    """The questions to one person, in order. `is_hidden`: they want to hear no more of it."""

    steps: tuple[FirstStep, ...]
    is_hidden: bool = False

    @property
    def done(self) -> int:
        """Return how many are done."""
        return sum(step.is_done for step in self.steps)

    def step(self, name: str) -> FirstStep | None:
        """The step of this name, None where the person is not asked."""
        return next((step for step in self.steps if step.name == name), None)


class FirstStepsService(Struct, frozen=True, kw_only=True):
    """Looks at what is there."""

    db: Database
    accounts: Accounts
    models: Models
    addresses: Addresses
    devices: DevicesService
    opening: OpeningService

    async def all(self, user: User, port: int = 0) -> FirstSteps:
        """The steps of this person. `port`: the one that is listened on, for the address of this machine."""
        mine = [await self._notify(user), await self._model(user)]
        if user.is_admin:
            mine = [await self._open(port), *mine, await self._people(user)]
        return FirstSteps(steps=tuple(mine), is_hidden=await self._is_hidden(user))

    async def left(self, user: User) -> FirstSteps | None:
        """The steps while some are left and the person has not hidden them."""
        if await self._is_hidden(user):
            return None
        found = await self.all(user)
        return found if found.done < len(found.steps) else None

    async def hide(self, user: User, *, is_hidden: bool) -> None:
        """Speak of them no more, or again."""
        await self.db.repository(PreferencesRepository, user.id).set(HIDDEN, is_hidden)

    async def stay_alone(self, user: User) -> None:
        """Note that there is nobody else."""
        await self.db.repository(PreferencesRepository, user.id).set(ALONE, True)

    async def tell(self, user: User, channel: str, address: str, key: str = "") -> str:
        """Keep the address of a channel and send a test there; why it did not go out, "" when it did.

        UserError names the field that is wrong, or says what the server lacks.
        """
        await self.addresses.put(user, channel, address, "", key)
        error = await self.addresses.test(user, channel)
        if not error:
            told = {"channel": channel, "at": self.db.clock().isoformat()}
            await self.db.repository(PreferencesRepository, user.id).set(TOLD, told)
        return error

    async def test_devices(self, user: User) -> str:
        """Push a test to each device of this person; why one did not go out, "" when all did."""
        errors = [await self.devices.test(user, one.id) for one in await self.devices.list(user)]
        return next(filter(None, errors), "")

    async def _open(self, port: int) -> FirstStep:
        found = await self.opening.look(port)
        state: StepState = "works" if found.works else "todo" if found.way == "here" else "waiting"
        return FirstStep(name="open", state=state, what=found.address, by=found.agent, at=found.at)

    async def _notify(self, user: User) -> FirstStep:
        devices = await self.devices.list(user)
        shown = max((one for one in devices if one.shown_at), key=lambda one: str(one.shown_at), default=None)
        if shown is not None:
            return FirstStep(name="notify", state="works", what=shown.name, at=shown.shown_at)
        named = await self.addresses.named(user.id)
        told = await self.db.repository(PreferencesRepository, user.id).get(TOLD)
        if told and told["channel"] in named:
            at = datetime.fromisoformat(told["at"])
            return FirstStep(name="notify", state="works", what=self._label(told["channel"]), at=at)
        arrived = await self.db.repository(DeliveriesRepository, user.id).list(states=("delivered",), limit=20)
        for one in arrived:
            if one.channel in named:
                return FirstStep(name="notify", state="works", what=self._label(one.channel), at=one.ended_at)
        if failing := next((one for one in devices if one.state in ("failing", "expired")), None):
            return FirstStep(name="notify", state="failed", what=failing.name, why=failing.error)
        if waiting := next(iter(devices), None):
            return FirstStep(name="notify", state="waiting", what=waiting.name)
        return FirstStep(name="notify")

    def _label(self, channel: str) -> str:
        kind = self.addresses.channels.kinds.get(channel)
        return kind.label if kind else channel

    async def _model(self, user: User) -> FirstStep:
        registry = await self.models.shown(user)
        first = next((registry.get(name) for name in registry.default if registry.get(name)), None)
        first = first or next(iter(registry.entries), None)
        if first is None:
            return FirstStep(name="model")
        tested = registry.tested.get(first.name)
        answered = await self.db.repository(RoundsRepository, user.id).answered_at(first.name)
        if first.owner_id or answered or (tested and tested.is_ok):
            at = answered or (tested.at if tested else None)
            return FirstStep(name="model", state="works", what=first.name, by=first.owner, at=at)
        if tested:
            return FirstStep(name="model", state="failed", what=first.name, why=" ".join(tested.lines))
        return FirstStep(name="model", state="found", what=first.name)

    async def _people(self, user: User) -> FirstStep:
        others = [one for one in await self.accounts.all_accounts() if one.is_active and one.id != user.id]
        if here := [one.name for one in others if not one.is_invited]:
            return FirstStep(name="people", state="works", what=_joined(here))
        if invited := [one.name for one in others]:
            return FirstStep(name="people", state="waiting", what=_joined(invited))
        is_alone = await self.db.repository(PreferencesRepository, user.id).get(ALONE)
        return FirstStep(name="people", state="works" if is_alone else "todo")

    async def _is_hidden(self, user: User) -> bool:
        return bool(await self.db.repository(PreferencesRepository, user.id).get(HIDDEN, False))


def _joined(names: Sequence[str]) -> str:
    """Return the first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
