"""The page behind a button of a notification: a single-use link that needs the login and acts when pressed here."""

from typing import Any

from fastapi.responses import JSONResponse, RedirectResponse, Response

from cortex.base.errors import Conflict
from cortex.services.notices.action_links import Pressable
from cortex.services.reminders.reminders import SNOOZES
from web.deps import Text
from web.render import Context, described
from web.routes import PageRouter
from web.security import local_path
from web.visit import UserVisit, Visit

router = PageRouter()


DONE = {"approve": "Allowed.", "deny": "Denied.", "ack": "Done.", "snooze": "Snoozed."}


class GoContext(Context, frozen=True, kw_only=True):
    """The question before the button is pressed."""

    token: str = described("the link's own part of the address")
    found: Pressable = described("the notice, what would be done, and whether it was")
    asked: Any = described("the approval: the question that a yes or no would answer, while it waits for one")
    is_lasting: bool = described("whether what it asks for cannot be undone")
    snoozes: dict[str, str] = described("for how long something can be put off: value, words")


@router.get("/go/{token}")
async def show(visit: UserVisit, token: str) -> Response:
    """Return what the button would do. An old question asks for the password first; to look changes nothing."""
    found = await visit.services.action_links.preview(visit.login, token)
    if found.needs_password and not found.is_used:
        return RedirectResponse(f"/confirm?next=/go/{token}", 303)
    return await _page(visit, token, found)


@router.post("/go/{token}")
async def press(visit: UserVisit, token: str, choice: Text = "10min", at_once: Text = "") -> Response:
    """Do it, once, and go on to what it was about.

    `at_once`: the browser's own button was pressed, and no page of the link is open. Such a press hears whether it is
    done, and how many notifications are left unread.
    """
    if at_once:
        is_done = await visit.services.action_links.press_at_once(visit.login, token)
        return JSONResponse({"done": is_done, "unread": await visit.services.notices.unread(visit.user.id)})
    found = await visit.services.action_links.preview(visit.login, token)
    if found.needs_password and not found.is_used:
        return RedirectResponse(f"/confirm?next=/go/{token}", 303)
    try:
        place = await visit.services.action_links.press(visit.login, token, choice)
    except Conflict as refused:
        found = await visit.services.action_links.preview(visit.login, token)
        return await _page(visit, token, found, refused)
    return visit.redirect(local_path(place), DONE[found.action])


async def _page(visit: Visit, token: str, found: Pressable, refused: Conflict | None = None) -> Response:
    waiting = await visit.services.approvals.pending(visit.user) if found.action in ("approve", "deny") else ()
    asked = next((one for one in waiting if one.id == found.notice.subject_id), None)
    context = GoContext(
        token=token,
        found=found,
        asked=asked,
        is_lasting=asked is not None and visit.services.approvals.weigh(asked).is_lasting,
        snoozes={str(value): words for value, words in SNOOZES.items()},
    )
    return await visit.show("go.html", context, here="/notifications", refused=refused)
