"""What Cortex remembers of a person: `/memory` with what is new and what is proposed, and one fact's own page."""

from collections.abc import Sequence
from urllib.parse import quote

from fastapi.responses import Response
from msgspec.structs import replace

from cortex.base.errors import Conflict, UserError
from cortex.base.fact import FACT_CHARS_MAX
from cortex.services.memory.facts import FactRow, FactVersionRow, FactView, MemoryView
from cortex.services.memory.recall import BUDGET_TOKENS_MAX
from web.deps import FormNumber, Number, Text
from web.render import Context, NavEntry, address, described, download
from web.routes import PageRouter
from web.stretch import Stretch, cut
from web.visit import UserVisit, Visit

router = PageRouter()
HREF = "/memory"
NAV = NavEntry(
    title="Memory",
    href=HREF,
    icon="mark",
    order=22,
    under="/notes",
    about="What Cortex remembers about you.",
)
QUERY_CHARS_MAX = 200
FACT_ROWS = 100
JSON = "application/json; charset=utf-8"


class MemoryContext(Context, frozen=True, kw_only=True):
    """Everything that is remembered, or what was searched for."""

    view: MemoryView = described("facts kept, new and proposed, with the switches")
    query: str = described("what was searched for, or empty", default="")
    kept: Stretch[FactView] = described("facts, this page's")
    fresh: Stretch[FactView] = described("new ones, this page's")
    proposed: Stretch[FactView] = described("proposed ones, this page's")
    budget: str = described("the token budget as typed or as it is")
    most_tokens: int = described("the largest budget", default=BUDGET_TOKENS_MAX)
    draft: str = described("a fact that was refused", default="")


class FactContext(Context, frozen=True, kw_only=True):
    """One fact."""

    fact: FactRow = described("the fact as it stands")
    text: str = described("its words as typed or as kept")
    certainty: str = described("how sure it is, as chosen or as kept")
    history: Sequence[FactVersionRow] = described("what it was before, the latest first")
    most_chars: int = described("how long a fact may be", default=FACT_CHARS_MAX)
    is_stale: bool = described("whether it was changed while the person was writing", default=False)


@router.get(HREF)
async def show(visit: UserVisit, q: str = "", start: Number = 0, fresh: Number = 0, proposed: Number = 0) -> Response:
    """The facts, or those that have to do with what is searched for."""
    return await visit.show("memory.html", await _context(visit, q, start=start, fresh=fresh, proposed=proposed))


@router.post(HREF)
async def add(visit: UserVisit, text: Text = "") -> Response:
    """Remember what the person writes."""
    try:
        made = await visit.services.memory.add(visit.user, text)
    except UserError as refused:
        context = await _context(visit)
        context = replace(context, draft=text)
        return await visit.show("memory.html", context, refused=refused)
    return visit.redirect(HREF, f"Remembered: {made.text}", undo_href=f"{_place(made.id)}/forget")


@router.post(HREF + "/choices")
async def choose(visit: UserVisit, recalls: Text = "", learns: Text = "", budget: Text = "") -> Response:
    """The switches and the budget."""
    try:
        await visit.services.memory.preferences.change(
            visit.user.id, recalls=bool(recalls), learns=bool(learns), budget=budget
        )
    except UserError as refused:
        context = await _context(visit)
        context = replace(context, budget=budget)
        return await visit.show("memory.html", context, refused=refused)
    return visit.redirect(HREF, "Saved.")


@router.post(HREF + "/seen")
async def see(visit: UserVisit) -> Response:
    """Return what is new joins the rest."""
    await visit.services.memory.see(visit.user)
    return visit.redirect(HREF)


@router.get(HREF + "/forget-all")
async def ask_forget_all(visit: UserVisit) -> Response:
    """Really?"""
    return await visit.ask(
        title="Forget everything?",
        text="Deletes all facts and proposals. You can undo this for a day.",
        words="Forget everything",
        back=HREF,
    )


@router.post(HREF + "/forget-all")
async def forget_all(visit: UserVisit) -> Response:
    """Forget everything, and offer it back."""
    count = await visit.services.memory.forget_all(visit.user)
    return visit.redirect(HREF, f"Forgotten: {count} facts", undo_href=f"{HREF}/restore-all")


