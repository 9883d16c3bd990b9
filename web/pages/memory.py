"""What Cortex remembers of a person: `/memory` with what is new and what is proposed, and one fact's own page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import Conflict, UserError
from cortex.base.fact import FACT_CHARS_MAX
from cortex.services.memory.choices import BUDGET_TOKENS_MAX
from cortex.services.memory.facts import FactRow, FactVersionRow, MemoryView
from web.deps import CurrentUser, FormNumber, Number, Services, Text
from web.frame import frame_of
from web.render import ConfirmContext, Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
HREF = "/memory"
NAV = NavEntry(
    title="Memory",
    href=HREF,
    icon="pin",
    order=22,
    under="/notes",
    about="What Cortex remembers about you.",
)
QUERY_CHARS_MAX = 200
PAGE_ROWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryContext(Context):
    """Everything that is remembered, or what was searched for."""

    view: MemoryView = described("facts kept, new and proposed, with the switches")
    query: str = described("what was searched for, or empty", default="")
    newer: str = described("address of the rows before, or empty", default="")
    older: str = described("address of the rows after, or empty", default="")
    budget: str = described("the token budget as typed or as it is")
    most_tokens: int = described("the largest budget", default=BUDGET_TOKENS_MAX)
    draft: str = described("a fact that was refused", default="")
    error: str = described("why it was refused", default="")
    error_field: str = described("the field the error is about, or empty", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class FactContext(Context):
    """One fact."""

    fact: FactRow = described("the fact as it stands")
    text: str = described("its words as typed or as kept")
    certainty: str = described("how sure it is, as chosen or as kept")
    history: Sequence[FactVersionRow] = described("what it was before, the latest first")
    most_chars: int = described("how long a fact may be", default=FACT_CHARS_MAX)
    is_stale: bool = described("whether it was changed while the person was writing", default=False)
    error: str = described("why saving was refused", default="")
    error_field: str = described("the field the error is about, or empty", default="")


@router.get(HREF)
async def show(request: Request, services: Services, user: CurrentUser, q: str = "", start: Number = 0) -> Response:
    """The facts, or those that have to do with what is searched for."""
    return respond(request, "memory.html", await _context(request, services, user, q, max(0, start)))


@router.post(HREF)
async def add(request: Request, services: Services, user: CurrentUser, text: Text = "") -> Response:
    """Remember what the person writes."""
    try:
        made = await services.memory.add(user, text)
    except UserError as refused:
        context = await _context(request, services, user)
        context = replace(context, draft=text, error=refused.message, error_field=refused.field)
        return respond(request, "memory.html", context, status=422)
    return redirect(request, HREF, f"Remembered: {made.text}", undo_href=f"{_place(made.id)}/forget")


@router.post(HREF + "/choices")
async def choose(
    request: Request, services: Services, user: CurrentUser, recalls: Text = "", learns: Text = "", budget: Text = ""
) -> Response:
    """The switches and the budget."""
    try:
        await services.memory.preferences.change(user.id, recalls=bool(recalls), learns=bool(learns), budget=budget)
    except UserError as refused:
        context = await _context(request, services, user)
        context = replace(context, budget=budget, error=refused.message, error_field=refused.field)
        return respond(request, "memory.html", context, status=422)
    return redirect(request, HREF, "Saved.")


@router.post(HREF + "/seen")
async def see(request: Request, services: Services, user: CurrentUser) -> Response:
    """Return what is new joins the rest."""
    await services.memory.see(user)
    return redirect(request, HREF)


@router.get(HREF + "/forget-all")
async def ask_forget_all(request: Request, services: Services, user: CurrentUser) -> Response:
    """Really?"""
    context = ConfirmContext(
        frame=await frame_of(request, services, user, here=HREF),
        title="Forget everything?",
        text="Deletes all facts and proposals. You can undo this for a day.",
        action=f"{HREF}/forget-all",
        words="Forget everything",
        back=HREF,
    )
    return respond(request, "confirm.html", context)


@router.post(HREF + "/forget-all")
async def forget_all(request: Request, services: Services, user: CurrentUser) -> Response:
    """Forget everything, and offer it back."""
    count = await services.memory.forget_all(user)
    return redirect(request, HREF, f"Forgotten: {count} facts", undo_href=f"{HREF}/restore-all")


@router.post(HREF + "/restore-all")
async def restore_all(request: Request, services: Services, user: CurrentUser) -> Response:
    """Bring back what was forgotten together."""
    return redirect(request, HREF, f"Restored: {await services.memory.restore_all(user)} facts")


@router.get(HREF + "/export.md")
async def export_markdown(services: Services, user: CurrentUser) -> Response:
    """The facts as Markdown."""
    return _file(await services.memory.export_markdown(user), "text/markdown", "memory.md")


@router.get(HREF + "/export.json")
async def export_json(services: Services, user: CurrentUser) -> Response:
    """The facts as JSON."""
    return _file(await services.memory.export_json(user), "application/json", "memory.json")


@router.get(HREF + "/{fact_id}")
async def show_one(request: Request, services: Services, user: CurrentUser, fact_id: str) -> Response:
    """One fact to edit, with what it was before."""
    fact = await services.memory.get(user, fact_id)
    return respond(request, "fact.html", await _fact(request, services, user, fact, fact.text, fact.certainty))


@router.post(HREF + "/{fact_id}")
async def save(
    request: Request,
    services: Services,
    user: CurrentUser,
    fact_id: str,
    version: FormNumber,
    text: Text = "",
    certainty: Text = "",
) -> Response:
    """Save it, unless it was changed in between or says what another one says."""
    try:
        saved = await services.memory.edit(user, fact_id, version, text, certainty)
    except (UserError, Conflict) as refused:
        fact = await services.memory.get(user, fact_id)
        context = replace(
            await _fact(request, services, user, fact, text, certainty),
            is_stale=isinstance(refused, Conflict) and fact.version != version,
            error=refused.message,
            error_field=refused.field if isinstance(refused, UserError) else "",
        )
        return respond(request, "fact.html", context, status=refused.status)
    return redirect(request, HREF, f"Saved: {saved.text}", undo_href=f"{_place(fact_id)}/revert/{version}")


@router.post(HREF + "/{fact_id}/revert/{number}")
async def revert(request: Request, services: Services, user: CurrentUser, fact_id: str, number: Number) -> Response:
    """Bring the words of an earlier version back."""
    return redirect(request, HREF, f"Restored: {(await services.memory.revert(user, fact_id, number)).text}")


@router.post(HREF + "/{fact_id}/accept")
async def accept(request: Request, services: Services, user: CurrentUser, fact_id: str) -> Response:
    """Keep what was proposed."""
    return redirect(request, HREF, f"Remembered: {(await services.memory.accept(user, fact_id)).text}")


@router.post(HREF + "/{fact_id}/forget")
async def forget(request: Request, services: Services, user: CurrentUser, fact_id: str) -> Response:
    """Forget it, or dismiss what was proposed; the next page offers it back."""
    gone = await services.memory.forget(user, fact_id)
    return redirect(request, HREF, f"Forgotten: {gone.text}", undo_href=f"{_place(fact_id)}/restore")


@router.post(HREF + "/{fact_id}/restore")
async def restore(request: Request, services: Services, user: CurrentUser, fact_id: str) -> Response:
    """Bring it back as it was."""
    return redirect(request, HREF, f"Restored: {(await services.memory.restore(user, fact_id)).text}")


async def _context(
    request: Request, services: Services, user: CurrentUser, query: str = "", start: int = 0
) -> MemoryContext:
    asked = " ".join(query.split())[:QUERY_CHARS_MAX]
    view = await services.memory.view(user, asked)

    def address(first: int) -> str:
        chosen = {name: value for name, value in {"q": asked, "start": str(first) if first else ""}.items() if value}
        return HREF + (f"?{urlencode(chosen)}" if chosen else "")

    return MemoryContext(
        frame=await frame_of(request, services, user, here=HREF),
        view=replace(view, kept=view.kept[start : start + PAGE_ROWS]),
        query=asked,
        newer=address(max(0, start - PAGE_ROWS)) if start else "",
        older=address(start + PAGE_ROWS) if start + PAGE_ROWS < len(view.kept) else "",
        budget=str(view.choices.budget_tokens),
    )


async def _fact(
    request: Request, services: Services, user: CurrentUser, fact: FactRow, text: str, certainty: str
) -> FactContext:
    return FactContext(
        frame=await frame_of(request, services, user, here=HREF),
        fact=fact,
        text=text,
        certainty=certainty,
        history=await services.memory.history(user, fact.id),
    )


def _place(fact_id: str) -> str:
    return f"{HREF}/{quote(fact_id, safe='')}"


def _file(body: str, kind: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(body, media_type=f"{kind}; charset=utf-8", headers=headers)
