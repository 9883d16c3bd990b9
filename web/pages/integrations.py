"""Admin: the outside systems. A card each: how it stands, its form, a test, who may use it, off, and away."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.integrations.forms import FormErrors
from cortex.services.integrations.integrations import IntegrationCard
from cortex.services.integrations.kinds import PAGE
from web.bodies import TEXT_BYTES, takes
from web.deps import ReauthedAdmin, Services, Text, Texts
from web.frame import frame_of
from web.render import ADMIN, ConfirmContext, Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)


async def _state(services: Cortex, user: User) -> str:
    """Return how many are set up, or that one fails."""
    cards = [card for card in await services.integrations.cards() if card.is_set_up]
    if any(card.is_failing for card in cards):
        return "Needs attention"
    return f"{len(cards)} set up" if cards else "None yet"


NAV = NavEntry(
    title="Integrations",
    href=PAGE,
    icon="bolt",
    order=64,
    under=ADMIN,
    about="Connect e-mail, web search, Home Assistant, Nextcloud Talk, databases and more.",
    state=_state,
)
ENV_FILE = str(Path(".env").absolute())  # which `base/settings.py` reads
VALUE_CHARACTERS = 100_000  # the forms have limits of their own, far below


@dataclass(frozen=True, slots=True, kw_only=True)
class CardReport:
    """What an act on one card came to: news of a test, or why it was refused."""

    kind: str
    name: str
    text: str
    is_ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrationsContext(Context):
    """The cards."""

    cards: Sequence[IntegrationCard] = described("the systems, set up or not, in the order of the page")
    env_file: str = described("the file that holds the server's settings")
    people: Sequence[tuple[str, str]] = described("everybody who may be given one: id, name")
    roles: Sequence[str] = described("the roles that it may be given to")
    report: CardReport | None = described("what the last act on one of them came to", default=None)


@router.get(PAGE)
async def show(request: Request, services: Services, user: ReauthedAdmin) -> Response:
    """All of them."""
    return await _page(request, services, user)


@router.get(PAGE + "/{kind}")
async def at_card(user: ReauthedAdmin, kind: str) -> Response:
    """The address that a refused save leaves in the browser: its card."""
    return RedirectResponse(f"{PAGE}#{quote(kind)}", 303)


@router.post(PAGE + "/{kind}")
@takes(TEXT_BYTES)
async def save(
    request: Request, services: Services, user: ReauthedAdmin, kind: str, name: Text = "", is_new: Text = ""
) -> Response:
    """Keep what the form says; the next message can use it."""
    typed = await _typed(request)
    try:
        await services.integrations.save(user, kind, name, typed, is_new=bool(is_new))
    except UserError as refused:
        return await _refused(request, services, user, kind, "" if is_new else name, typed, refused)
    return redirect(request, f"{PAGE}#{kind}", f"Saved: {services.integrations.kind(kind).title}")


@router.post(PAGE + "/{kind}/test")
@takes(TEXT_BYTES)
async def try_connection(
    request: Request, services: Services, user: ReauthedAdmin, kind: str, name: Text = "", is_new: Text = ""
) -> Response:
    """Reach it with what the form says, saved or not."""
    typed = await _typed(request)
    await services.end_view()  # it may take its time to answer
    try:
        text = await services.integrations.test(user, kind, name, typed)
    except UserError as refused:
        return await _refused(request, services, user, kind, "" if is_new else name, typed, refused, block="report")
    report = CardReport(kind=kind, name="" if is_new else name, text=text, is_ok=True)
    return await _page(request, services, user, report=report, typed=typed, block="report")


@router.post(PAGE + "/{kind}/search")
@takes(TEXT_BYTES)
async def search(
    request: Request, services: Services, user: ReauthedAdmin, kind: str, name: Text = "", is_new: Text = ""
) -> Response:
    """Look for it in the network; what is typed stays."""
    typed, name = await _typed(request), "" if is_new else name
    await services.end_view()  # it takes seconds
    try:
        text = await services.integrations.search(user, kind)
    except UserError as refused:
        return await _refused(request, services, user, kind, name, typed, refused, block="report")
    report = CardReport(kind=kind, name=name, text=text, is_ok=True)
    return await _page(request, services, user, report=report, typed=typed, block="report")


@router.post(PAGE + "/{kind}/switch")
async def switch(
    request: Request, services: Services, user: ReauthedAdmin, kind: str, name: Text = "", is_on: Text = ""
) -> Response:
    """Let tools use it, or keep them from it."""
    await services.integrations.switch(user, kind, name, is_on=bool(is_on))
    title = services.integrations.kind(kind).title
    return redirect(request, f"{PAGE}#{kind}", f"{title} switched {'on' if is_on else 'off'}.")


@router.post(PAGE + "/{kind}/share")
async def share(
    request: Request,
    services: Services,
    user: ReauthedAdmin,
    kind: str,
    name: Text = "",
    roles: Texts = None,
    people: Texts = None,
) -> Response:
    """Say who may use it."""
    try:
        await services.integrations.share(user, kind, name, roles or (), people or ())
    except UserError as refused:
        report = CardReport(kind=kind, name=name, text=refused.message, is_ok=False)
        return await _page(request, services, user, report=report, status=422)
    return redirect(request, f"{PAGE}#{kind}", "Saved.")


@router.get(PAGE + "/{kind}/remove")
async def ask_remove(request: Request, services: Services, user: ReauthedAdmin, kind: str, name: str = "") -> Response:
    """Really?"""
    card = await services.integrations.card(kind, name)
    context = ConfirmContext(
        frame=await frame_of(request, services, user, here=PAGE),
        title=f"Remove {card.title}?",
        text="Its settings and keys are deleted. Chats stay as they are.",
        action=f"{PAGE}/{quote(kind)}/remove?name={quote(name)}",
        words="Remove",
        back=f"{PAGE}#{kind}",
    )
    return respond(request, "confirm.html", context)


@router.post(PAGE + "/{kind}/remove")
async def remove(request: Request, services: Services, user: ReauthedAdmin, kind: str, name: str = "") -> Response:
    """Forget it and its keys."""
    card = await services.integrations.card(kind, name)
    await services.integrations.remove(user, kind, name)
    return redirect(request, f"{PAGE}#{kind}", f"Removed: {card.title}")


async def _typed(request: Request) -> dict[str, str]:
    """The fields as they were typed, whole: which they are is the kind's matter. UserError for a huge one."""
    typed = {key: str(value) for key, value in (await request.form()).items()}
    if any(len(value) > VALUE_CHARACTERS for value in typed.values()):
        raise UserError(f"At most {VALUE_CHARACTERS:,} characters per field. Nothing was changed.")
    return typed


