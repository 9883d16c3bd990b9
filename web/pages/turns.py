"""One turn: edit and resend, try again, continue, branch, why its tools, and the questions and offers of its cards."""

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Annotated, Any, Literal

from fastapi import Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, Field

from cortex.base.errors import NotFound, UserError
from cortex.base.role import ToolMode
from cortex.services.chat.transcript_views import TurnView, turn_of
from cortex.services.turns.planning import DraftSettings
from web.bodies import TEXT_BYTES, takes
from web.chat_view import back_to, chosen_model, done, find_turn, tool_choices
from web.deps import Number, Text
from web.render import Context, Frame, described, wants_fragment
from web.routes import PageRouter
from web.sse import TurnViewContext
from web.visit import UserVisit, Visit

router = PageRouter()
AUTO = {"mode": "auto"}
REPORTED = "Reported. An admin sees it under Tools, Learn from use."

Choice = Annotated[Literal["once", "conversation", "deny"], Form()]


class TypedMessage(BaseModel):
    """A message as it is typed, where, and how it would be sent."""

    text: str = ""
    mode: ToolMode = "auto"
    cid: str = ""
    role: str = ""
    model: str | None = None
    max_rounds: str = ""
    attached: list[str] = Field(default_factory=list)

    @property
    def rounds(self) -> int:
        """Return how many it may take; 0 where that is not a number."""
        return int(self.max_rounds) if self.max_rounds.isascii() and self.max_rounds.isdigit() else 0


class EditContext(TurnViewContext, frozen=True, kw_only=True):
    """The page that edits a message, where there is no script."""

    turn: TurnView = described("the turn whose message is edited")


class WhyContext(Context, frozen=True, kw_only=True):
    """Why these tools."""

    receipt: dict[str, Any] = described("the plan's receipt, selection/types.py")
    turn_key: str = described("the turn it belongs to; empty for a draft", default="")
    turn: TurnView | None = described("that turn, where it stands in the conversation's log", default=None)
    stayed_home: bool = described("whether nothing of that turn left the house", default=False)
    is_draft: bool = described("whether nothing was sent yet", default=False)
    cid: str = described("the conversation; empty for one that is not there yet", default="")
    choices: Mapping[str, str] = described("tool -> always | never, as the person has it here", default_factory=dict)
    back: str = described("the conversation to return to", default="/")


@router.get("/c/{cid}/at/{key}")
async def at(visit: UserVisit, cid: str, key: str) -> Response:
    """The page that a turn stands on, however far back: where a search leads. One out of view can be brought there."""
    try:
        _, before = await find_turn(visit, cid, turn_of(key))
    except NotFound:
        beginning = (await visit.services.chat.log(visit.user, cid, before=2)).folded().beginning
        if beginning is not None and beginning.id == turn_of(key):
            return RedirectResponse(f"/c/{cid}?before=2", 303)
        await visit.services.versions.of(visit.user, turn_of(key))
        return RedirectResponse(f"/c/{cid}/versions/{key}", 303)
    stretch = f"?before={before}" if before is not None else ""
    return RedirectResponse(f"/c/{cid}{stretch}#q{key}", 303)


@router.get("/c/{cid}/edit/{key}")
async def edit_form(visit: UserVisit, cid: str, key: str, keep: Number = 0) -> Response:
    """The message in a form; `keep` gives the message back as it was."""
    turn, _ = await find_turn(visit, cid, turn_of(key))
    if wants_fragment(visit.request):
        macros = visit.pages.macros("turn.html", TurnViewContext(frame=Frame(user=visit.user), cid=cid, opens={}))
        return HTMLResponse(macros.question_inner(turn) if keep else macros.edit_form(turn))
    return await visit.show("edit.html", EditContext(cid=cid, opens={}, turn=turn))


@router.post("/c/{cid}/edit/{key}")
@takes(TEXT_BYTES)
async def edit(visit: UserVisit, cid: str, key: str, text: Text = "") -> Response:
    """Send the new text in the old one's place."""
    try:
        await visit.services.chat.edit(visit.user, turn_of(key), text)
    except UserError as refused:
        if wants_fragment(visit.request):
            raise
        turn, _ = await find_turn(visit, cid, turn_of(key))
        context = EditContext(cid=cid, opens={}, turn=turn)
        return await visit.show("edit.html", context, refused=refused)
    return done(visit.request, f"/c/{cid}")


@router.post("/turns/{key}/again")
async def again(
    visit: UserVisit,
    key: str,
    mode: Annotated[ToolMode | None, Form()] = None,
    model: Annotated[str | None, Form()] = None,
    back: Text = "/",
) -> Response:
    """A new try, in the same tool mode or in another, by the chat's model or another."""
    await visit.services.chat.again(visit.user, turn_of(key), mode, model)
    return done(visit.request, back_to(back))


@router.post("/turns/{key}/report")
async def report(visit: UserVisit, key: str, wrong: Text = "", back: Text = "/") -> Response:
    """A wrong choice of tools: `wrong` says what, as "missing <tool>" or "unneeded <tool>"."""
    what, _, tool = wrong.partition(" ")
    tool = tool if what in ("missing", "unneeded") else ""
    await visit.services.reports.report(visit.user, turn_of(key), tool, is_missing=what == "missing")
    if wants_fragment(visit.request):
        return HTMLResponse(f'<p class="why-foot" role="status">{REPORTED}</p>')
    return visit.redirect(back_to(back), REPORTED)


