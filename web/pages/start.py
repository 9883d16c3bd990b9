"""The first steps after the account is made: what is done, what is left, and the way to each."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.services.health.first_steps import FirstSteps
from web.deps import CurrentUser, Services, Text
from web.frame import frame_of
from web.render import Context, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartContext(Context):
    """The steps."""

    first: FirstSteps = described("each step with whether it is done; whether new chats speak of them")


@router.get("/start")
async def show(request: Request, services: Services, user: CurrentUser) -> Response:
    """Return what is done and what is left."""
    context = StartContext(
        frame=await frame_of(request, services, user, here="/start"), first=await services.first_steps.all(user)
    )
    return respond(request, "start.html", context)


@router.post("/start")
async def hide(request: Request, services: Services, user: CurrentUser, hidden: Text = "") -> Response:
    """Speak of them in new chats, or no more."""
    await services.first_steps.hide(user, is_hidden=bool(hidden))
    return redirect(
        request, "/start", "New chats do not show this any more." if hidden else "New chats show this again."
    )