async def _refused(
    request: Request,
    services: Services,
    user: User,
    kind: str,
    name: str,
    typed: Mapping[str, Any],
    refused: UserError,
    block: str = "content",
) -> Response:
    errors = refused.fields if isinstance(refused, FormErrors) else {}
    report = CardReport(kind=kind, name=name, text=refused.message, is_ok=False)
    return await _page(request, services, user, report=report, typed=typed, errors=errors, block=block, status=422)


async def _page(
    request: Request,
    services: Services,
    user: User,
    *,
    report: CardReport | None = None,
    typed: Mapping[str, Any] | None = None,
    errors: Mapping[str, str] | None = None,
    block: str = "content",
    status: int = 200,
) -> Response:
    """The cards; the one that the report is about with what was typed."""
    cards = await services.integrations.cards()
    if report and typed is not None:
        cards = [
            services.integrations.typed_card(card, typed, errors or {})
            if (card.kind.name, card.name) == (report.kind, report.name)
            else card
            for card in cards
        ]
    context = IntegrationsContext(
        frame=await frame_of(request, services, user, here=PAGE),
        cards=cards,
        env_file=ENV_FILE,
        people=[(one.id, one.name) for one in await services.accounts.users()],
        roles=sorted(await services.integrations.all_roles()),
        report=report,
    )
    return respond(request, "integrations.html", context, block=block, status=status)
