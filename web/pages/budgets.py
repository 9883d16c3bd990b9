"""Admin: what a person, a role, a job or the whole server may take in a day, and what happens then."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response
from pydantic import BaseModel

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.usage.budget_admin import BudgetStanding
from web.deps import ReauthedAdmin, Services
from web.frame import frame_of
from web.render import ADMIN, ConfirmContext, Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
HREF = "/admin/budgets"


async def _state(services: Cortex, user: User) -> str:
    """Return how many there are."""
    count = len(await services.budget_admin.list())
    return f"{count} set" if count else "No limits"


NAV = NavEntry(
    title="Budgets",
    href=HREF,
    icon="chart",
    order=74,
    under=ADMIN,
    about="Limits on tokens and costs for people, roles and jobs.",
    state=_state,
)


class BudgetForm(BaseModel):
    """The form as a browser sends it; the service checks it."""

    kind: str = "user"
    subject: str = ""
    limit_tokens: str = ""
    limit_usd: str = ""
    at_limit: str = "stop"
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetsContext(Context):
    """Every budget, and the form that sets one."""

    standings: Sequence[BudgetStanding] = described("each budget with everybody's day under it")
    names: Sequence[str] = described("people, roles and jobs to choose from")
    models: Sequence[str] = described("the reader's models, as suggestions")
    typed: BudgetForm = described("the form's fields")
    error: str = described("why it was refused", default="")
    error_field: str = described("the field the error is about, or empty", default="")


@router.get(HREF)
async def show(request: Request, services: Services, user: ReauthedAdmin) -> Response:
    """Return what is set."""
    return await _page(request, services, user, BudgetForm())


@router.post(HREF)
async def put(
    request: Request, services: Services, user: ReauthedAdmin, typed: Annotated[BudgetForm, Form()]
) -> Response:
    """Set a budget; one that this person, role or job has already is changed."""
    try:
        await services.budget_admin.put(user, typed.model_dump())
    except UserError as refused:
        return await _page(request, services, user, typed, refused)
    return redirect(request, HREF, "Saved. Applies from the next model call on.")


@router.get(HREF + "/{budget_id}/remove")
async def ask_remove(request: Request, services: Services, user: ReauthedAdmin, budget_id: str) -> Response:
    """Really?"""
    await services.budget_admin.get(budget_id)
    context = ConfirmContext(
        frame=await frame_of(request, services, user, here=HREF),
        title="Remove this budget?",
        text="It stops applying at the next model call. Past usage is kept.",
        action=f"{HREF}/{budget_id}/remove",
        words="Remove",
        back=HREF,
    )
    return respond(request, "confirm.html", context)


@router.post(HREF + "/{budget_id}/remove")
async def remove(request: Request, services: Services, user: ReauthedAdmin, budget_id: str) -> Response:
    """Take it away."""
    await services.budget_admin.remove(user, budget_id)
    return redirect(request, HREF, "Budget removed.")


async def _page(
    request: Request, services: Services, user: ReauthedAdmin, typed: BudgetForm, refused: UserError | None = None
) -> Response:
    people = await services.accounts.users()
    context = BudgetsContext(
        frame=await frame_of(request, services, user, here=HREF),
        standings=await services.budget_admin.standings(people),
        names=[
            *(one.name for one in people),
            *await services.roles.names(user),
            *await services.budget_admin.jobs(),
        ],
        models=[*(entry.name for entry in (await services.models.shown(user)).entries), "offline"],
        typed=typed,
        error=refused.message if refused else "",
        error_field=refused.field if refused else "",
    )
    return respond(request, "budgets.html", context, status=refused.status if refused else 200)
