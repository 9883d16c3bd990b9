"""The conversation: read it, write into it, stop it, follow it."""

from typing import Annotated

from fastapi import Form, Header
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup
from msgspec.structs import replace
from pydantic import BaseModel, Field

from cortex.base.errors import Busy, UserError
from cortex.base.numbers import whole_number
from cortex.base.role import ToolMode
from web.bodies import TEXT_BYTES, takes
from web.chat_view import chat_context, chosen_model, done, tool_choices
from web.deps import Number, Text
from web.live import LivePages
from web.render import Frame, wants_fragment
from web.routes import PageRouter
from web.sse import LiveStream, TurnViewContext
from web.visit import UserVisit
from web.words import role_title

router = PageRouter()

NOT_ATTACHED = "Press Attach first: the files that you chose have not been sent yet."
ONCE_CHARS = 64


class SentMessage(BaseModel):
    """A message as the composer sends it.

    Mode and rounds stay with the conversation, but for a `quick` question. `files`: names of what was chosen without a
    script and not yet attached. `temporary`: a new chat is to be one.
    `once`: one and the same for as long as it is tried to send a message.
    """

    text: str = ""
    mode: ToolMode = "auto"
    max_rounds: str = ""
    rounds_default: str = ""
    role: str = ""
    model: str | None = None
    quick: str = ""
    temporary: str = ""
    attached: list[str] = Field(default_factory=list)
    files: list[str] = Field(default_factory=list)
    once: str = ""

    @property
    def rounds(self) -> int | None:
        """Return how many are fixed; None for the default, which is not."""
        return whole_number(self.max_rounds) if self.max_rounds != self.rounds_default else None


@router.get("/c")
async def newest(visit: UserVisit) -> Response:
    """The newest conversation, or a new one."""
    groups = await visit.services.conversations.list(visit.user)
    first = next((c.id for group in groups for c in group.conversations), "new")
    return RedirectResponse(f"/c/{first}", 303)


@router.get("/c/new")
async def new(visit: UserVisit, role: str = "", text: str = "", temporary: bool = False) -> Response:
    """An empty conversation, perhaps with an example in the composer; nothing is stored before the first message.

    No other words are taken from a link: whoever made it would speak as the person, and name places for them.
    """
    context = await chat_context(visit, None, role=role, is_temporary=temporary)
    left = await visit.services.first_steps.left(visit.user)
    context = replace(context, draft=text if text in context.composer.examples else "", steps=left)
    return await visit.show("chat.html", context)


@router.get("/c/{cid}")
async def show(visit: UserVisit, cid: str, before: Number | None = None) -> Response:
    """A conversation: its newest turns with the live stream, or an older stretch."""
    page = await visit.services.chat.log(visit.user, cid, before=before)
    context = await chat_context(visit, page, before=before)
    return await visit.show("chat.html", context)


@router.get("/c/{cid}/earlier")
async def earlier(visit: UserVisit, cid: str, before: Number) -> Response:
    """The turns above, as a fragment that takes the place of the link to them."""
    page = await visit.services.chat.log(visit.user, cid, before=before)
    log = page.folded()
    engine = (await visit.services.preferences.get(visit.user)).engine

    def stretch() -> Markup:
        context = TurnViewContext(frame=Frame(user=visit.user), cid=cid, opens={}, engine=engine)
        macros = visit.pages.macros("turn.html", context)
        link = [macros.earlier(page.earlier)] if page.earlier is not None else []
        return Markup("").join(
            [
                *link,
                macros.beginning(log.beginning),
                *(macros.turn(turn, True, log.marker_after(turn)) for turn in log.turns),
            ]
        )

    return HTMLResponse(await visit.pages.aside(stretch), headers={"Vary": "HX-Request", "Cache-Control": "no-store"})


