"""One role as I want it: which models it tries, its tool mode, its rounds; each says where it comes from."""

from collections.abc import Sequence

from fastapi.responses import Response

from cortex.base.errors import Conflict, UserError
from cortex.base.model import OFFLINE
from cortex.services.roles.settings import RoleSettings
from web.deps import Text, Texts
from web.render import Context, described
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()
CHAIN_LENGTH = 3
TAKEN_BACK = "Default restored."


class RolePageContext(Context, frozen=True, kw_only=True):
    """The page of a role."""

    role: RoleSettings = described("what is in force, with where it comes from")
    names: Sequence[tuple[str, str]] = described("models to choose from: value, words; the first is none")
    chain: Sequence[str] = described("the models chosen for this role, as typed or as kept; empty for the default")
    mode: str = described("the tool mode as typed or as set in the browser; empty for the default")
    rounds: str = described("the rounds as typed or as set in the browser; empty for the default")
    chain_length: int = described("how many models a chain has on this page", default=CHAIN_LENGTH)


@router.get("/account/roles/{role}")
async def show(visit: UserVisit, role: str) -> Response:
    """The role as it stands."""
    return await _page(visit, await visit.services.role_defaults.get(visit.user, role))


@router.post("/account/roles/{role}")
async def save(
    visit: UserVisit, role: str, models: Texts = None, mode: Text = "", max_rounds: Text = "", default: Text = ""
) -> Response:
    """Keep all three, or take the one named `default` back."""
    before = await visit.services.role_defaults.get(visit.user, role)
    try:
        if default:
            await visit.services.role_defaults.take_back(visit.user, role, default)
            return visit.redirect(f"/account/roles/{role}", TAKEN_BACK)
        await visit.services.role_defaults.change(visit.user, role, models, mode, max_rounds)
    except (UserError, Conflict) as refused:
        typed = (models or (), mode, max_rounds)
        return await _page(visit, before, typed, refused)
    return visit.redirect("/account/roles", f"Saved: {role}")


async def _page(
    visit: Visit,
    role: RoleSettings,
    typed: tuple[Sequence[str], str, str] | None = None,
    refused: UserError | Conflict | None = None,
) -> Response:
    registry = await visit.services.models.shown(visit.user)
    own = (
        registry.roles.get(role.name, ()),
        role.mode if role.mode_from == "browser" else "",
        str(role.max_rounds) if role.rounds_from == "browser" else "",
    )
    chain, mode, rounds = typed or own
    context = RolePageContext(
        role=role,
        names=[("", ""), *((entry.name, entry.name) for entry in registry.entries), (OFFLINE.name, "offline demo")],
        chain=chain,
        mode=mode,
        rounds=rounds,
    )
    return await visit.show("role.html", context, refused=refused)
