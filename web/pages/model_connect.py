"""Connecting a provider: choose it, paste a key, see its own list of models, tick those to use."""

from collections.abc import Mapping, Sequence

from fastapi.responses import Response

from cortex.base.errors import Conflict, CortexError, ProviderError, UserError
from cortex.ports.model_lists import ListedModel
from cortex.services.models import prices
from cortex.services.models.connecting import Listing, LocalServer
from cortex.services.models.files import Slips
from cortex.services.models.presets import Preset
from web.deps import Text, Texts
from web.render import Context, described, wants_fragment
from web.routes import PageRouter
from web.security import local_path
from web.visit import UserVisit, Visit

router = PageRouter()

REFUSALS = (UserError, ProviderError, Conflict)


class ModelConnectContext(Context, frozen=True, kw_only=True):
    """The form, or the list of the server that answered."""

    presets: Sequence[Preset] = described("providers and servers to connect")
    preset: str = described("the one that is chosen", default="")
    base_url: str = described("the address that was typed", default="")
    ca: str = described("the certificate authority that was typed", default="")
    errors: Mapping[str, str] = described("field -> why it was refused", default_factory=dict)
    listing: Listing | None = described("the server's models", default=None)
    shown: Sequence[ListedModel] = described("those of them on the page", default=())
    matches: int = described("how many hold the words of the filter", default=0)
    ticked: Sequence[str] = described("ids that are chosen", default=())
    q: str = described("the words of the filter", default="")
    is_silent: bool = described("whether the first that is ticked did not answer", default=False)
    here: Sequence[LocalServer] | None = described("what a look on this machine found; None: not asked", default=None)
    back: str = described("the page that a choice leads back to, where that is not the list of models", default="")


@router.get("/models/connect")
async def show(visit: UserVisit, preset: str = "") -> Response:
    """The form."""
    return await _page(visit, preset=preset)


@router.post("/models/connect")
async def connect(
    visit: UserVisit, preset: Text = "", base_url: Text = "", api_key: Text = "", ca: Text = "", back: Text = ""
) -> Response:
    """Ask the server for its models: what it answers, or why it does not, stands on its card."""
    try:
        listing = await visit.services.model_connecting.connect(visit.user, preset, base_url, api_key, ca)
    except REFUSALS as refused:
        known = any(one.id == preset for one in visit.services.models.presets)
        block = "card" if known else "connect"
        return await _page(visit, preset=preset, base_url=base_url, ca=ca, refused=refused, back=back, block=block)
    return await _page(visit, listing=listing, ticked=_first_ticks(listing), back=back)


@router.post("/models/connect/more")
async def more(visit: UserVisit, provider: Text = "", base_url: Text = "") -> Response:
    """The list of a server that is connected already."""
    try:
        listing = await visit.services.model_connecting.more(visit.user, provider, base_url)
    except REFUSALS as refused:
        return await _page(visit, refused=refused)
    return await _page(visit, listing=listing)


@router.post("/models/connect/list")
async def filtered(
    visit: UserVisit, provider: Text = "", base_url: Text = "", q: Text = "", pick: Texts = None
) -> Response:
    """Those of the list that hold the words, and what is ticked."""
    try:
        listing = await visit.services.model_connecting.listing(visit.user, provider, base_url)
    except REFUSALS as refused:
        return await _page(visit, refused=refused)
    return await _page(visit, listing=listing, ticked=pick or (), q=q[:200], block="picks")


@router.post("/models/connect/use")
async def use(
    visit: UserVisit,
    provider: Text = "",
    base_url: Text = "",
    pick: Texts = None,
    api_key: Text = "",
    anyway: Text = "",
) -> Response:
    """Add what is ticked, once the first of it has answered; `anyway`: without asking."""
    connecting, back = visit.services.model_connecting, (await visit.fields()).get("back", "")
    try:
        added = await connecting.use(visit.user, provider, base_url, pick or (), key=api_key, is_checked=not anyway)
    except REFUSALS as refused:
        return await _refused_choice(visit, provider, base_url, pick or (), refused, back)
    names = ", ".join(entry.name for entry in added[:3]) + (f" and {len(added) - 3} more" if len(added) > 3 else "")
    first = (await visit.services.models.registry(visit.user)).default[:1]
    answers = f" {first[0]} answers from now on." if first == (added[0].name,) else ""
    answer = visit.redirect(local_path(back, "/models"), f"Added: {names}.{answers}")
    if wants_fragment(visit.request):  # asked from within the page that it leads back to, which is loaded anew
        answer.headers["HX-Redirect"] = answer.headers["location"]
        answer.status_code = 204
    return answer


@router.post("/models/connect/forget")
async def forget(visit: UserVisit) -> Response:
    """Forget the key of a server of which no model was chosen."""
    await visit.services.model_connecting.forget(visit.user)
    return visit.redirect("/models", "The key is forgotten.")


@router.get("/models/connect/here")
async def look_here(visit: UserVisit, back: str = "") -> Response:
    """Look for servers on this machine; nothing for a member."""
    here = await visit.services.model_connecting.here(visit.user)
    asks = back and not (await visit.services.models.shown(visit.user)).entries
    return await _page(visit, here=here, back=back if asks else "", block="here")


async def _refused_choice(
    visit: Visit, provider: str, base_url: str, ticked: Sequence[str], refused: CortexError, back: str
) -> Response:
    """The list again with what was ticked, or the form where the server gives no list any more."""
    try:
        listing = await visit.services.model_connecting.listing(visit.user, provider, base_url)
    except REFUSALS:
        return await _page(visit, refused=refused)
    is_silent = isinstance(refused, ProviderError)
    return await _page(visit, listing=listing, ticked=ticked, refused=refused, is_silent=is_silent, back=back)


async def _page(
    visit: Visit,
    *,
    preset: str = "",
    base_url: str = "",
    ca: str = "",
    refused: CortexError | None = None,
    listing: Listing | None = None,
    ticked: Sequence[str] = (),
    q: str = "",
    is_silent: bool = False,
    here: Sequence[LocalServer] | None = None,
    back: str = "",
    block: str = "connect",
) -> Response:
    errors = _errors(refused)
    context = ModelConnectContext(
        presets=await prices.offered(visit.services.models.presets),
        preset=preset,
        base_url=base_url,
        ca=ca,
        error=refused.message if refused is not None and not errors else "",
        errors=errors,
        listing=listing,
        shown=listing.shown(q, ticked) if listing else (),
        matches=listing.matches(q) if listing else 0,
        ticked=ticked,
        q=q,
        is_silent=is_silent,
        here=here,
        back=local_path(back, ""),
    )
    status = 200 if refused is None else 409 if isinstance(refused, Conflict) else 422
    return await visit.show("model_connect.html", context, block=block, status=status)


def _errors(refused: CortexError | None) -> Mapping[str, str]:
    """The fields that are to blame, each with a sentence."""
    if isinstance(refused, Slips):
        return dict(refused.fields)
    if isinstance(refused, ProviderError):
        field = {"auth": "api_key", "connection": "base_url", "request": "base_url"}.get(refused.kind, "")
        return {field: refused.message} if field == "api_key" else {}
    field = refused.field if isinstance(refused, UserError) else ""
    return {field: refused.message} if refused is not None and field else {}


def _first_ticks(listing: Listing) -> Sequence[str]:
    """Return what is ticked at the start: the only one there is."""
    return [listing.models[0].id] if len(listing.models) == 1 and not listing.added else ()
