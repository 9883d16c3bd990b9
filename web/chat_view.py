"""What the chat's pages share: the context of `chat.html`, and how a POST answers with and without htmx.

Not a page: `web/pages/chat.py`, `turns.py`, `agents.py` and `whole.py` call it.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from cortex.base.clock import now
from cortex.base.errors import NotFound
from cortex.base.ids import new_id
from cortex.base.media import ACCEPTED
from cortex.services.chat.chat import LogPage
from cortex.services.chat.composer import Composer, ModeFigures
from cortex.services.chat.transcript import Transcript
from cortex.services.chat.transcript_views import TurnView
from cortex.services.health.first_steps import FirstSteps
from web.frame import frame_of
from web.render import described
from web.security import local_path
from web.sse import TurnViewContext, open_streams
from web.visit import Visit

AS_ROLE = "-"  # no model is called so; an empty field of a form cannot be told from a missing one
JUST_BEGUN = timedelta(minutes=1)  # the first message leads to the page of its chat, and the caret goes with it
OLD_FROM = 8  # turns above the newest eight begun are skipped by the browser's layout until they come into view


class ChatContext(TurnViewContext, frozen=True, kw_only=True):
    """The chat page."""

    conversation: Any = described("the conversation's head; None for a new one", default=None)
    title: str = described("its title, or the words for a new one")
    log: Transcript = described("the folded conversation")
    turns: tuple[TurnView, ...] = described("the turns shown, oldest first")
    old_from: int = described("turns before this index are laid out lazily", default=0)
    earlier: int | None = described("`before` of the link to what stands above, or None", default=None)
    is_past: bool = described("whether this is a stretch of the past, without the live stream", default=False)
    seq: int = described("the log is folded up to here; the stream goes on after it", default=0)
    composer: Composer = described("what can be set before sending")
    figures: ModeFigures = described("what each tool mode sends")
    draft: str = described("text to begin with", default="")
    has_caret: bool = described(
        "whether what is typed goes to the composer at once: in a new chat, and after its start"
    )
    is_temporary: bool = described("whether nothing of it is kept once it ends", default=False)
    steps: FirstSteps | None = described("what is left to set up, in a new chat", default=None)
    attached: Sequence[Any] = described("files that go with the draft", default=())
    accepted: str = described("what the dialog of the browser offers", default=ACCEPTED)
    upload_bytes: int = described("what one file may have")
    once: str = described("what the next message is known by, so that sending it twice is sending it once")


async def chat_context(
    visit: Visit,
    page: LogPage | None,
    *,
    role: str = "",
    before: int | None = None,
    draft: str = "",
    attached: Sequence[str] = (),
    once: str = "",
    is_temporary: bool = False,
) -> ChatContext:
    """The context of a conversation's page, or of a new one (`page` None), which is to be temporary or not."""
    conversation = page.conversation if page else None
    cid = conversation.id if conversation else "new"
    composer = await visit.services.composer.composer(visit.user, conversation, role)
    log = page.folded() if page else Transcript()
    return ChatContext(
        frame=await frame_of(visit.request, visit.services, visit.user, conversation_id=cid),
        cid=cid,
        opens=await visit.pages.aside(open_streams, visit.services.hub.open_parts(cid)) if page else {},
        conversation=conversation,
        title=log.title or "New chat",
        log=log,
        turns=log.turns,
        old_from=max(0, sum(turn.state != "queued" for turn in log.turns) - OLD_FROM),
        earlier=page.earlier if page else None,
        is_past=before is not None,
        seq=page.seq if page else 0,
        engine=composer.engine,
        composer=composer,
        figures=await visit.services.composer.figures(visit.user, composer, conversation),
        draft=draft,
        has_caret=conversation is None or now() - conversation.created_at < JUST_BEGUN,
        is_temporary=conversation.source == "temporary" if conversation else is_temporary,
        attached=await visit.services.documents.named(visit.user, attached) if attached else (),
        upload_bytes=visit.services.documents.limit_bytes,
        once=once or new_id(),
    )


async def tool_choices(request: Request) -> dict[str, str]:
    """Return what a form says of tools in a conversation: the fields `use.<tool>`, each always, never or empty."""
    fields = await request.form()
    return {name.removeprefix("use."): str(value) for name, value in fields.items() if name.startswith("use.")}


def done(request: Request, place: str, *, is_new_place: bool = False) -> Response:
    """After a POST: nothing to swap for htmx (the stream brings what changed), a redirect otherwise.

    `is_new_place`: the browser must go there in either case.
    """
    if request.headers.get("HX-Request") != "true":
        return RedirectResponse(place, 303)
    return Response(status_code=204, headers={"HX-Redirect": place} if is_new_place else {})


def chosen_model(field: str | None) -> str | None:
    """The model that a form names: "" for what the role says, None where it has no such field."""
    return "" if field == AS_ROLE else field


def back_to(place: str) -> str:
    """Where a form without htmx returns: a path of ours, else the start."""
    return local_path(place, "/")


async def find_turn(visit: Visit, cid: str, turn_id: str) -> tuple[TurnView, int | None]:
    """One turn of a conversation and the `before` of the stretch it stands in; NotFound when it was replaced."""
    before: int | None = None
    while True:
        page = await visit.services.chat.log(visit.user, cid, before=before)
        turn = page.folded().turn(turn_id)
        if turn is not None:
            return turn, before
        if page.earlier is None:
            raise NotFound("This message no longer exists.")
        before = page.earlier
