"""Admin: roles whole. Prompt, models, tools, core, rounds, recipe, budgets; each value says where it comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response
from pydantic import BaseModel

from cortex.app import Cortex
from cortex.base.errors import Conflict, UserError
from cortex.base.model import OFFLINE
from cortex.base.user import User
from cortex.services.workshop.role_editing import EDITED, CategoryChoice, PricedTools, RoleSheet
from cortex.services.workshop.tool_trials import RECIPE_NAMES
from web.bodies import TEXT_BYTES, takes
from web.deps import ReauthedAdmin, Services, Texts
from web.figures import counted
from web.frame import frame_of
from web.render import ADMIN, Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
HREF = "/admin/roles"


async def _state(services: Cortex, user: User) -> str:
    """Return how many there are."""
    return counted(len(await services.roles.names(user)), "role")


NAV = NavEntry(
    title="Roles",
    href=HREF,
    icon="gear",
    order=70,
    under=ADMIN,
    about="Prompts, tools, models and limits of each role.",
    state=_state,
)
CHAIN_LENGTH = 3
RECIPES = tuple((name, name) for name in RECIPE_NAMES)


class RoleForm(BaseModel):
    """The form as a browser sends it; empty = the default. The service checks it."""

    prompt: str = ""
    mode: str = ""
    recipe: str = ""
    core: str = ""
    max_rounds: str = ""
    tool_budget_tokens: str = ""
    budget_tokens: str = ""
    budget_usd: str = ""
    models: list[str] | None = None
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolesContext(Context):
    """The list of roles."""

    roles: Sequence[RoleSheet] = described("every role with what is in force")
    removed: Sequence[str] = described("roles that were deleted lately and can be brought back")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleEditContext(Context):
    """One role to edit."""

    sheet: RoleSheet = described("what is in force, with where it comes from")
    own: Mapping[str, str] = described("field -> as typed, or as set in the browser; empty for the default")
    names: Sequence[tuple[str, str]] = described("models to choose from: value, words; the first is none")
    chain: Sequence[str] = described("the models chosen for this role, as typed or as kept")
    chain_length: int = described("how many models a chain has on this page", default=CHAIN_LENGTH)
    recipes: Sequence[tuple[str, str]] = described("the recipes there are", default=RECIPES)
    categories: Sequence[CategoryChoice] = described("the checklist: every category with its tools")
    ticked: frozenset[str] = described("categories and tools that are ticked")
    priced: PricedTools = described("what the ticked ones amount to")
    error: str = described("why saving was refused", default="")
    error_field: str = described("the field it is about", default="")


@router.get(HREF)
async def show(request: Request, services: Services, user: ReauthedAdmin) -> Response:
    """Every role."""
    context = RolesContext(
        frame=await frame_of(request, services, user, here=HREF),
        roles=await services.role_editing.all(user),
        removed=await services.role_library.removed(user),
    )
    return respond(request, "admin_roles.html", context)


@router.get(HREF + "/{role}")
async def show_one(request: Request, services: Services, user: ReauthedAdmin, role: str) -> Response:
    """One role whole."""
    return await _page(request, services, user, role)


@router.post(HREF + "/{role}")
@takes(TEXT_BYTES)
async def save(
    request: Request,
    services: Services,
    user: ReauthedAdmin,
    role: str,
    typed: Annotated[RoleForm, Form()],
) -> Response:
    """Keep what the form says, or take the one value named `default` back."""
    place = f"{HREF}/{role}"
    try:
        if typed.default:
            await services.role_editing.take_back(user, role, typed.default)
            return redirect(request, place, "Default restored.")
        await services.role_editing.change(user, role, {name: getattr(typed, name) for name in EDITED}, typed.models)
    except (UserError, Conflict) as refused:
        return await _page(request, services, user, role, typed=typed, refused=refused)
    return redirect(request, place, f"Saved: {role}. Applies from the next message on.")


@router.post(HREF + "/{role}/tools")
async def save_tools(
    request: Request, services: Services, user: ReauthedAdmin, role: str, tools: Texts = None
) -> Response:
    """Let the role have what is ticked, and nothing else."""
    await services.role_editing.set_tools(user, role, tools or ())
    return redirect(request, f"{HREF}/{role}#tools", f"Saved: the tools of {role}.")


@router.post(HREF + "/{role}/count")
async def count(request: Request, services: Services, user: ReauthedAdmin, role: str, tools: Texts = None) -> Response:
    """Return what is ticked, counted; nothing is saved."""
    return await _page(request, services, user, role, ticked=services.role_editing.joined(tools or ()), block="priced")


async def _page(
    request: Request,
    services: Services,
    user: ReauthedAdmin,
    name: str,
    *,
    typed: RoleForm | None = None,
    ticked: Sequence[str] | None = None,
    refused: UserError | Conflict | None = None,
    block: str = "content",
) -> Response:
    sheet = await services.role_editing.sheet(user, name)
    registry = await services.models.shown(user)
    own = {field: getattr(typed, field) if typed else value.own for field, value in sheet.values.items()}
    words = sheet.words if ticked is None else ticked
    context = RoleEditContext(
        frame=await frame_of(request, services, user, here=HREF),
        sheet=sheet,
        own=own,
        names=[("", ""), *((entry.name, entry.name) for entry in registry.entries), (OFFLINE.name, "offline demo")],
        chain=(typed.models if typed else None) or registry.roles.get(name, ()),
        categories=await services.role_editing.choices(),
        ticked=frozenset(words),
        priced=await services.role_editing.priced(words),
        error=refused.message if refused else "",
        error_field=refused.field if isinstance(refused, UserError) else "",
    )
    return respond(request, "admin_role.html", context, block=block, status=refused.status if refused else 200)
