"""Admin: what a person, a role, a job or the whole server may take in a day, and what happens then."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from fastapi import Form
from fastapi.responses import Response
from pydantic import BaseModel

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.usage.budget_admin import BudgetStanding
from web.deps import Number
from web.render import ADMIN, Context, NavEntry, address, described
from web.routes import PageRouter
from web.stretch import Stretch, cut
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()
HREF = "/admin/budgets"


async def _state(services: Cortex, user: User) -> str:
    """Return how many there are."""
    count = len(await services.budget_admin.list())
    return f"{count} set" if count else "No limits"


NAV = NavEntry(
    title="Budgets",
    href=HREF,
    icon="coin",
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


class BudgetsContext(Context, frozen=True, kw_only=True):
    """Every budget, and the form that sets one."""

    standings: Stretch[BudgetStanding] = described("each budget with everybody's day under it")
    names: Sequence[str] = described("people, roles and jobs to choose from")
    models: Sequence[str] = described("the reader's models, as suggestions")
    typed: BudgetForm = described("the form's fields")


@router.get(HREF)
async def show(visit: ReauthedAdminVisit, start: Number = 0) -> Response:
    """Return what is set."""
    return await _page(visit, BudgetForm(), start=start)


@router.post(HREF)
async def put(visit: ReauthedAdminVisit, typed: Annotated[BudgetForm, Form()]) -> Response:
    """Set a budget; one that this person, role or job has already is changed."""
    try:
        await visit.services.budget_admin.put(visit.user, typed.model_dump())
    except UserError as refused:
        return await _page(visit, typed, refused)
    return visit.redirect(HREF, "Saved. Applies from the next model call on.")


@router.get(HREF + "/{budget_id}/remove")
async def ask_remove(visit: ReauthedAdminVisit, budget_id: str) -> Response:
    """Really?"""
    await visit.services.budget_admin.get(budget_id)
    return await visit.ask(
        title="Remove this budget?",
        text="It stops applying at the next model call. Past usage is kept.",
        words="Remove",
        back=HREF,
    )


@router.post(HREF + "/{budget_id}/remove")
async def remove(visit: ReauthedAdminVisit, budget_id: str) -> Response:
    """Take it away."""
    await visit.services.budget_admin.remove(visit.user, budget_id)
    return visit.redirect(HREF, "Budget removed.")


async def _page(visit: Visit, typed: BudgetForm, refused: UserError | None = None, *, start: int = 0) -> Response:
    people = await visit.services.accounts.users()
    context = BudgetsContext(
        standings=cut(await visit.services.budget_admin.standings(people), start, partial(address, HREF)),
        names=[
            *(one.name for one in people),
            *await visit.services.roles.names(visit.user),
            *await visit.services.budget_admin.jobs(),
        ],
        models=[*(entry.name for entry in (await visit.services.models.shown(visit.user)).entries), "offline"],
        typed=typed,
    )
    return await visit.show("budgets.html", context, refused=refused)