@router.post("/turns/{key}/continue")
async def keep_going(visit: UserVisit, key: str, back: Text = "/") -> Response:
    """Go on where the answer broke off."""
    await visit.services.chat.keep_going(visit.user, turn_of(key))
    return done(visit.request, back_to(back))


@router.post("/c/{cid}/branch/{key}")
async def branch(visit: UserVisit, cid: str, key: str) -> Response:
    """A new conversation that begins with everything up to this answer."""
    new = await visit.services.conversations.branch(visit.user, cid, turn_of(key))
    return visit.redirect(f"/c/{new}", "This is a branch; the other conversation stays as it was.")


@router.get("/turns/{key}/why")
async def why_turn(visit: UserVisit, key: str, c: str = "") -> Response:
    """The receipt of the turn's last plan; `c`: the conversation that the reader came from."""
    receipt = await visit.services.chat.receipt(visit.user, turn_of(key))
    turn: TurnView | None = None
    with suppress(NotFound):  # another version is shown by now, or the reader came from elsewhere
        turn = (await find_turn(visit, c, turn_of(key)))[0] if c else None
    return await _why(visit, receipt, turn=turn, turn_key=key, cid=c)


@router.post("/why")
@takes(TEXT_BYTES)
async def why_draft(visit: UserVisit, draft: Annotated[TypedMessage, Form()]) -> Response:
    """The receipt that the draft would get."""
    choices = await tool_choices(visit.request)
    receipt = await _receipt(visit, draft, choices)
    return await _why(visit, receipt, cid=draft.cid, choices=choices)


@router.post("/preview-tools")
@takes(TEXT_BYTES)
async def preview(visit: UserVisit, draft: Annotated[TypedMessage, Form()]) -> Response:
    """The tools that go with the draft, and its price. A POST: a draft must not stand in a log or an address."""
    choices = await tool_choices(visit.request)
    receipt = await _receipt(visit, draft, choices)
    usual = receipt if draft.mode == "auto" else await _receipt(visit, draft.model_copy(update=AUTO), choices)
    macros = visit.pages.macros("composer.html", WhyContext(frame=Frame(user=visit.user), receipt=receipt))
    return HTMLResponse(macros.counted(receipt, usual, bool(draft.text.strip())))


@router.post("/approvals/{approval_id}")
async def answer(visit: UserVisit, approval_id: str, choice: Choice, back: Text = "/") -> Response:
    """The person's word on a call."""
    await visit.services.approvals.answer(visit.user, approval_id, choice)
    return done(visit.request, back_to(back))


@router.post("/approvals/{approval_id}/looked")
async def looked(visit: UserVisit, approval_id: str) -> Response:
    """A page in front of the person shows the request now: they need not be notified of it."""
    await visit.services.approvals.seen(visit.user, approval_id)
    return Response(status_code=204)


@router.post("/approvals/{approval_id}/again")
async def ask_again(visit: UserVisit, approval_id: str, back: Text = "") -> Response:
    """Ask anew for a call that nobody answered in time."""
    cid = await visit.services.approvals.ask_again(visit.user, approval_id)
    return done(visit.request, back_to(back) if back else f"/c/{cid}")


@router.post("/undo/{undo_id}")
async def undo(visit: UserVisit, undo_id: str, back: Text = "/") -> Response:
    """Take a call's effect back."""
    await visit.services.undo.undo(visit.user, undo_id)
    return done(visit.request, back_to(back))


@router.post("/c/{cid}/summaries/{summary_id}/undo")
async def undo_summary(visit: UserVisit, cid: str, summary_id: str) -> Response:
    """Let the model read the messages themselves again."""
    await visit.services.chat.undo_summary(visit.user, cid, summary_id)
    return done(visit.request, f"/c/{cid}")


async def _receipt(visit: Visit, draft: TypedMessage, choices: Mapping[str, str]) -> dict[str, Any]:
    composed = DraftSettings(
        model=chosen_model(draft.model), rounds=draft.rounds, choices=choices, attached=draft.attached
    )
    return await visit.services.planning.preview(
        visit.user, draft.cid or None, draft.text, draft.mode, role=draft.role, composed=composed
    )


async def _why(
    visit: Visit,
    receipt: dict[str, Any],
    *,
    turn: TurnView | None = None,
    turn_key: str = "",
    cid: str = "",
    choices: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    frame = Frame(user=visit.user if wants_fragment(visit.request) else None)
    back = f"/c/{cid}" if cid else "/"
    if cid:
        choices = (await visit.services.conversations.get(visit.user, cid)).tool_choices
    context = WhyContext(
        frame=frame,
        receipt=receipt,
        turn=turn,
        stayed_home=turn is not None and visit.services.chat.stayed_home(turn),
        turn_key=turn_key,
        is_draft=not turn_key,
        cid=cid,
        choices=choices,
        back=back,
    )
    return await visit.show("why_page.html", context, conversation_id=cid)
