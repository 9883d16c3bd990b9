"""Admin: what waits for somebody's word, what was allowed beyond single calls, and every question that there was.

The buttons of a question stand only where it was put to this admin: nobody allows in another's name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from cortex.app import Cortex
from cortex.base.user import User
from cortex.services.turns.approval_admin import ApprovalPage, OwnedApproval, OwnedGrant
from web.deps import ReauthedAdmin, Services
from web.frame import frame_of
from web.render import ADMIN, Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
HREF = "/admin/approvals"


async def _state(services: Cortex, user: User) -> str:
    """Return how many wait."""
    count = len(await services.approval_admin.waiting(user))
    return f"{count} waiting" if count else ""


NAV = NavEntry(
    title="Approvals",
    href=HREF,
    icon="shield",
    order=72,
    under=ADMIN,
    about="Calls that wait for approval, and what was allowed before.",
    state=_state,
)

Name = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsContext(Context):
    """What waits, what is granted, what there was."""

    waiting: Sequence[OwnedApproval] = described("questions that can still be answered, oldest first")
    grants: Sequence[OwnedGrant] = described("standing yeses in force, the newest first")
    page: ApprovalPage = described("a page of the history")
    names: Mapping[str, str] = described("of the accounts, by id")
    wanted: Mapping[str, str] = described("the filter as it stands in the address")


@router.get(HREF)
async def show(
    request: Request,
    services: Services,
    user: ReauthedAdmin,
    person: Name = "",
    state: Name = "",
    tool: Name = "",
    before: Name = "",
) -> Response:
    """All of it."""
    admin = services.approval_admin
    context = ApprovalsContext(
        frame=await frame_of(request, services, user, here=HREF),
        waiting=await admin.waiting(user),
        grants=await admin.grants(user),
        page=await admin.history(user, before, person=person, state=state, tool=tool.strip()),
        names=await admin.names(user),
        wanted={"person": person, "state": state, "tool": tool},
    )
    return respond(request, "approvals.html", context)


@router.post(HREF + "/{approval_id}")
async def answer(
    request: Request,
    services: Services,
    user: ReauthedAdmin,
    approval_id: str,
    choice: Annotated[Literal["once", "conversation", "deny"], Form()],
) -> Response:
    """The admin's own word on a question that was put to them."""
    await services.approvals.answer(user, approval_id, choice)
    return redirect(request, HREF, "Denied." if choice == "deny" else "Allowed.")


@router.post(HREF + "/grants/{grant_id}/revoke")
async def revoke(request: Request, services: Services, user: ReauthedAdmin, grant_id: str) -> Response:
    """Take a standing yes back."""
    await services.approval_admin.revoke(user, grant_id)
    return redirect(request, HREF, "Revoked. The next call needs approval again.")
