"""Background agents on the page: how far one is, and stopping it. Their conversations open as any other."""

from fastapi.responses import HTMLResponse, Response

from web.chat_view import back_to
from web.deps import Text
from web.render import Frame
from web.routes import PageRouter
from web.sse import TurnViewContext
from web.visit import UserVisit

router = PageRouter()


@router.get("/agents/{run_id}/card")
async def card(visit: UserVisit, run_id: str) -> Response:
    """The line that says how it stands; the card asks for it while the run goes on."""
    view = await visit.services.agents.view(visit.user.id, run_id)
    macros = visit.pages.macros(
        "turn.html", TurnViewContext(frame=Frame(user=visit.user), cid=view.parent_id, opens={})
    )
    line = macros.agent_state(view.run.state, view.run.role, view.rounds, view.run.tokens, view.error)
    return HTMLResponse(str(line), headers={"Cache-Control": "no-store"})


@router.post("/agents/{run_id}/cancel")
async def cancel(visit: UserVisit, run_id: str, back: Text = "/") -> Response:
    """Stop it; the stream brings the card's new state."""
    await visit.services.agents.cancel(visit.user.id, run_id)
    if visit.request.headers.get("HX-Request") == "true":
        return Response(status_code=204)
    return visit.redirect(back_to(back))
