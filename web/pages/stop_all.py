"""The emergency stop, behind the button in every page's head: one's own work; for an admin also everybody's.

Stopping asks for nothing more than the login. What holds for others is lifted with a password given of late.
"""

from collections.abc import Sequence

from fastapi.responses import Response

from cortex.services.turns.stop_all import HaltView
from web.deps import Text
from web.render import Context, described
from web.routes import PageRouter
from web.security import local_path
from web.visit import ReauthedAdminVisit, UserVisit, of_reauthed_admin

router = PageRouter()

HERE = "/stop-all"
MINE, EVERYBODY = "mine", "everybody"


class StopAllContext(Context, frozen=True, kw_only=True):
    """The question, and what is stopped already."""

    halts: Sequence[HaltView] = described("the stops in force: for an admin all, else those that this person meets")
    is_mine_stopped: bool = described("whether this person's own work is stopped")
    is_everybody_stopped: bool = described("whether everybody's work is stopped")
    is_outward_off: bool = described("whether the tools that reach outside are switched off")


@router.get(HERE)
async def show(visit: UserVisit) -> Response:
    """Stop everything?"""
    stops = visit.services.stop_all
    halts = await (stops.all(visit.user) if visit.user.is_admin else stops.shown(visit.user))
    scopes = {halt.scope for halt in halts}
    context = StopAllContext(
        halts=halts,
        is_mine_stopped=visit.user.id in scopes,
        is_everybody_stopped=EVERYBODY in scopes,
        is_outward_off=any(halt.is_outward for halt in halts),
    )
    return await visit.show("stop_all.html", context)


@router.post(HERE)
async def stop(visit: UserVisit, whom: Text = MINE) -> Response:
    """Stop it now: `mine`, `everybody`, or the id of an account."""
    if whom == EVERYBODY:
        await visit.services.stop_all.stop(visit.user, None)
        return visit.redirect(HERE, "Everything is stopped for everybody.")
    person = visit.user if whom == MINE else await visit.services.accounts.user(whom)
    await visit.services.stop_all.stop(visit.user, person)
    return visit.redirect(HERE, f"Everything is stopped for {'you' if person.id == visit.user.id else person.name}.")


@router.post(HERE + "/outward")
async def switch_outward_off(visit: ReauthedAdminVisit) -> Response:
    """Leave nobody a tool that reaches outside."""
    await visit.services.stop_all.switch_outward_off(visit.user)
    return visit.redirect(HERE, "Tools that reach outside are switched off.")


@router.post(HERE + "/release")
async def release(visit: UserVisit, scope: Text = "", back: Text = HERE) -> Response:
    """Lift it, and go back to where that was pressed."""
    if scope != visit.user.id:
        await of_reauthed_admin(visit.request)
    await visit.services.stop_all.release(visit.user, scope)
    return visit.redirect(local_path(back, HERE), "Resumed. Waiting work starts.")
