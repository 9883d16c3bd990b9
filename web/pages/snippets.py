"""Snippets: the list, one to change, and what the composer shows behind a `/`."""

from collections.abc import Sequence
from functools import partial

from fastapi.responses import RedirectResponse, Response
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.content.snippets import NAME_CHARS_MAX, TEXT_CHARS_MAX, SnippetRow
from web.bodies import TEXT_BYTES, takes
from web.chat_view import chat_context
from web.deps import Number, Text
from web.figures import counted
from web.render import MORE, Context, NavEntry, address, described, wants_fragment
from web.routes import PageRouter
from web.stretch import Stretch, cut
from web.visit import UserVisit, Visit

router = PageRouter()
HREF = "/snippets"


async def _state(services: Cortex, user: User) -> str:
    """Return how many there are."""
    count = len(await services.snippets.list(user))
    return counted(count, "snippet") if count else ""


NAV = NavEntry(
    title="Snippets",
    href=HREF,
    icon="pen",
    order=32,
    under=MORE,
    about="Words you write often: type / and a name in a chat.",
    state=_state,
)


class SnippetContext(Context, frozen=True, kw_only=True):
    """A form for a snippet, a new one or one that is to be changed."""

    id: str = described("the snippet's id, empty for a new one", default="")
    name: str = described("its name as typed or as kept", default="")
    text: str = described("its words as typed or as kept", default="")
    is_shared: bool = described("whether everybody here may use it", default=False)
    name_chars: int = described("how long a name may be", default=NAME_CHARS_MAX)
    text_chars: int = described("how long the words may be", default=TEXT_CHARS_MAX)


class SnippetsContext(SnippetContext, frozen=True, kw_only=True):
    """The list, with a form for a new one."""

    snippets: Stretch[SnippetRow] = described("what the person may use, by name")


class FittingContext(Context, frozen=True, kw_only=True):
    """The list over the composer."""

    fitting: Sequence[SnippetRow] = described("what fits what was typed, best first")


@router.get(HREF)
async def show(visit: UserVisit, start: Number = 0) -> Response:
    """Return all that the person may use, and the form for a new one."""
    return await visit.show("snippets.html", SnippetsContext(snippets=await _stretch(visit, start)))


@router.get(HREF + "/fitting")
async def fitting(visit: UserVisit, q: str = "") -> Response:
    """Return what fits what stands behind the `/`, a fragment; a page's visit is led to the list."""
    if not wants_fragment(visit.request):
        return RedirectResponse(HREF, 303)
    found = await visit.services.snippets.fitting(visit.user, q.strip().removeprefix("/")[:NAME_CHARS_MAX])
    return await visit.show("snippets.html", FittingContext(fitting=found), block="fitting")


@router.post(HREF)
@takes(TEXT_BYTES)
async def add(visit: UserVisit, name: Text = "", text: Text = "", shared: Text = "") -> Response:
    """Keep a new one."""
    try:
        named = await visit.services.snippets.add(visit.user, name, text, is_shared=bool(shared))
    except UserError as refused:
        typed = SnippetsContext(snippets=await _stretch(visit), name=name, text=text, is_shared=bool(shared))
        return await visit.show("snippets.html", typed, refused=refused)
    return visit.redirect(HREF, f"Saved. Type /{named} in a chat.")


@router.get(HREF + "/{snippet_id}")
async def edit(visit: UserVisit, snippet_id: str) -> Response:
    """Return one of the person's own in a form."""
    row = await visit.services.snippets.get(visit.user, snippet_id)
    context = SnippetContext(id=row.id, name=row.name, text=row.text, is_shared=row.is_shared)
    return await visit.show("snippet.html", context)


@router.post(HREF + "/{snippet_id}")
@takes(TEXT_BYTES)
async def change(visit: UserVisit, snippet_id: str, name: Text = "", text: Text = "", shared: Text = "") -> Response:
    """Keep it as it was typed."""
    try:
        await visit.services.snippets.change(visit.user, snippet_id, name, text, is_shared=bool(shared))
    except UserError as refused:
        typed = SnippetContext(id=snippet_id, name=name, text=text, is_shared=bool(shared))
        return await visit.show("snippet.html", typed, refused=refused)
    return visit.redirect(HREF, "Saved.")


@router.post(HREF + "/{snippet_id}/use")
async def use(visit: UserVisit, snippet_id: str) -> Response:
    """Show a new chat with its words in the box, for whoever has no script. Nothing is sent."""
    # a form, not a link: words that stand in the box count as the person's own once they are sent
    row = await visit.services.snippets.usable(visit.user, snippet_id)
    context = await chat_context(visit, None)
    return await visit.show("chat.html", replace(context, draft=row.text), block="body")


@router.post(HREF + "/{snippet_id}/delete")
async def delete(visit: UserVisit, snippet_id: str) -> Response:
    """Delete it, and offer to take that back."""
    row = await visit.services.snippets.delete(visit.user, snippet_id)
    return visit.redirect(HREF, f"/{row.name} deleted.", undo_href=f"{HREF}/{row.id}/restore")


@router.post(HREF + "/{snippet_id}/restore")
async def restore(visit: UserVisit, snippet_id: str) -> Response:
    """Take a deletion back."""
    await visit.services.snippets.restore(visit.user, snippet_id)
    return visit.redirect(HREF, "Restored.")


async def _stretch(visit: Visit, start: int = 0) -> Stretch[SnippetRow]:
    return cut(await visit.services.snippets.list(visit.user), start, partial(address, HREF))
