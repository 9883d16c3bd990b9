"""Admin: what waits for somebody's word, what was allowed beyond single calls, and every question that there was.

The buttons of a question stand only where it was put to this admin: nobody allows in another's name.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Query
from fastapi.responses import Response

from cortex.app import Cortex
from cortex.base.user import User
from cortex.services.turns.approval_admin import ApprovalPage, OwnedApproval, OwnedGrant
from cortex.services.turns.approval_weight import Weighed
from web.render import ADMIN, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit

router = PageRouter()
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


class ApprovalsContext(Context, frozen=True, kw_only=True):
    """The requests that wait, those that were answered, and the grants."""

    waiting: Sequence[OwnedApproval] = described("questions that can still be answered, oldest first")
    weights: Mapping[str, Weighed] = described("what each of them weighs, by its id")
    grants: Sequence[OwnedGrant] = described("standing yeses in force, the newest first")
    page: ApprovalPage = described("a page of the history")
    names: Mapping[str, str] = described("of the accounts, by id")
    wanted: Mapping[str, str] = described("the filter as it stands in the address")


@router.get(HREF)
async def show(
    visit: ReauthedAdminVisit, person: Name = "", state: Name = "", tool: Name = "", before: Name = ""
) -> Response:
    """All of it."""
    admin = visit.services.approval_admin
    waiting = await admin.waiting(visit.user)
    context = ApprovalsContext(
        waiting=waiting,
        weights={row.id: admin.weigh(row) for row in waiting},
        grants=await admin.grants(visit.user),
        page=await admin.history(visit.user, before, person=person, state=state, tool=tool.strip()),
        names=await admin.names(visit.user),
        wanted={"person": person, "state": state, "tool": tool},
    )
    return await visit.show("approvals.html", context)


@router.post(HREF + "/grants/{grant_id}/revoke")
async def revoke(visit: ReauthedAdminVisit, grant_id: str) -> Response:
    """Take a standing yes back."""
    await visit.services.approval_admin.revoke(visit.user, grant_id)
    return visit.redirect(HREF, "Revoked. The next call needs approval again.")
