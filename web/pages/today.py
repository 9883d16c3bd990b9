"""Today, the first page: `/today`, and `/`, which leads there."""

from collections.abc import Sequence
from datetime import datetime

from fastapi.responses import RedirectResponse, Response

from cortex.base.ids import new_id
from cortex.services.reminders.reminders import SNOOZES, Snooze
from cortex.services.today.today import TRIES, Today
from web.render import Context, NavEntry, described
from web.routes import PageRouter
from web.visit import UserVisit

router = PageRouter()
HREF = "/today"
NAV = NavEntry(title="Today", href=HREF, icon="sun", order=5)


class TodayContext(Context, frozen=True, kw_only=True):
    """The day."""

    today: Today = described("what waits, what is due, what comes next, what happened; each may be empty")
    now: datetime = described("this moment, by which times are told as today, tomorrow, yesterday")
    here: str = described("this page's own address, for forms to come back to")
    once: str = described("what the message is known by, so that sending it twice is sending it once")
    role: str = described("the role that a new chat begins with")
    mode: str = described("the tool mode that a new chat begins with")
    tries: Sequence[str] = described("sentences to begin with, where nothing is due")
    snoozes: dict[Snooze, str] = described("ready choices to put a reminder off: value, words")


@router.get("/")
async def home(visit: UserVisit) -> Response:
    """Lead to the day."""
    return RedirectResponse(HREF, 303)


@router.get(HREF)
async def show(visit: UserVisit) -> Response:
    """Return the day as it stands."""
    chosen = await visit.services.preferences.get(visit.user)
    context = TodayContext(
        today=await visit.services.today.of(visit.user),
        now=visit.services.runtime.clock(),
        here=HREF,
        once=new_id(),
        role=chosen.role,
        mode=chosen.mode or "auto",
        tries=TRIES,
        snoozes=SNOOZES,
    )
    return await visit.show("today.html", context)
