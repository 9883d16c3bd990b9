"""The emergency stop, behind the button in every page's head: one's own work; for an admin also everybody's.

Stopping asks for nothing more than the login. What holds for others is lifted with a password given of late.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.services.turns.stop_all import HaltView
from web.deps import CurrentUser, ReauthedAdmin, Services, Text, reauthed_admin
from web.frame import frame_of
from web.render import Context, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)

HERE = "/stop-all"
MINE, EVERYBODY = "mine", "everybody"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAllContext(Context):
    """The question, and what is stopped already."""

    halts: Sequence[HaltView] = described("the stops in force: for an admin all, else those that this person meets")
    is_mine_stopped: bool = described("whether this person's own work is stopped")
    is_everybody_stopped: bool = described("whether everybody's work is stopped")
    is_outward_off: bool = described("whether the tools that reach outside are switched off")


@router.get(HERE)
async def show(request: Request, services: Services, user: CurrentUser) -> Response:
    """Stop everything?"""
    stops = services.stop_all
    halts = await (stops.all(user) if user.is_admin else stops.shown(user))
    scopes = {halt.scope for halt in halts}
    context = StopAllContext(
        frame=await frame_of(request, services, user, here=HERE),
        halts=halts,
        is_mine_stopped=user.id in scopes,
        is_everybody_stopped=EVERYBODY in scopes,
        is_outward_off=any(halt.is_outward for halt in halts),
    )
    return respond(request, "stop_all.html", context)


@router.post(HERE)
async def stop(request: Request, services: Services, user: CurrentUser, whom: Text = MINE) -> Response:
    """Stop it now: `mine`, `everybody`, or the id of an account."""
    if whom == EVERYBODY:
        await services.stop_all.stop(user, None)
        return redirect(request, HERE, "Everything is stopped for everybody.")
    person = user if whom == MINE else await services.accounts.user(whom)
    await services.stop_all.stop(user, person)
    return redirect(request, HERE, f"Everything is stopped for {'you' if person.id == user.id else person.name}.")


@router.post(HERE + "/outward")
async def switch_outward_off(request: Request, services: Services, user: ReauthedAdmin) -> Response:
    """Leave nobody a tool that reaches outside."""
    await services.stop_all.switch_outward_off(user)
    return redirect(request, HERE, "Tools that reach outside are switched off.")


@router.post(HERE + "/release")
async def release(request: Request, services: Services, user: CurrentUser, scope: Text = "") -> Response:
    """Lift it."""
    if scope != user.id:
        await reauthed_admin(request)
    await services.stop_all.release(user, scope)
    return redirect(request, HERE, "Resumed. Waiting work starts.")