@router.post(HREF + "/restore-all")
async def restore_all(visit: UserVisit) -> Response:
    """Bring back what was forgotten together."""
    return visit.redirect(HREF, f"Restored: {await visit.services.memory.restore_all(visit.user)} facts")


@router.get(HREF + "/export.md")
async def export_markdown(visit: UserVisit) -> Response:
    """The facts as Markdown."""
    return download(await visit.services.memory.export_markdown(visit.user), "memory.md", "text/markdown")


@router.get(HREF + "/export.json")
async def export_json(visit: UserVisit) -> Response:
    """The facts as JSON."""
    return download(await visit.services.memory.export_json(visit.user), "memory.json", JSON)


@router.get(HREF + "/{fact_id}")
async def show_one(visit: UserVisit, fact_id: str) -> Response:
    """One fact to edit, with what it was before."""
    fact = await visit.services.memory.get(visit.user, fact_id)
    return await visit.show("fact.html", await _fact(visit, fact, fact.text, fact.certainty))


@router.post(HREF + "/{fact_id}")
async def save(visit: UserVisit, fact_id: str, version: FormNumber, text: Text = "", certainty: Text = "") -> Response:
    """Save it, unless it was changed in between or says what another one says."""
    try:
        saved = await visit.services.memory.edit(visit.user, fact_id, version, text, certainty)
    except (UserError, Conflict) as refused:
        fact = await visit.services.memory.get(visit.user, fact_id)
        context = replace(
            await _fact(visit, fact, text, certainty),
            is_stale=isinstance(refused, Conflict) and fact.version != version,
        )
        return await visit.show("fact.html", context, refused=refused)
    return visit.redirect(HREF, f"Saved: {saved.text}", undo_href=f"{_place(fact_id)}/revert/{version}")


@router.post(HREF + "/{fact_id}/revert/{number}")
async def revert(visit: UserVisit, fact_id: str, number: Number) -> Response:
    """Bring the words of an earlier version back."""
    return visit.redirect(HREF, f"Restored: {(await visit.services.memory.revert(visit.user, fact_id, number)).text}")


@router.post(HREF + "/{fact_id}/accept")
async def accept(visit: UserVisit, fact_id: str) -> Response:
    """Keep what was proposed."""
    return visit.redirect(HREF, f"Remembered: {(await visit.services.memory.accept(visit.user, fact_id)).text}")


@router.post(HREF + "/{fact_id}/forget")
async def forget(visit: UserVisit, fact_id: str) -> Response:
    """Forget it, or dismiss what was proposed; the next page offers it back."""
    gone = await visit.services.memory.forget(visit.user, fact_id)
    return visit.redirect(HREF, f"Forgotten: {gone.text}", undo_href=f"{_place(fact_id)}/restore")


@router.post(HREF + "/{fact_id}/restore")
async def restore(visit: UserVisit, fact_id: str) -> Response:
    """Bring it back as it was."""
    return visit.redirect(HREF, f"Restored: {(await visit.services.memory.restore(visit.user, fact_id)).text}")


async def _context(visit: Visit, query: str = "", **starts: int) -> MemoryContext:
    asked = " ".join(query.split())[:QUERY_CHARS_MAX]
    view = await visit.services.memory.view(visit.user, asked)

    def place(**other: int) -> str:
        return address(HREF, **{"q": asked, **starts, **other})

    return MemoryContext(
        view=view,
        kept=cut(view.kept, starts.get("start", 0), place, most=FACT_ROWS, at="kept-h"),
        fresh=cut(view.fresh, starts.get("fresh", 0), place, by="fresh", at="fresh-h"),
        proposed=cut(view.proposed, starts.get("proposed", 0), place, by="proposed", at="proposed-h"),
        query=asked,
        budget=str(view.choices.budget_tokens),
    )


async def _fact(visit: Visit, fact: FactRow, text: str, certainty: str) -> FactContext:
    return FactContext(
        fact=fact,
        text=text,
        certainty=certainty,
        history=await visit.services.memory.history(visit.user, fact.id),
    )


def _place(fact_id: str) -> str:
    return f"{HREF}/{quote(fact_id, safe='')}"
