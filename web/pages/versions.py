"""The versions of a message and its answer: which there are, going to another, and how to make a new one."""

from collections.abc import Sequence

from fastapi.responses import Response

from cortex.base.errors import NotFound
from cortex.services.chat.composer import Composer
from cortex.services.chat.transcript_views import key_of, turn_of
from cortex.services.chat.versions import AnswerVersion
from web.chat_view import done, find_turn
from web.render import Context, described
from web.routes import PageRouter
from web.visit import UserVisit

router = PageRouter()


class VersionsContext(Context, frozen=True, kw_only=True):
    """The dialog behind an answer's three dots, and its page where there is no script."""

    cid: str = described("the conversation's id")
    key: str = described("the turn that was asked for")
    versions: Sequence[AnswerVersion] = described("all versions of its place, oldest first")
    is_in_view: bool = described("whether the turn is part of what the conversation shows")
    can_repeat: bool = described("whether its message can be sent again: a person or a job wrote it")
    composer: Composer = described("the models to choose from, and the one that this chat asks first")


@router.get("/c/{cid}/versions/{key}")
async def versions(visit: UserVisit, cid: str, key: str) -> Response:
    """The versions of a turn's place, and the ways to make another."""
    found = await visit.services.versions.of(visit.user, turn_of(key))
    turn = next(version.turn for version in found if version.turn.id == turn_of(key))
    if turn.conversation_id != cid:
        raise NotFound("There is no such message in this conversation.")
    context = VersionsContext(
        cid=cid,
        key=key,
        versions=found,
        is_in_view=not turn.is_dropped,
        can_repeat=not turn.is_dropped and turn.channel != "result",
        composer=await visit.services.composer.composer(
            visit.user, await visit.services.conversations.get(visit.user, cid)
        ),
    )
    return await visit.show("versions.html", context)


@router.post("/turns/{key}/show")
async def show(visit: UserVisit, key: str) -> Response:
    """Bring a version into view. Open pages hear of it; one that shows another stretch goes where the version is."""
    row = await visit.services.versions.show(visit.user, turn_of(key))
    _, before = await find_turn(visit, row.conversation_id, row.id)
    is_elsewhere = before is not None or "before=" in visit.request.headers.get("HX-Current-URL", "")
    return done(visit.request, f"/c/{row.conversation_id}/at/{key_of(row.id)}", is_new_place=is_elsewhere)
