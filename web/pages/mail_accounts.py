"""The accounts of my mail: connected by a password or a login at the provider, which folders are read, removed."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Form
from fastapi.responses import Response
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotAllowed, NotFound, ServiceDown, ToolFailed, UserError
from cortex.services.mail.accounts import (
    PROVIDERS,
    MailAccountRow,
    MailFolderRow,
    MailLogin,
    MailProvider,
    Security,
    Way,
)
from cortex.services.mail.logins import LoginBegun
from web.deps import Text
from web.render import MORE, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()
HOME = "/mail"
NAV = NavEntry(
    title="Mail accounts",
    href=HOME,
    icon="tray",
    order=42,
    under=MORE,
    about="Mailboxes that Cortex may search, read and lay drafts into.",
)
SECURITY: dict[str, Security] = {"tls": "tls", "starttls": "starttls", "none": "none"}
WAYS: dict[str, Way] = {"google": "google", "microsoft": "microsoft"}
LOGIN = HOME + "/login"
Ids = Annotated[list[str], Form()]
Refusal = UserError | Conflict | ToolFailed | NotAllowed | ServiceDown


class MailAccountsContext(Context, frozen=True, kw_only=True):
    """All that is connected, and the form to connect more."""

    accounts: Sequence[tuple[MailAccountRow, Sequence[MailFolderRow]]] = described("each with its folders")
    providers: Sequence[MailProvider] = described("what to know of the large providers")
    ways: Sequence[str] = described("the providers by which one can log in here")
    typed: dict[str, str] = described("what was typed and refused; no password", default_factory=dict)
    opened: str = described("the form that was refused: add, login, the id of an account, or empty", default="")
    begun: LoginBegun | None = described("the login that is under way", default=None)


@router.get(HOME)
async def show(visit: UserVisit) -> Response:
    """Return all of it."""
    return await visit.show("mail_accounts.html", await _context(visit))


@router.post(HOME)
async def add(visit: UserVisit) -> Response:
    """Connect an account, once its server has answered."""
    typed = await visit.fields()
    password = typed.pop("password", "")
    try:
        login = MailLogin(
            address=typed.get("address", ""),
            password=password,
            host=typed.get("host", "").strip(),
            port=_port(typed.get("port", ""), typed.get("security", "tls")),
            security=_security(typed.get("security", "tls")),
            username=typed.get("username", ""),
        )
        await visit.services.mail_accounts.add(visit.user, login)
    except (UserError, Conflict, ToolFailed, NotAllowed, ServiceDown) as refused:
        return await _refused(visit, "add", refused, typed)
    return visit.redirect(HOME, "Connected. Your mails are being read in.")


@router.post(LOGIN)
async def begin(visit: UserVisit, way: Text = "", address: Text = "") -> Response:
    """Begin a login at the provider."""
    if way not in WAYS:
        raise UserError("Choose one of the values of the list.")
    try:
        begun = await visit.services.mail_logins.begin(visit.user, WAYS[way], address)
    except (UserError, ToolFailed, ServiceDown) as refused:
        return await _refused(visit, "login", refused, {"address": address, "way": way})
    return await visit.show("mail_accounts.html", replace(await _context(visit), opened="login", begun=begun))


@router.post(LOGIN + "/finish")
async def finish(visit: UserVisit, way: Text = "", user_code: Text = "", pasted: Text = "") -> Response:
    """Bring the login to its end: with the address that was pasted, or once the code was entered there."""
    try:
        if not await visit.services.mail_accounts.finish_login(visit.user, pasted):
            raise UserError("Enter the code on the provider's page first; then press Connect again.")
    except (UserError, Conflict, ToolFailed, NotAllowed, ServiceDown) as refused:
        begun = LoginBegun(way=WAYS[way], url="", user_code=user_code) if way in WAYS else None
        return await _refused(visit, "login", refused, {"pasted": pasted}, begun)
    return visit.redirect(HOME, "Connected. Your mails are being read in.")


@router.post(HOME + "/{mailbox_id}/folders")
async def save_folders(visit: UserVisit, mailbox_id: str, folders: Ids = []) -> Response:  # noqa: B006 - FastAPI copies it
    """Say which folders are read."""
    row = await _account(visit, mailbox_id)
    await visit.services.mail_accounts.set_folders(visit.user, row.id, folders)
    return visit.redirect(HOME, "Saved.")


@router.post(HOME + "/{mailbox_id}/password")
async def renew(visit: UserVisit, mailbox_id: str, password: Text = "") -> Response:
    """Take another password, once the server takes it."""
    row = await _account(visit, mailbox_id)
    try:
        await visit.services.mail_accounts.renew(visit.user, row.id, password)
    except (UserError, Conflict, ToolFailed, NotAllowed, ServiceDown) as refused:
        return await _refused(visit, row.id, refused, {})
    return visit.redirect(HOME, "The new password works.")


@router.post(HOME + "/{mailbox_id}/sync")
async def sync(visit: UserVisit, mailbox_id: str) -> Response:
    """Have the server asked now."""
    row = await _account(visit, mailbox_id)
    await visit.services.mail_accounts.refresh(visit.user, row.id)
    return visit.redirect(HOME, "Asking the server. Load the page again in a moment.")


@router.get(HOME + "/{mailbox_id}/remove")
async def ask_remove(visit: UserVisit, mailbox_id: str) -> Response:
    """The question before an account goes."""
    row = await _account(visit, mailbox_id)
    return await visit.ask(
        title=f"Remove the mail account {row.address}?",
        text="Cortex forgets its password and its list of your mails. Nothing is deleted on the server.",
        words="Remove",
        back=HOME,
    )


@router.post(HOME + "/{mailbox_id}/remove")
async def remove(visit: UserVisit, mailbox_id: str) -> Response:
    """Forget it."""
    row = await _account(visit, mailbox_id)
    await visit.services.mail_accounts.remove(visit.user, mailbox_id)
    return visit.redirect(HOME, f"Removed: {row.address}. Nothing was deleted on the server.")


def _security(security: str) -> Security:
    if security not in SECURITY:
        raise UserError("Choose one of the values of the list.", field="security")
    return SECURITY[security]


def _port(port: str, security: str) -> int:
    """The port as it was typed, or the one that is usual."""
    number = port.strip() or ("993" if security == "tls" else "143")
    if not number.isascii() or not number.isdigit() or len(number) > 5:
        raise UserError("A port is a number from 1 to 65535; mostly 993.", field="port")
    return int(number)


async def _account(visit: Visit, mailbox_id: str) -> MailAccountRow:
    for row, _ in await visit.services.mail_accounts.list(visit.user):
        if row.id == mailbox_id:
            return row
    raise NotFound("There is no such mail account.")


async def _refused(
    visit: Visit, opened: str, refused: Refusal, typed: dict[str, str], begun: LoginBegun | None = None
) -> Response:
    """The page with what was typed, and why it was not taken."""
    said = refused if isinstance(refused, (UserError, Conflict)) else UserError(refused.message)
    context = replace(await _context(visit), typed=typed, opened=opened, begun=begun)
    return await visit.show("mail_accounts.html", context, refused=said, here=HOME)


async def _context(visit: Visit) -> MailAccountsContext:
    accounts = visit.services.mail_accounts
    return MailAccountsContext(
        accounts=await accounts.list(visit.user), providers=PROVIDERS, ways=sorted(accounts.ways())
    )
