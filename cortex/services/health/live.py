"""What only the running daemon knows of its health: the scheduler, models, push, the way to the page, the last error.

The health page shows it below what the doctor finds. A check of a part that is built later is a line more in `CHECKS`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from msgspec import Struct

from cortex.base.errors import CortexError
from cortex.base.log import LogBook
from cortex.services.health.finding import Finding, State, bad, good, proxy_finding, warn
from cortex.services.notices.channels import Channels
from cortex.services.notices.push_keys import PushKeys
from cortex.services.runtime import Runtime
from cortex.storage.calendars import DueCalendarsRepository
from cortex.storage.figures import EndpointFigures, FiguresRepository
from cortex.storage.mail import DueMailRepository

LATE_S, TOO_LATE_S = 60.0, 600.0  # a job waits for those ahead of it; minutes are no traffic any more
LOOKED_BACK = timedelta(hours=24)


class LiveHealth(Struct, frozen=True, kw_only=True):
    """The checks of the running daemon."""

    runtime: Runtime
    channels: Channels
    push_keys: PushKeys
    log_book: LogBook

    async def findings(self) -> list[Finding]:
        """Every check, in the order of the page. Asks no network."""
        return [await check(self) for check in CHECKS]

    async def scheduler(self) -> Finding:
        """Tell whether what is due is fired in time."""
        due = await self.runtime.db.repository(FiguresRepository).longest_due()
        lag_s = max(0.0, (self.runtime.clock() - due).total_seconds()) if due else 0.0
        state: State = "bad" if lag_s > TOO_LATE_S else "warn" if lag_s > LATE_S else "good"
        text = (
            f"The oldest due job or reminder has waited {lag_s:.0f} s." if lag_s > 2 else "Nothing that is due waits."
        )
        mend = (
            "" if state == "good" else "Look for errors in the log; with `cortex web`, see that a `cortex worker` runs."
        )
        return Finding(name="scheduler", state=state, text=text, mend=mend)

    async def engine(self) -> Finding:
        """Return how many runs are open."""
        runs = len(await self.runtime.runner.unfinished())
        return good("running turns", f"{runs or 'No'} turn{'' if runs == 1 else 's'} running.")

    async def models(self) -> Finding:
        """Return how the models answered in the last day: by what was really asked, so that looking costs nothing."""
        since = self.runtime.clock() - LOOKED_BACK
        called = await self.runtime.db.repository(FiguresRepository).endpoints(since)
        if not called:
            return good("model endpoints", "No model was asked in the last 24 hours.")
        away = [one.model for one in called if _is_away(one)]
        text = "; ".join(f"{one.model}: {one.answered} answers, {one.failed} failures" for one in called)
        mend = f"{', '.join(away)} failed last: test it on the Models page." if away else ""
        return Finding(name="model endpoints", state="warn" if away else "good", text=f"{text}.", mend=mend)

    async def calendars(self) -> Finding:
        """Tell whose calendars could not be asked for a while; why, they read themselves."""
        count, people = await self.runtime.db.repository(DueCalendarsRepository).failing()
        if not people:
            return good("calendars", f"{count or 'No'} calendar account{'' if count == 1 else 's'} connected.")
        return warn(
            "calendars",
            f"Some calendars could not be reached lately. They are of: {', '.join(people)}.",
            "They see the reason on their page Calendar, Accounts, and can connect it again there.",
        )

    async def mail(self) -> Finding:
        """Tell whose mail could not be asked for a while; why, they read themselves."""
        count, people = await self.runtime.db.repository(DueMailRepository).failing()
        if not people:
            return good("mail", f"{count or 'No'} mail account{'' if count == 1 else 's'} connected.")
        return warn(
            "mail",
            f"Some mail accounts could not be reached lately. They are of: {', '.join(people)}.",
            "They see the reason on their page Mail accounts, and can connect it again there.",
        )

    async def push(self) -> Finding:
        """Tell whether pushes can be signed and sent."""
        try:
            await self.push_keys.public()
        except CortexError as error:
            return bad("push keys", error.message)
        return good("push keys", "They can be read.")

    async def https(self) -> Finding:
        """Tell whether browsers reach the page by https, which push and installing need."""
        settings = self.runtime.settings
        if settings.public_url.startswith("https://"):
            return good("https", f"People open {settings.public_url}.")
        if settings.is_private:
            return good("https", "Only this machine can reach the page, which browsers trust like https.")
        return warn(
            "https",
            "The page is sent unencrypted, and push does not work.",
            "Put a proxy with https in front, and set public address and trusted proxies on the page Settings.",
        )

    async def proxy(self) -> Finding:
        """Return what a proxy does to requests and answers; asks the public address over the network."""
        return await proxy_finding(self.runtime.settings.public_url)

    async def last_error(self) -> Finding:
        """The newest error of the log since the start."""
        lines = await asyncio.to_thread(self.log_book.tail, 1, "ERROR")
        if not lines:
            return good("last error", "None since the start.")
        return warn("last error", lines[0].splitlines()[0])


def _is_away(figures: EndpointFigures) -> bool:
    failed, answered = figures.failed_last, figures.answered_last
    return failed is not None and (answered is None or failed > answered)


CHECKS: tuple[Callable[[LiveHealth], Awaitable[Finding]], ...] = (
    LiveHealth.scheduler,
    LiveHealth.engine,
    LiveHealth.models,
    LiveHealth.calendars,
    LiveHealth.mail,
    LiveHealth.push,
    LiveHealth.https,
    LiveHealth.last_error,
)
