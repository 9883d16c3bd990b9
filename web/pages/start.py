"""The first steps after the account is made: what is done, what is left, and the way to each."""

from fastapi.responses import Response

from cortex.services.health.first_steps import FirstSteps
from web.deps import Text
from web.render import Context, described
from web.routes import PageRouter
from web.visit import UserVisit

router = PageRouter()


class StartContext(Context, frozen=True, kw_only=True):
    """The steps."""

    first: FirstSteps = described("each step with whether it is done; whether new chats speak of them")


@router.get("/start")
async def show(visit: UserVisit) -> Response:
    """Return what is done and what is left."""
    context = StartContext(first=await visit.services.first_steps.all(visit.user))
    return await visit.show("start.html", context)


@router.post("/start")
async def hide(visit: UserVisit, hidden: Text = "") -> Response:
    """Speak of them in new chats, or no more."""
    await visit.services.first_steps.hide(visit.user, is_hidden=bool(hidden))
    return visit.redirect("/start", "New chats do not show this any more." if hidden else "New chats show this again.")
