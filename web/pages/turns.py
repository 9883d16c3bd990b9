"""One turn: edit and resend, try again, continue, branch, why its tools, and the questions and offers of its cards."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, Field

from cortex.base.errors import NotFound, UserError
from cortex.base.role import ToolMode
from cortex.base.user import User
from cortex.services.chat.transcript_views import TurnView, turn_of
from web import toast
from web.bodies import TEXT_BYTES, takes
from web.chat_view import back_to, chosen_model, done, find_turn, tool_choices
from web.deps import CurrentUser, Number, Services, Text
from web.frame import frame_of
from web.render import Context, Frame, Renderer, described, respond, wants_fragment
from web.routes import LazyRoute
from web.sse import TurnViewContext

router = APIRouter(route_class=LazyRoute)
REPORTED = "Reported. An admin sees it under Tools, Learn from use."

Choice = Annotated[Literal["once", "conversation", "deny"], Form()]


class Draft(BaseModel):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EditContext(TurnViewContext):
    """The page that edits a message, where there is no script."""

    turn: TurnView = described("the turn whose message is edited")
    error: str = described("why the new text was not taken", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyContext(Context):
    """Why these tools."""

    receipt: dict[str, Any] = described("the plan's receipt, selection/types.py")
    turn_key: str = described("the turn it belongs to; empty for a draft", default="")
    is_draft: bool = described("whether nothing was sent yet", default=False)
    cid: str = described("the conversation; empty for one that is not there yet", default="")
    choices: Mapping[str, str] = described("tool -> always | never, as the person has it here", default_factory=dict)
    back: str = described("the conversation to return to", default="/")


@router.get("/c/{cid}/at/{key}")
async def at(services: Services, user: CurrentUser, cid: str, key: str) -> Response:
    """The page that a turn stands on, however far back: where a search leads. One out of view can be brought there."""
    try:
        _, before = await find_turn(services, user, cid, turn_of(key))
    except NotFound:
        await services.versions.of(user, turn_of(key))
        return RedirectResponse(f"/c/{cid}/versions/{key}", 303)
    stretch = f"?before={before}" if before is not None else ""
    return RedirectResponse(f"/c/{cid}{stretch}#q{key}", 303)


@router.get("/c/{cid}/edit/{key}")
async def edit_form(
    request: Request, services: Services, user: CurrentUser, cid: str, key: str, keep: Number = 0
) -> Response:
    """The message in a form; `keep` gives the message back as it was."""
    turn, _ = await find_turn(services, user, cid, turn_of(key))
    if wants_fragment(request):
        pages: Renderer = request.app.state.pages
        macros = pages.macros("turn.html", TurnViewContext(frame=Frame(user=user), cid=cid, opens={}))
        return HTMLResponse(macros.question_inner(turn) if keep else macros.edit_form(turn))
    frame = await frame_of(request, services, user, conversation_id=cid)
    return respond(request, "edit.html", EditContext(frame=frame, cid=cid, opens={}, turn=turn))


@router.post("/c/{cid}/edit/{key}")
@takes(TEXT_BYTES)
async def edit(
    request: Request, services: Services, user: CurrentUser, cid: str, key: str, text: Text = ""
) -> Response:
    """Send the new text in the old one's place."""
    try:
        await services.chat.edit(user, turn_of(key), text)
    except UserError as refused:
        if wants_fragment(request):
            raise
        turn, _ = await find_turn(services, user, cid, turn_of(key))
        frame = await frame_of(request, services, user, conversation_id=cid)
        context = EditContext(frame=frame, cid=cid, opens={}, turn=turn, error=refused.message)
        return respond(request, "edit.html", context, status=422)
    return done(request, f"/c/{cid}")


@router.post("/turns/{key}/again")
async def again(
    request: Request,
    services: Services,
    user: CurrentUser,
    key: str,
    mode: Annotated[ToolMode | None, Form()] = None,
    model: Annotated[str | None, Form()] = None,
    back: Text = "/",
) -> Response:
    """A new try, in the same tool mode or in another, by the chat's model or another."""
    await services.chat.again(user, turn_of(key), mode, model)
    return done(request, back_to(back))


@router.post("/turns/{key}/report")
async def report(
    request: Request, services: Services, user: CurrentUser, key: str, wrong: Text = "", back: Text = "/"
) -> Response:
    """A wrong choice of tools: `wrong` says what, as "missing <tool>" or "unneeded <tool>"."""
    what, _, tool = wrong.partition(" ")
    tool = tool if what in ("missing", "unneeded") else ""
    await services.reports.report(user, turn_of(key), tool, is_missing=what == "missing")
    if wants_fragment(request):
        return HTMLResponse(f'<p class="why-foot" role="status">{REPORTED}</p>')
    return toast.redirect(request, back_to(back), REPORTED)


