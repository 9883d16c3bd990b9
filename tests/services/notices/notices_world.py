"""A house in which people are reached: real tables, real channels, servers on this machine, and a clock held still."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cortex.base.background import background_tasks
from cortex.base.clock import ticks_s
from cortex.base.log import LogBook
from cortex.base.settings import load_settings
from cortex.base.user import User
from cortex.compose.services import Services
from cortex.engine.hub import LocalHub
from cortex.engine.null_engine import NullEngine
from cortex.integrations.sandbox import Sandbox
from cortex.services.accounts.accounts import LoginView
from cortex.services.notices.devices import DeviceView, Subscription
from cortex.services.notices.notices import DeliveryRow, NoticeDraft, Notices
from cortex.services.notices.outbox import LEASE_S
from cortex.services.runtime import Runtime
from cortex.storage.accounts import AccountsRepository, LoginsRepository
from cortex.storage.db import Database
from cortex.storage.deliveries import AllDeliveriesRepository
from cortex.toolkit.registry import Registry
from tests.notify.browser import Browser
from tests.patience import PATIENCE_S
from tests.still_clock import StillClock

ADA = User(id="ada", name="Ada", rank="admin", time_zone="Europe/Berlin")
BOB = User(id="bob", name="Bob", rank="member", time_zone="Europe/Berlin")
SUBJECT = "mailto:ada@example.org"
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
TEA = NoticeDraft(
    key="tea", kind="reminder", title="Water the plants", text="The fern first.", path="/reminders", is_tainted=False
)


class NoticesWorld(Services):
    """The services, composed as the product composes them."""

    def __init__(self, runtime: Runtime, clock: StillClock) -> None:
        super().__init__(runtime, sandbox=Sandbox(), is_boxed=False, log_book=LogBook())
        self.db, self.clock = runtime.db, clock

    @cached_property
    def notices(self) -> Notices:
        """With nobody behind the notices: those of reminders are of none that stands."""
        return replace(super().notices, answered={})

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """While the outbox is at work."""
        async with background_tasks(self.outbox.send_due):
            yield

    async def login(self, user: User = ADA, id: str = "login-1") -> LoginView:
        known = {login.id for login in await self.db.repository(LoginsRepository, user.id).list()}
        if id not in known:
            until = self.clock() + timedelta(days=30)
            await self.db.repository(LoginsRepository, user.id).add(
                id, f"token {user.id} {id}", "127.0.0.1", AGENT, until
            )
        return LoginView(user=user, login_id=id, is_confirmed=False)

    async def subscribed(
        self, browser: Browser, endpoint: str, *, user: User = ADA, login: str = "login-1", **more: str
    ) -> DeviceView:
        target = browser.target(endpoint)
        newest = await self.devices.key()
        subscription = Subscription(endpoint=endpoint, p256dh=target.key, auth=target.secret, signed_for=newest, **more)
        return await self.devices.subscribe(await self.login(user, login), subscription, AGENT)

    async def deliveries(self, notice_id: str, user: User = ADA) -> dict[str, DeliveryRow]:
        view = await self.notices.get(user.id, notice_id)
        return {row.channel: row for row in view.deliveries}

    async def ended(self, notice_id: str, user: User = ADA) -> dict[str, DeliveryRow]:
        """The notice's deliveries when none is under way any more."""

        async def are_over() -> bool:
            return all(
                row.state not in ("pending", "attempting") for row in (await self.deliveries(notice_id)).values()
            )

        await until(are_over)
        return await self.deliveries(notice_id, user)

    async def taken(self) -> int:
        """Take what is due from the webhooks' outbox and say nothing more, as a process that dies would."""
        return len(await self.db.repository(AllDeliveriesRepository).take("webhook", 9, LEASE_S))

    def later(self, **more: float) -> None:
        """Move the clock on, and wake who sends."""
        self.clock.forward(**more)
        self.notices.wake()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110 - it looks at tables, as another process would
            await asyncio.sleep(0.02)


async def made_world(db: Database, clock: StillClock, home: Path, **settings: Any) -> NoticesWorld:
    """The world over a migrated database; a second one over the same is the house after a restart."""
    given = {"push_subject": SUBJECT, "secret_key": "k" * 40, "public_url": "https://cortex.example.org", **settings}
    resting = NullEngine()
    for user in (ADA, BOB):
        if await db.repository(AccountsRepository).named(user.name) is None:
            await db.repository(AccountsRepository).add(user.id, user.name, user.rank, None, user.time_zone)
    runtime = Runtime(
        settings=load_settings(None, home=home, **given),
        db=db,
        hub=LocalHub(),
        runner=resting,
        signals=resting,
        registry=Registry(()),
        clock=clock,
        ticks_s=ticks_s,
    )
    return NoticesWorld(runtime, clock)
