"""Background agents on the page: how far one is, and stopping it. Their conversations open as any other."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from web.chat_view import back_to
from web.deps import CurrentUser, Services, Text
from web.render import Frame, Renderer
from web.routes import LazyRoute
from web.sse import TurnViewContext
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)


@router.get("/agents/{run_id}/card")
async def card(request: Request, services: Services, user: CurrentUser, run_id: str) -> Response:
    """The line that says how it stands; the card asks for it while the run goes on."""
    view = await services.agents.view(user.id, run_id)
    pages: Renderer = request.app.state.pages
    macros = pages.macros("turn.html", TurnViewContext(frame=Frame(user=user), cid=view.parent_id, opens={}))
    line = macros.agent_state(view.run.state, view.run.role, view.rounds, view.run.tokens, view.error)
    return HTMLResponse(str(line), headers={"Cache-Control": "no-store"})


@router.post("/agents/{run_id}/cancel")
async def cancel(request: Request, services: Services, user: CurrentUser, run_id: str, back: Text = "/") -> Response:
    """Stop it; the stream brings the card's new state."""
    await services.agents.cancel(user.id, run_id)
    if request.headers.get("HX-Request") == "true":
        return Response(status_code=204)
    return redirect(request, back_to(back))
