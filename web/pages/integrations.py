"""Admin: the outside systems. A row each that opens: how it stands, its form, a test, who may use it, off, away."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from fastapi.responses import RedirectResponse, Response
from msgspec import Struct, field

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.ports.integrations import PAGE
from cortex.services.integrations.forms import FormErrors
from cortex.services.integrations.integrations import IntegrationCard
from web.bodies import TEXT_BYTES, takes
from web.deps import Text, Texts
from web.render import ADMIN, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()


async def _state(services: Cortex, user: User) -> str:
    """Return how many are set up, or that one fails."""
    cards = [card for card in await services.integrations.cards() if card.is_set_up]
    if any(card.is_failing for card in cards):
        return "Needs attention"
    return f"{len(cards)} set up" if cards else "None yet"


NAV = NavEntry(
    title="Integrations",
    href=PAGE,
    icon="link",
    order=64,
    under=ADMIN,
    about="Connect e-mail, web search, Home Assistant, Nextcloud Talk, databases and more.",
    state=_state,
)
VALUE_CHARACTERS = 100_000  # the forms have limits of their own, far below


class CardReport(Struct, frozen=True, kw_only=True):
    """The outcome of an act on one card: news of a test, or why it was refused.

    `is_found`: a search of the network has found one. `typed`: what stays in the form, None for what is stored;
    `errors`: field -> what is wrong with it.
    """

    kind: str
    name: str
    text: str
    is_ok: bool
    is_found: bool = False
    typed: Mapping[str, Any] | None = None
    errors: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: str, name: str, typed: Mapping[str, Any], refused: UserError) -> "CardReport":
        """The report of a refused form."""
        errors = refused.fields if isinstance(refused, FormErrors) else {}
        return cls(kind=kind, name=name, text=refused.message, is_ok=False, typed=typed, errors=errors)


class IntegrationsContext(Context, frozen=True, kw_only=True):
    """The cards."""

    cards: Sequence[IntegrationCard] = described("the systems, connected or not, in the order of the page")
    people: Sequence[tuple[str, str]] = described("everybody who may be given one: id, name")
    roles: Sequence[str] = described("the roles that it may be given to")
    report: CardReport | None = described("what the last act on one of them came to", default=None)


@router.get(PAGE)
async def show(visit: ReauthedAdminVisit) -> Response:
    """All of them."""
    return await _page(visit)


@router.get(PAGE + "/{kind}")
async def at_card(visit: ReauthedAdminVisit, kind: str) -> Response:
    """The address that a refused save leaves in the browser: its card."""
    return RedirectResponse(f"{PAGE}#{quote(kind)}", 303)


@router.post(PAGE + "/{kind}")
@takes(TEXT_BYTES)
async def save(visit: ReauthedAdminVisit, kind: str, name: Text = "", is_new: Text = "") -> Response:
    """Keep what the form says; the next message can use it."""
    typed = await _typed(visit)
    try:
        await visit.services.integrations.save(visit.user, kind, name, typed, is_new=bool(is_new))
    except UserError as refused:
        return await _page(visit, CardReport.of(kind, "" if is_new else name, typed, refused))
    return visit.redirect(f"{PAGE}#{kind}", f"Saved: {visit.services.integrations.kind(kind).title}")


@router.post(PAGE + "/{kind}/test")
@takes(TEXT_BYTES)
async def try_connection(visit: ReauthedAdminVisit, kind: str, name: Text = "", is_new: Text = "") -> Response:
    """Reach it with what the form says, saved or not."""
    typed, of_card = await _typed(visit), "" if is_new else name
    await visit.services.end_view()  # it may take its time to answer
    try:
        text = await visit.services.integrations.test(visit.user, kind, name, typed)
        report = CardReport(kind=kind, name=of_card, text=text, is_ok=True, typed=typed)
    except UserError as refused:
        report = CardReport.of(kind, of_card, typed, refused)
    return await _page(visit, report, block="report")


@router.post(PAGE + "/{kind}/search")
@takes(TEXT_BYTES)
async def search(visit: ReauthedAdminVisit, kind: str, name: Text = "", is_new: Text = "") -> Response:
    """Look for it in the network; what is typed stays."""
    typed, name = await _typed(visit), "" if is_new else name
    await visit.services.end_view()  # it takes seconds
    try:
        text = await visit.services.integrations.search(visit.user, kind)
        report = CardReport(kind=kind, name=name, text=text, is_ok=True, is_found=True, typed=typed)
    except UserError as refused:
        report = CardReport.of(kind, name, typed, refused)
    return await _page(visit, report, block="report")


@router.post(PAGE + "/{kind}/switch")
async def switch(visit: ReauthedAdminVisit, kind: str, name: Text = "", is_on: Text = "") -> Response:
    """Let tools use it, or keep them from it."""
    await visit.services.integrations.switch(visit.user, kind, name, is_on=bool(is_on))
    title = visit.services.integrations.kind(kind).title
    return visit.redirect(f"{PAGE}#{kind}", f"{title} switched {'on' if is_on else 'off'}.")


@router.post(PAGE + "/{kind}/share")
async def share(
    visit: ReauthedAdminVisit, kind: str, name: Text = "", roles: Texts = None, people: Texts = None
) -> Response:
    """Say who may use it."""
    try:
        await visit.services.integrations.share(visit.user, kind, name, roles or (), people or ())
    except UserError as refused:
        report = CardReport(kind=kind, name=name, text=refused.message, is_ok=False)
        return await _page(visit, report)
    return visit.redirect(f"{PAGE}#{kind}", "Saved.")


@router.get(PAGE + "/{kind}/remove")
async def ask_remove(visit: ReauthedAdminVisit, kind: str, name: str = "") -> Response:
    """Really?"""
    card = await visit.services.integrations.card(kind, name)
    return await visit.ask(
        title=f"Remove {card.title}?",
        text="Its settings and keys are deleted. Chats stay as they are.",
        action=f"{PAGE}/{quote(kind)}/remove?name={quote(name)}",
        words="Remove",
        back=f"{PAGE}#{kind}",
    )


@router.post(PAGE + "/{kind}/remove")
async def remove(visit: ReauthedAdminVisit, kind: str, name: str = "") -> Response:
    """Forget it and its keys."""
    card = await visit.services.integrations.card(kind, name)
    await visit.services.integrations.remove(visit.user, kind, name)
    return visit.redirect(f"{PAGE}#{kind}", f"Removed: {card.title}")


async def _typed(visit: Visit) -> dict[str, str]:
    """The fields as they were typed, whole: which they are is the kind's matter. UserError for a huge one."""
    typed = await visit.fields()
    if any(len(value) > VALUE_CHARACTERS for value in typed.values()):
        raise UserError(f"At most {VALUE_CHARACTERS:,} characters per field. Nothing was changed.")
    return typed


async def _page(visit: Visit, report: CardReport | None = None, *, block: str = "content") -> Response:
    """The cards; the one that the report is about with what was typed."""
    cards = await visit.services.integrations.cards()
    if report and report.typed is not None:
        cards = [
            visit.services.integrations.typed_card(card, report.typed, report.errors)
            if (card.kind.name, card.name) == (report.kind, report.name)
            else card
            for card in cards
        ]
    context = IntegrationsContext(
        cards=cards,
        people=[(one.id, one.name) for one in await visit.services.accounts.users()],
        roles=sorted(await visit.services.integrations.all_roles()),
        report=report,
    )
    status = 422 if report and not report.is_ok else 200
    return await visit.show("integrations.html", context, block=block, status=status)
