"""Admin: roles whole. Prompt, models, tools, core, rounds, recipe, budgets; each value says where it comes from."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Form
from fastapi.responses import Response
from pydantic import BaseModel

from cortex.app import Cortex
from cortex.base.errors import Conflict, UserError
from cortex.base.model import OFFLINE
from cortex.base.user import User
from cortex.services.workshop.role_editing import EDITED, CategoryChoice, PricedTools, RoleSheet
from cortex.services.workshop.tool_trials import RECIPE_NAMES
from web.bodies import TEXT_BYTES, takes
from web.deps import Texts
from web.figures import counted
from web.render import ADMIN, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()
HREF = "/admin/roles"


async def _state(services: Cortex, user: User) -> str:
    """Return how many there are."""
    return counted(len(await services.roles.names(user)), "role")


NAV = NavEntry(
    title="Roles",
    href=HREF,
    icon="mask",
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


class RolesContext(Context, frozen=True, kw_only=True):
    """The list of roles."""

    roles: Sequence[RoleSheet] = described("every role with what is in force")
    removed: Sequence[str] = described("roles that were deleted lately and can be brought back")


class RoleEditContext(Context, frozen=True, kw_only=True):
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


@router.get(HREF)
async def show(visit: ReauthedAdminVisit) -> Response:
    """Every role."""
    context = RolesContext(
        roles=await visit.services.role_editing.all(visit.user),
        removed=await visit.services.role_library.removed(visit.user),
    )
    return await visit.show("admin_roles.html", context)


@router.get(HREF + "/{role}")
async def show_one(visit: ReauthedAdminVisit, role: str) -> Response:
    """One role whole."""
    return await _page(visit, role)


@router.post(HREF + "/{role}")
@takes(TEXT_BYTES)
async def save(visit: ReauthedAdminVisit, role: str, typed: Annotated[RoleForm, Form()]) -> Response:
    """Keep what the form says, or take the one value named `default` back."""
    place = f"{HREF}/{role}"
    try:
        if typed.default:
            await visit.services.role_editing.take_back(visit.user, role, typed.default)
            return visit.redirect(place, "Default restored.")
        await visit.services.role_editing.change(
            visit.user, role, {name: getattr(typed, name) for name in EDITED}, typed.models
        )
    except (UserError, Conflict) as refused:
        return await _page(visit, role, typed=typed, refused=refused)
    return visit.redirect(place, f"Saved: {role}. Applies from the next message on.")


@router.post(HREF + "/{role}/tools")
async def save_tools(visit: ReauthedAdminVisit, role: str, tools: Texts = None) -> Response:
    """Let the role have what is ticked, and nothing else."""
    await visit.services.role_editing.set_tools(visit.user, role, tools or ())
    return visit.redirect(f"{HREF}/{role}#tools", f"Saved: the tools of {role}.")


@router.post(HREF + "/{role}/count")
async def count(visit: ReauthedAdminVisit, role: str, tools: Texts = None) -> Response:
    """Return what is ticked, counted; nothing is saved."""
    return await _page(visit, role, ticked=visit.services.role_editing.joined(tools or ()), block="priced")


async def _page(
    visit: Visit,
    name: str,
    *,
    typed: RoleForm | None = None,
    ticked: Sequence[str] | None = None,
    refused: UserError | Conflict | None = None,
    block: str = "content",
) -> Response:
    sheet = await visit.services.role_editing.sheet(visit.user, name)
    registry = await visit.services.models.shown(visit.user)
    own = {field: getattr(typed, field) if typed else value.own for field, value in sheet.values.items()}
    words = sheet.words if ticked is None else ticked
    context = RoleEditContext(
        sheet=sheet,
        own=own,
        names=[("", ""), *((entry.name, entry.name) for entry in registry.entries), (OFFLINE.name, "offline demo")],
        chain=(typed.models if typed else None) or registry.roles.get(name, ()),
        categories=await visit.services.role_editing.choices(),
        ticked=frozenset(words),
        priced=await visit.services.role_editing.priced(words),
    )
    return await visit.show("admin_role.html", context, block=block, refused=refused)
