"""Letting a housemate read a chat or an answer, and reading what others let one read."""

from collections.abc import Sequence
from functools import partial

from fastapi.responses import Response
from markupsafe import Markup

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.chat.sharing import ChatShareRow, Housemate, SharedTurn
from cortex.services.chat.transcript_views import turn_of
from web.deps import Number, Text, Texts
from web.markdown import render
from web.render import MORE, Context, NavEntry, address, described
from web.routes import PageRouter
from web.stretch import Stretch, cut
from web.visit import UserVisit, Visit

router = PageRouter()
HREF = "/shared"
TURNS = 30  # on a page


async def _state(services: Cortex, user: User) -> str:
    """Return how many there are."""
    count = len(await services.chat_sharing.given(user))
    return f"{count} to read" if count else ""


NAV = NavEntry(
    title="Shared with you",
    href=HREF,
    icon="user",
    order=26,
    under=MORE,
    about="Chats and answers that others here let you read.",
    state=_state,
)


class ShareContext(Context, frozen=True, kw_only=True):
    """The question who may read a chat or an answer."""

    cid: str = described("the conversation's id")
    key: str = described("the turn whose answer is meant, empty for the whole chat")
    people: Sequence[Housemate] = described("who could be let read it")
    shares: Sequence[ChatShareRow] = described("who may read it, or an answer in it, by now")


class GivenContext(Context, frozen=True, kw_only=True):
    """The list of what others let the person read."""

    shares: Stretch[ChatShareRow] = described("each chat or answer, the newest first")


class SharedContext(Context, frozen=True, kw_only=True):
    """A shared chat to read."""

    share: ChatShareRow = described("who shares what with whom")
    turns: Stretch[SharedTurn] = described("what was said, the oldest first")
    answers: Sequence[Markup] = described("the answers of these turns as HTML")
    is_own: bool = described("whether the person looks at what they share themselves")


@router.get("/c/{cid}/share")
async def ask(visit: UserVisit, cid: str, turn: str = "") -> Response:
    """Return the question who may read it."""
    return await visit.show("share.html", await _question(visit, cid, turn))


@router.post("/c/{cid}/share")
async def share(visit: UserVisit, cid: str, turn: Text = "", people: Texts = None) -> Response:
    """Let them read it, and tell them."""
    try:
        names = await visit.services.chat_sharing.share(visit.user, cid, turn_of(turn) if turn else "", people or ())
    except UserError as refused:
        return await visit.show("share.html", await _question(visit, cid, turn), refused=refused)
    return visit.redirect(f"/c/{cid}", f"{' and '.join(names)} can read it now.")


@router.get(HREF)
async def given(visit: UserVisit, start: Number = 0) -> Response:
    """Return what others let the person read."""
    shares = await visit.services.chat_sharing.given(visit.user)
    return await visit.show("shared.html", GivenContext(shares=cut(shares, start, partial(address, HREF))))


@router.get(HREF + "/{share_id}")
async def read(visit: UserVisit, share_id: str, start: Number = 0) -> Response:
    """Return it to read, a stretch of it: a chat may be as long as one likes."""
    chat = await visit.services.chat_sharing.read(visit.user, share_id)
    turns = cut(chat.turns, start, partial(address, f"{HREF}/{chat.share.id}"), most=TURNS)
    answers = await visit.pages.aside(lambda: [Markup(render(turn.answer)) for turn in turns.rows])  # noqa: S704 - cleaned
    is_own = chat.share.owner_id == visit.user.id
    context = SharedContext(share=chat.share, turns=turns, answers=answers, is_own=is_own)
    return await visit.show("shared_chat.html", context)


@router.post(HREF + "/{share_id}/end")
async def end(visit: UserVisit, share_id: str) -> Response:
    """Let it be read no longer."""
    row = await visit.services.chat_sharing.end(visit.user, share_id)
    if row.owner_id == visit.user.id:
        return visit.redirect(f"/c/{row.conversation_id}", f"{row.reader} cannot read it any more.")
    return visit.redirect(HREF, "Removed from your list.")


async def _question(visit: Visit, cid: str, key: str) -> ShareContext:
    await visit.services.conversations.get(visit.user, cid)  # refuses what is not the person's own
    return ShareContext(
        cid=cid,
        key=key,
        people=await visit.services.chat_sharing.housemates(visit.user),
        shares=await visit.services.chat_sharing.of_chat(visit.user, cid),
    )
