"""The conversation: read it, write into it, stop it, follow it."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Form, Header, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from cortex.base.errors import Busy, UserError
from cortex.base.numbers import whole_number
from cortex.base.role import ToolMode
from web.bodies import TEXT_BYTES, takes
from web.chat_view import chat_context, chosen_model, done, tool_choices
from web.deps import CurrentUser, Number, Services, Text, Texts
from web.live import LivePages
from web.render import Frame, Renderer, respond, wants_fragment
from web.routes import LazyRoute
from web.sse import LiveStream, TurnViewContext
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)

NOT_ATTACHED = "Press Attach first: the files that you chose have not been sent yet."
ONCE_CHARS = 64
Mode = Annotated[ToolMode, Form()]
Rounds = Annotated[str, Form()]


@router.get("/")
async def home(services: Services, user: CurrentUser) -> Response:
    """The newest conversation, or a new one."""
    groups = await services.conversations.list(user)
    first = next((c.id for group in groups for c in group.conversations), "new")
    return RedirectResponse(f"/c/{first}", 303)


@router.get("/c/new")
async def new(request: Request, services: Services, user: CurrentUser, role: str = "", text: str = "") -> Response:
    """An empty conversation, perhaps with an example in the composer; nothing is stored before the first message.

    No other words are taken from a link: whoever made it would speak as the person, and name places for them.
    """
    context = await chat_context(request, services, user, None, role=role)
    left = await services.first_steps.left(user)
    context = replace(context, draft=text if text in context.composer.examples else "", steps=left)
    return respond(request, "chat.html", context)


@router.get("/c/{cid}")
async def show(
    request: Request, services: Services, user: CurrentUser, cid: str, before: Number | None = None
) -> Response:
    """A conversation: its newest turns with the live stream, or an older stretch."""
    page = await services.chat.log(user, cid, before=before)
    context = await chat_context(request, services, user, page, before=before)
    return respond(request, "chat.html", context)


@router.get("/c/{cid}/earlier")
async def earlier(request: Request, services: Services, user: CurrentUser, cid: str, before: Number) -> Response:
    """The turns above, as a fragment that takes the place of the link to them."""
    page = await services.chat.log(user, cid, before=before)
    log = page.folded()
    pages: Renderer = request.app.state.pages

    def stretch() -> Markup:
        macros = pages.macros("turn.html", TurnViewContext(frame=Frame(user=user), cid=cid, opens={}))
        link = [macros.earlier(page.earlier)] if page.earlier is not None else []
        return Markup("").join([*link, *(macros.turn(turn, True, log.marker_after(turn)) for turn in log.turns)])

    return HTMLResponse(await pages.aside(stretch), headers={"Vary": "HX-Request", "Cache-Control": "no-store"})


@router.post("/c/{cid}/messages")
@takes(TEXT_BYTES)
async def send(
    request: Request,
    services: Services,
    user: CurrentUser,
    cid: str,
    text: Text = "",
    mode: Mode = "auto",
    max_rounds: Rounds = "",
    rounds_default: Rounds = "",
    role: Text = "",
    model: Annotated[str | None, Form()] = None,
    quick: Text = "",
    attached: Texts = None,
    files: Texts = None,
    once: Text = "",
) -> Response:
    """Take a message; a new conversation begins with it. Rounds left at their default are not fixed.

    Mode and rounds stay with the conversation, but for a `quick` question. `files`: names of what was chosen without a
    script and not yet attached. `once`: one and the same for as long as it is tried to send a message.
    """
    once = once[:ONCE_CHARS]
    rounds = whole_number(max_rounds) if max_rounds != rounds_default else None
    is_new = cid == "new"
    try:
        if files and any(files):
            raise UserError(NOT_ATTACHED)
        if is_new and (text.strip() or attached):
            chosen = services.composer.checked_choices(await tool_choices(request))
            picked = {name: use for name, use in chosen.items() if use}
            cid = (await services.conversations.new(user, role, "auto" if quick else mode, picked, once)).id
        await services.chat.send_message(
            user,
            cid,
            text,
            mode=mode,
            max_rounds=rounds,
            model=chosen_model(model),
            is_kept=not quick,
            attached=attached or (),
            once=once,
        )
    except (UserError, Busy) as refused:
        if wants_fragment(request) and isinstance(refused, Busy):
            raise  # the composer there keeps its words, and sends them again
        page = None if cid == "new" else await services.chat.log(user, cid)
        context = await chat_context(
            request,
            services,
            user,
            page,
            role=role,
            draft=text,
            error=refused.message,
            attached=attached or (),
            once=once,
        )
        return respond(request, "chat.html", context, block="composer", status=refused.status)
    return done(request, f"/c/{cid}", is_new_place=is_new)


@router.post("/c/{cid}/role")
@takes(TEXT_BYTES)  # the draft comes along
async def choose_role(request: Request, services: Services, user: CurrentUser, cid: str, role: Text = "") -> Response:
    """Go on in another role, where this conversation's is not there any more."""
    await services.role_library.give(user, cid, role)
    return redirect(request, f"/c/{cid}", f"This chat now uses the role {role}.")


@router.post("/c/{cid}/recipe")
@takes(TEXT_BYTES)
async def choose_recipe(
    request: Request, services: Services, user: CurrentUser, cid: str, recipe: Text = ""
) -> Response:
    """From the next message on, choose this conversation's tools in another way."""
    await services.conversations.set_recipe(user, cid, recipe)
    return done(request, f"/c/{cid}")


@router.post("/c/{cid}/tools")
@takes(TEXT_BYTES)
async def choose_tools(request: Request, services: Services, user: CurrentUser, cid: str) -> Response:
    """From the next message on, always or never use these tools in this conversation."""
    await services.composer.choose_tools(user, cid, await tool_choices(request))
    return done(request, f"/c/{cid}")


@router.post("/c/{cid}/model")
@takes(TEXT_BYTES)
async def choose_model(request: Request, services: Services, user: CurrentUser, cid: str, model: Text = "") -> Response:
    """From the next message on, ask this model first; none leaves that to the role."""
    await services.chat.set_model(user, cid, chosen_model(model) or "")
    return done(request, f"/c/{cid}")


@router.post("/c/{cid}/stop")
async def stop(request: Request, services: Services, user: CurrentUser, cid: str) -> Response:
    """End the answer that is being written; what is there stays."""
    await services.chat.stop(user, cid)
    return done(request, f"/c/{cid}")


@router.get("/c/{cid}/events")
async def events(
    request: Request,
    services: Services,
    user: CurrentUser,
    cid: str,
    after: Number = 0,
    shown: Number = -1,
    last_event_id: Annotated[str, Header()] = "",
) -> Response:
    """The log from `after` (or from what the browser saw last) on, as it grows, and the bell if it is not `shown`."""
    live: LivePages = request.app.state.live
    conversation = await services.conversations.get(user, cid)
    seen = whole_number(last_event_id)
    seq = after if seen is None else seen
    stream = live.conversation(user, cid, min(max(0, seq), conversation.seq), shown)
    return LiveStream(services, user, stream)