@router.post("/c/{cid}/messages")
@takes(TEXT_BYTES)
async def send(visit: UserVisit, cid: str, sent: Annotated[SentMessage, Form()]) -> Response:
    """Take a message; a new conversation begins with it."""
    is_new, once = cid == "new", sent.once[:ONCE_CHARS]
    try:
        if any(sent.files):
            raise UserError(NOT_ATTACHED)
        if is_new and (sent.text.strip() or sent.attached):
            chosen = visit.services.composer.checked_choices(await tool_choices(visit.request))
            picked = {name: use for name, use in chosen.items() if use}
            mode = "auto" if sent.quick else sent.mode
            cid = (
                await visit.services.conversations.new(
                    visit.user, sent.role, mode, picked, once, is_temporary=bool(sent.temporary)
                )
            ).id
        await visit.services.chat.send_message(
            visit.user,
            cid,
            sent.text,
            mode=sent.mode,
            max_rounds=sent.rounds,
            model=chosen_model(sent.model),
            is_kept=not sent.quick,
            attached=sent.attached,
            once=once,
        )
    except (UserError, Busy) as refused:
        if wants_fragment(visit.request) and isinstance(refused, Busy):
            raise  # the composer there keeps its words, and sends them again
        page = None if cid == "new" else await visit.services.chat.log(visit.user, cid)
        context = await chat_context(
            visit,
            page,
            role=sent.role,
            draft=sent.text,
            attached=sent.attached,
            once=once,
            is_temporary=bool(sent.temporary),
        )
        return await visit.show("chat.html", context, block="composer", refused=refused)
    return done(visit.request, f"/c/{cid}", is_new_place=is_new)


@router.post("/c/{cid}/fresh")
async def start_fresh(visit: UserVisit, cid: str) -> Response:
    """Go on in a new conversation that begins with a summary of this one."""
    new_id = await visit.services.fresh_starts.begin(visit.user, cid)
    return done(visit.request, f"/c/{new_id}", is_new_place=True)


@router.post("/c/{cid}/role")
@takes(TEXT_BYTES)  # the draft comes along
async def choose_role(visit: UserVisit, cid: str, role: Text = "") -> Response:
    """Go on in another role, where this conversation's is not there any more."""
    await visit.services.role_library.give(visit.user, cid, role)
    return visit.redirect(f"/c/{cid}", f"This chat now uses the role {role_title(role)}.")


@router.post("/c/{cid}/recipe")
@takes(TEXT_BYTES)
async def choose_recipe(visit: UserVisit, cid: str, recipe: Text = "") -> Response:
    """From the next message on, choose this conversation's tools in another way."""
    await visit.services.conversations.set_recipe(visit.user, cid, recipe)
    return done(visit.request, f"/c/{cid}")


@router.post("/c/{cid}/tools")
@takes(TEXT_BYTES)
async def choose_tools(visit: UserVisit, cid: str) -> Response:
    """From the next message on, always or never use these tools in this conversation."""
    await visit.services.composer.choose_tools(visit.user, cid, await tool_choices(visit.request))
    return done(visit.request, f"/c/{cid}")


@router.post("/c/{cid}/model")
@takes(TEXT_BYTES)
async def choose_model(visit: UserVisit, cid: str, model: Text = "") -> Response:
    """From the next message on, ask this model first; none leaves that to the role."""
    await visit.services.chat.set_model(visit.user, cid, chosen_model(model) or "")
    return done(visit.request, f"/c/{cid}")


@router.post("/c/{cid}/stop")
async def stop(visit: UserVisit, cid: str) -> Response:
    """End the answer that is being written; what is there stays."""
    await visit.services.chat.stop(visit.user, cid)
    return done(visit.request, f"/c/{cid}")


@router.get("/c/{cid}/events")
async def events(
    visit: UserVisit, cid: str, after: Number = 0, shown: Number = -1, last_event_id: Annotated[str, Header()] = ""
) -> Response:
    """The log from `after` (or from what the browser saw last) on, as it grows, and the bell if it is not `shown`."""
    live: LivePages = visit.request.app.state.live
    conversation = await visit.services.conversations.get(visit.user, cid)
    seen = whole_number(last_event_id)
    seq = after if seen is None else seen
    stream = live.conversation(visit.user, cid, min(max(0, seq), conversation.seq), shown)
    return LiveStream(visit.services, visit.user, stream)