@router.post("/turns/{key}/continue")
async def keep_going(request: Request, services: Services, user: CurrentUser, key: str, back: Text = "/") -> Response:
    """Go on where the answer broke off."""
    await services.chat.keep_going(user, turn_of(key))
    return done(request, back_to(back))


@router.post("/c/{cid}/branch/{key}")
async def branch(request: Request, services: Services, user: CurrentUser, cid: str, key: str) -> Response:
    """A new conversation that begins with everything up to this answer."""
    new = await services.conversations.branch(user, cid, turn_of(key))
    return toast.redirect(request, f"/c/{new}", "This is a branch; the other conversation stays as it was.")


@router.get("/turns/{key}/why")
async def why_turn(request: Request, services: Services, user: CurrentUser, key: str, c: str = "") -> Response:
    """The receipt of the turn's last plan; `c`: the conversation that the reader came from."""
    receipt = await services.chat.receipt(user, turn_of(key))
    return await _why(request, services, user, receipt, turn_key=key, cid=c)


@router.post("/why")
@takes(TEXT_BYTES)
async def why_draft(
    request: Request,
    services: Services,
    user: CurrentUser,
    draft: Annotated[Draft, Form()],
) -> Response:
    """The receipt that the draft would get."""
    choices = await tool_choices(request)
    receipt = await _receipt(services, user, draft, choices)
    return await _why(request, services, user, receipt, cid=draft.cid, choices=choices, is_draft=True)


@router.post("/preview-tools")
@takes(TEXT_BYTES)
async def preview(
    request: Request,
    services: Services,
    user: CurrentUser,
    draft: Annotated[Draft, Form()],
) -> Response:
    """The draft's price tag. A POST: a draft must not stand in a log or an address."""
    receipt = await _receipt(services, user, draft, await tool_choices(request))
    pages: Renderer = request.app.state.pages
    macros = pages.macros("why.html", WhyContext(frame=Frame(user=user), receipt=receipt))
    tag = macros.pill(receipt, bool(draft.text.strip()))
    return HTMLResponse(tag if draft.cid else tag + macros.all_anew(receipt))


@router.post("/approvals/{approval_id}")
async def answer(
    request: Request, services: Services, user: CurrentUser, approval_id: str, choice: Choice, back: Text = "/"
) -> Response:
    """The person's word on a call."""
    await services.approvals.answer(user, approval_id, choice)
    return done(request, back_to(back))


@router.post("/approvals/{approval_id}/looked")
async def looked(services: Services, user: CurrentUser, approval_id: str) -> Response:
    """A page in front of the person shows the request now: they need not be notified of it."""
    await services.approvals.seen(user, approval_id)
    return Response(status_code=204)


@router.post("/approvals/{approval_id}/again")
async def ask_again(
    request: Request, services: Services, user: CurrentUser, approval_id: str, back: Text = ""
) -> Response:
    """Ask anew for a call that nobody answered in time."""
    cid = await services.approvals.ask_again(user, approval_id)
    return done(request, back_to(back) if back else f"/c/{cid}")


@router.post("/undo/{undo_id}")
async def undo(request: Request, services: Services, user: CurrentUser, undo_id: str, back: Text = "/") -> Response:
    """Take a call's effect back."""
    await services.undo.undo(user, undo_id)
    return done(request, back_to(back))


@router.post("/c/{cid}/summaries/{summary_id}/undo")
async def undo_summary(request: Request, services: Services, user: CurrentUser, cid: str, summary_id: str) -> Response:
    """Let the model read the messages themselves again."""
    await services.chat.undo_summary(user, cid, summary_id)
    return done(request, f"/c/{cid}")


async def _receipt(services: Services, user: User, draft: Draft, choices: Mapping[str, str]) -> dict[str, Any]:
    return await services.planning.preview(
        user,
        draft.cid or None,
        draft.text,
        draft.mode,
        role=draft.role,
        model=chosen_model(draft.model),
        rounds=draft.rounds,
        choices=choices,
        attached=draft.attached,
    )


async def _why(
    request: Request,
    services: Services,
    user: User,
    receipt: dict[str, Any],
    *,
    turn_key: str = "",
    cid: str = "",
    choices: Mapping[str, str] = MappingProxyType({}),
    is_draft: bool = False,
) -> Response:
    frame = (
        Frame(user=user) if wants_fragment(request) else await frame_of(request, services, user, conversation_id=cid)
    )
    back = f"/c/{cid}" if cid else "/"
    if cid:
        choices = (await services.conversations.get(user, cid)).tool_choices
    context = WhyContext(
        frame=frame, receipt=receipt, turn_key=turn_key, is_draft=is_draft, cid=cid, choices=choices, back=back
    )
    return respond(request, "why_page.html", context)
