"""My account at messengers: linked by the code that the bot sent me, taken away."""

from collections.abc import Sequence

from fastapi.responses import Response
from msgspec.structs import replace

from cortex.base.errors import Conflict, Throttled, UserError
from cortex.services.messengers.links import MessengerView
from web.deps import Text
from web.render import described
from web.routes import PageRouter
from web.sections import SectionContext
from web.visit import ReauthedVisit, UserVisit, Visit

router = PageRouter()
HERE = "/account/messengers"


class MessengersContext(SectionContext, frozen=True, kw_only=True):
    """The messengers that are set up here, and my account at each."""

    messengers: Sequence[MessengerView] = described("each that is open to me, with my link")
    code: str = described("the code as typed", default="")
    guest: str = described("whose code it is, by the name there; empty until one was entered", default="")
    at: str = described("the name of that messenger", default="")


@router.get(HERE)
async def show(visit: UserVisit) -> Response:
    """Return all of it."""
    return await visit.show("account_messengers.html", await _context(visit), block="section")


@router.post(HERE)
async def look(visit: ReauthedVisit, code: Text = "") -> Response:
    """Say whose code it is, and ask."""
    try:
        guest = await visit.services.messenger_links.look(visit.user, code)
    except (UserError, Throttled) as refused:
        return await _refused(visit, code, refused)
    context = await _context(visit)
    titles = {one.name: one.title for one in context.messengers}
    context = replace(context, code=code, guest=guest.name, at=titles[guest.messenger])
    return await visit.show("account_messengers.html", context, block="section")


@router.post(HERE + "/link")
async def link(visit: ReauthedVisit, code: Text = "") -> Response:
    """Link it with me."""
    try:
        row = await visit.services.messenger_links.link(visit.user, code)
    except (UserError, Conflict, Throttled) as refused:
        return await _refused(visit, code, refused)
    return visit.redirect(HERE, f"Linked: {row.name}. Write something there.")


@router.get(HERE + "/{link_id}/remove")
async def ask_remove(visit: UserVisit, link_id: str) -> Response:
    """The question before a link goes."""
    row = await visit.services.messenger_links.get(visit.user, link_id)
    return await visit.ask(
        title=f"Remove the link with {row.name}?",
        text="Cortex no longer answers you there. Your chats stay here.",
        words="Remove",
        back=HERE,
    )


@router.post(HERE + "/{link_id}/remove")
async def remove(visit: UserVisit, link_id: str) -> Response:
    """Take it away."""
    row = await visit.services.messenger_links.get(visit.user, link_id)
    await visit.services.messenger_links.unlink(visit.user, link_id)
    return visit.redirect(HERE, f"Removed: {row.name}.")


async def _refused(visit: Visit, code: str, refused: UserError | Conflict | Throttled) -> Response:
    said = refused if isinstance(refused, UserError) else UserError(refused.message, field="code")
    context = replace(await _context(visit), code=code)
    return await visit.show("account_messengers.html", context, block="section", refused=said)


async def _context(visit: Visit) -> MessengersContext:
    found = await visit.services.messenger_links.list(visit.user)
    return MessengersContext(section="messengers", messengers=found)
