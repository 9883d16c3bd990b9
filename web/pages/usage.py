"""What it cost: the month's money first; then tokens by day, model, role, tool, job or person; each table as CSV."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query
from fastapi.responses import Response

from cortex.base.user import User
from cortex.services.models.profiles import Backend
from cortex.services.models.sharing import BorrowedModel
from cortex.services.usage.budget_admin import BudgetStanding
from cortex.services.usage.usage import ALL, By, View
from web import usage_tables
from web.deps import Number
from web.errors import not_found
from web.plots import Plot
from web.render import MORE, Context, NavEntry, address, described
from web.routes import PageRouter
from web.stretch import Stretch, cut
from web.usage_money import Money, money
from web.usage_tables import UsageTable
from web.visit import UserVisit, Visit, of_reauthed_admin

router = PageRouter()
NAV = NavEntry(
    title="Usage",
    href="/usage",
    icon="chart",
    order=36,
    under=MORE,
    about="What it cost, a day and by model, and what the engine sent.",
)
RANGES = ((7, "Week"), (0, "Month"), (90, "90 days"))
BYS: tuple[By, ...] = ("model", "role", "tool", "job", "token", "person")

Days = Annotated[int, Query(ge=0, le=90)]  # 0: from the first of this month


class UsageContext(Context, frozen=True, kw_only=True):
    """The page."""

    view: View = described("the numbers")
    tables: Mapping[str, UsageTable] = described("the same as tables, by name")
    plots: Mapping[str, Plot] = described("what can be drawn of them, by name")
    money: Money = described("what the page opens with")
    days: int = described("how many days are shown, 0: this month's")
    ranges: Sequence[tuple[int, str]] = described("the times to choose from: days, words", default=RANGES)
    bys: Sequence[By] = described("what it can be broken down by")
    person: str = described("whose: empty for the reader, all, or an account's id", default="")
    query: str = described("the address of this view, for links and files")
    backends: Sequence[Backend] = described("what is known of the caches of the reader's models", default=())
    standings: Stretch[BudgetStanding] = described("the budgets that hold, and how far they are used today")
    budgets: int = described("how many of them there are")
    borrowed: Sequence[BorrowedModel] = described("what others took of the reader's models", default=())


@router.get("/usage")
async def show(visit: UserVisit, p: Days = 0, by: By = "model", person: str = "", budgets: Number = 0) -> Response:
    """The numbers of these days. Anybody else's are an admin's, with the password given lately."""
    view = await _view(visit, p, by, person)
    roles = None if visit.user.is_admin else await visit.services.roles.names(visit.user)
    standings = await visit.services.budget_admin.standings(await _people(visit, person), roles)
    place = partial(address, "/usage", p=p, by=by, person=person)
    context = UsageContext(
        view=view,
        money=money(view, standings, is_month=not p),
        tables=usage_tables.tables(view, is_admin=visit.user.is_admin),
        plots=usage_tables.plots(view),
        days=p,
        bys=[one for one in BYS if one != "person" or visit.user.is_admin],
        person=person,
        query=urlencode({"p": p, "by": by, "person": person}),
        backends=await visit.services.profiles.all(visit.user) if person in ("", visit.user.id) else (),
        borrowed=await visit.services.model_sharing.borrowed(visit.user, len(view.days))
        if visit.user.is_admin and person in ("", visit.user.id)
        else (),
        standings=cut(standings, budgets, place, by="budgets", at="budgets"),
        budgets=len(standings),
    )
    return await visit.show("usage.html", context)


@router.get("/usage.csv")
async def download(visit: UserVisit, table: str, p: Days = 0, by: By = "model", person: str = "") -> Response:
    """One table of the page as a file."""
    view = await _view(visit, p, by, person)
    found = usage_tables.tables(view, is_admin=visit.user.is_admin).get(table)
    if found is None:
        raise not_found()
    name = f"cortex-{found.name}-{len(view.days)}-days.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(usage_tables.as_csv(found), media_type="text/csv; charset=utf-8", headers=headers)


async def _view(visit: Visit, days: int, by: By, person: str) -> View:
    if visit.user.is_admin and person not in ("", visit.user.id):
        await of_reauthed_admin(visit.request)
    return await visit.services.usage.view(visit.user, days=days, by=by, person=person)


async def _people(visit: Visit, person: str) -> Sequence[User]:
    """Those whose budgets are shown, the reader first."""
    if person in ("", visit.user.id):
        return (visit.user,)
    return [one for one in await visit.services.accounts.users() if person == ALL or one.id == person]
