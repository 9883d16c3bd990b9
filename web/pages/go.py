"""The page behind a button of a notification: a single-use link that needs the login and acts when pressed here."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from cortex.base.errors import Conflict
from cortex.services.notices.action_links import Pressable
from cortex.services.reminders.reminders import SNOOZES
from web.deps import CurrentLogin, Services, Text
from web.frame import frame_of
from web.render import Context, described, respond
from web.routes import LazyRoute
from web.security import local_path
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)


DONE = {"approve": "Allowed.", "deny": "Denied.", "ack": "Done.", "snooze": "Snoozed."}


@dataclass(frozen=True, slots=True, kw_only=True)
class GoContext(Context):
    """The question before the button is pressed."""

    token: str = described("the link's own part of the address")
    found: Pressable = described("the notice, what would be done, and whether it was")
    asked: Any = described("the approval: the question that a yes or no would answer, while it waits for one")
    snoozes: dict[str, str] = described("for how long something can be put off: value, words")
    error: str = described("why it could not be done", default="")


@router.get("/go/{token}")
async def show(request: Request, services: Services, view: CurrentLogin, token: str) -> Response:
    """Return what the button would do. An old question asks for the password first; to look changes nothing."""
    found = await services.action_links.preview(view, token)
    if found.needs_password and not found.is_used:
        return RedirectResponse(f"/confirm?next=/go/{token}", 303)
    return await _page(request, services, view, token, found)


@router.post("/go/{token}")
async def press(
    request: Request, services: Services, view: CurrentLogin, token: str, choice: Text = "10min"
) -> Response:
    """Do it, once, and go on to what it was about."""
    found = await services.action_links.preview(view, token)
    if found.needs_password and not found.is_used:
        return RedirectResponse(f"/confirm?next=/go/{token}", 303)
    try:
        place = await services.action_links.press(view, token, choice)
    except Conflict as refused:
        found = await services.action_links.preview(view, token)
        return await _page(request, services, view, token, found, refused.message, 409)
    return redirect(request, local_path(place), DONE[found.action])


async def _page(
    request: Request,
    services: Services,
    view: CurrentLogin,
    token: str,
    found: Pressable,
    error: str = "",
    status: int = 200,
) -> Response:
    waiting = await services.approvals.pending(view.user) if found.action in ("approve", "deny") else ()
    context = GoContext(
        frame=await frame_of(request, services, view.user, here="/notifications"),
        token=token,
        found=found,
        asked=next((one for one in waiting if one.id == found.notice.subject_id), None),
        snoozes={str(value): words for value, words in SNOOZES.items()},
        error=error,
    )
    return respond(request, "go.html", context, status=status)
