"""One role as I want it: which models it tries, its tool mode, its rounds; each says where it comes from."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import Conflict, UserError
from cortex.base.model import OFFLINE
from cortex.services.roles.settings import RoleSettings
from web.deps import CurrentUser, Services, Text, Texts
from web.frame import frame_of
from web.render import Context, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
CHAIN_LENGTH = 3
TAKEN_BACK = "Default restored."


@dataclass(frozen=True, slots=True, kw_only=True)
class RolePageContext(Context):
    """The page of a role."""

    role: RoleSettings = described("what is in force, with where it comes from")
    names: Sequence[tuple[str, str]] = described("models to choose from: value, words; the first is none")
    chain: Sequence[str] = described("the models chosen for this role, as typed or as kept; empty for the default")
    mode: str = described("the tool mode as typed or as set in the browser; empty for the default")
    rounds: str = described("the rounds as typed or as set in the browser; empty for the default")
    chain_length: int = described("how many models a chain has on this page", default=CHAIN_LENGTH)
    error: str = described("why saving was refused", default="")
    error_field: str = described("the field the error is about, or empty", default="")


@router.get("/account/roles/{role}")
async def show(request: Request, services: Services, user: CurrentUser, role: str) -> Response:
    """The role as it stands."""
    return await _page(request, services, user, await services.role_defaults.get(user, role))


@router.post("/account/roles/{role}")
async def save(
    request: Request,
    services: Services,
    user: CurrentUser,
    role: str,
    models: Texts = None,
    mode: Text = "",
    max_rounds: Text = "",
    default: Text = "",
) -> Response:
    """Keep all three, or take the one named `default` back."""
    before = await services.role_defaults.get(user, role)
    try:
        if default:
            await services.role_defaults.take_back(user, role, default)
            return redirect(request, f"/account/roles/{role}", TAKEN_BACK)
        await services.role_defaults.change(user, role, models, mode, max_rounds)
    except (UserError, Conflict) as refused:
        typed = (models or (), mode, max_rounds)
        return await _page(request, services, user, before, typed, refused)
    return redirect(request, "/account#roles", f"Saved: {role}")


async def _page(
    request: Request,
    services: Services,
    user: CurrentUser,
    role: RoleSettings,
    typed: tuple[Sequence[str], str, str] | None = None,
    refused: UserError | Conflict | None = None,
) -> Response:
    registry = await services.models.shown(user)
    own = (
        registry.roles.get(role.name, ()),
        role.mode if role.mode_from == "browser" else "",
        str(role.max_rounds) if role.rounds_from == "browser" else "",
    )
    chain, mode, rounds = typed or own
    context = RolePageContext(
        frame=await frame_of(request, services, user, here="/account"),
        role=role,
        names=[("", ""), *((entry.name, entry.name) for entry in registry.entries), (OFFLINE.name, "offline demo")],
        chain=chain,
        mode=mode,
        rounds=rounds,
        error=refused.message if refused else "",
        error_field=refused.field if isinstance(refused, UserError) else "",
    )
    return respond(request, "role.html", context, status=refused.status if refused else 200)
