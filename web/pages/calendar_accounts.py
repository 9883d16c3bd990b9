"""The accounts of my calendars and contacts: what Cortex may do with each, who sees it; and my own address."""

from collections.abc import Mapping, Sequence
from typing import Literal

from fastapi.responses import Response
from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotAllowed, NotFound, Throttled, ToolFailed, UserError
from cortex.services.calendars.accounts import CalendarAccountRow, CalendarRow
from cortex.services.contacts.books import AddressBookRow
from web.deps import Services, Text
from web.render import Context, described
from web.routes import PageRouter
from web.visit import UserVisit, Visit
from web.week import HOME

router = PageRouter()
HERE = HOME + "/accounts"
FEED = HOME + "/feed"
Access = Literal["off", "busy", "read", "write"]
ACCESS: dict[str, Access] = {"off": "off", "busy": "busy", "read": "read", "write": "write"}
SHARED: dict[str, Literal["", "busy", "read"]] = {"": "", "busy": "busy", "read": "read"}


class ProviderHint(Struct, frozen=True):
    """A provider: its name, and what to type there."""

    name: str
    address: str
    words: str


HINTS = (
    ProviderHint(
        "Nextcloud",
        "https://cloud.example.org",
        "The address of your Nextcloud. Make an app password there: Settings, Security, Devices & sessions.",
    ),
    ProviderHint(
        "iCloud",
        "https://caldav.icloud.com",
        "Your Apple Account's e-mail address as the name, and an app-specific password from account.apple.com, "
        "Sign-In and Security.",
    ),
    ProviderHint(
        "Fastmail",
        "https://caldav.fastmail.com",
        "Your whole Fastmail address as the name, and an app password: Settings, Privacy & Security, Manage app "
        "passwords.",
    ),
    ProviderHint("mailbox.org", "https://dav.mailbox.org", "Your mailbox.org address as the name, and its password."),
    ProviderHint(
        "Google",
        "",
        "Google takes no password here. Use an address, below: in Google Calendar on a computer, Settings, your "
        "calendar, Integrate calendar, Secret address in iCal format. Cortex then reads it, and writes nothing.",
    ),
)


class CalendarAccountsContext(Context, frozen=True, kw_only=True):
    """All that is connected, and the ways to connect more."""

    accounts: Sequence[tuple[CalendarAccountRow, Sequence[CalendarRow]]] = described("each with its calendars")
    books: Mapping[str, Sequence[AddressBookRow]] = described("the address books of each account, by its id")
    hints: Sequence[ProviderHint] = described("what to type for known providers")
    feed: str = described("the address of my own, whole; empty while there is none")
    writable: Sequence[tuple[str, str]] = described("calendars that new appointments may go into: id, name")
    usual: str = described("the id of the one into which they go")
    typed: dict[str, str] = described("what was typed and refused; no password", default_factory=dict)
    opened: str = described("the form that was refused: server, address or empty", default="")


@router.get(HERE)
async def show(visit: UserVisit) -> Response:
    """Return all of it."""
    return await visit.show("calendar_accounts.html", await _context(visit))


@router.post(HERE + "/server")
async def add_server(visit: UserVisit, address: Text = "", username: Text = "", password: Text = "") -> Response:
    """Connect a server, once it has answered."""
    try:
        await visit.services.calendar_accounts.add_server(visit.user, address, username, password)
    except (UserError, Conflict, ToolFailed, NotAllowed) as refused:
        return await _refused(visit, "server", refused, address=address, username=username)
    return visit.redirect(HERE, "Connected. What is there is being read.")


@router.post(HERE + "/address")
async def add_address(visit: UserVisit, ics: Text = "", title: Text = "") -> Response:
    """Connect an address that is only read."""
    try:
        await visit.services.calendar_accounts.add_address(visit.user, ics, title)
    except (UserError, Conflict, ToolFailed, NotAllowed) as refused:
        field = "ics" if getattr(refused, "field", "") == "address" else ""
        said = UserError(refused.message, field=field) if field else refused
        return await _refused(visit, "address", said, ics=ics, title=title)
    return visit.redirect(HERE, "Connected. Its appointments are being read.")


@router.post(HOME + "/calendars/{calendar_id}")
async def save(visit: UserVisit, calendar_id: str, access: Text = "", shared_as: Text = "") -> Response:
    """Say what Cortex may do with a calendar, and what others here see of it."""
    accounts = await visit.services.calendar_accounts.list(visit.user)
    if not any(one.id == calendar_id for _, calendars in accounts for one in calendars):
        raise NotFound("There is no such calendar.")
    if access not in ACCESS or shared_as not in SHARED:
        raise UserError("Choose one of the values of the list.")
    await visit.services.calendar_accounts.set_access(visit.user, calendar_id, ACCESS[access], SHARED[shared_as])
    return visit.redirect(HERE, "Saved.")


@router.post(HERE + "/usual")
async def set_usual(visit: UserVisit, usual: Text = "") -> Response:
    """Say into which calendar new appointments go."""
    await visit.services.calendar_accounts.set_usual(visit.user, usual)
    return visit.redirect(HERE, "Saved.")


@router.post(HERE + "/{account_id}/sync")
async def sync(visit: UserVisit, account_id: str) -> Response:
    """Have the server asked now."""
    row = await _account(visit, account_id)
    await visit.services.calendar_accounts.refresh(visit.user, row.id)
    return visit.redirect(HERE, "Asking the server. Load the page again in a moment.")


@router.get(HERE + "/{account_id}/remove")
async def ask_remove(visit: UserVisit, account_id: str) -> Response:
    """The question before an account goes."""
    row = await _account(visit, account_id)
    return await visit.ask(
        title=f"Remove the account {row.title}?",
        text="Cortex forgets its password and its copy of appointments and contacts. Nothing is deleted on the server.",
        words="Remove",
        back=HERE,
    )


@router.post(HERE + "/{account_id}/remove")
async def remove(visit: UserVisit, account_id: str) -> Response:
    """Forget it."""
    row = await _account(visit, account_id)
    await visit.services.calendar_accounts.remove(visit.user, account_id)
    return visit.redirect(HERE, f"Removed: {row.title}. Nothing was deleted on the server.")


@router.post(FEED)
async def make_feed(visit: UserVisit) -> Response:
    """Make the address of my own, or another in its place."""
    await visit.services.calendar_feed.make(visit.user)
    return visit.redirect(f"{HERE}#own", "New address. An old one works no more.")


@router.get(FEED + "/remove")
async def ask_remove_feed(visit: UserVisit) -> Response:
    """The question before it goes."""
    return await visit.ask(
        title="Remove the address of your reminders?",
        text="Programs that read it see nothing new any more. A new address will be different.",
        words="Remove",
        back=HERE,
    )


@router.post(FEED + "/remove")
async def remove_feed(visit: UserVisit) -> Response:
    """Take it away."""
    await visit.services.calendar_feed.close(visit.user)
    return visit.redirect(HERE, "The address is removed.")


@router.get(FEED + "/{person}/{secret}.ics")
async def read(services: Services, person: str, secret: str) -> Response:
    """Return reminders, jobs and due tasks for whoever knows the secret address; it is not to be found elsewhere."""
    headers = {"X-Robots-Tag": "noindex", "Cache-Control": "private, no-store"}
    try:
        text = await services.calendar_feed.read(person, secret)
    except NotFound as error:
        return Response(error.message, 404, headers, media_type="text/plain")
    except Throttled as error:
        return Response(error.message, 429, {**headers, "Retry-After": str(round(error.wait_s))})
    return Response(text, 200, headers, media_type="text/calendar; charset=utf-8")


async def _account(visit: Visit, account_id: str) -> CalendarAccountRow:
    for row, _ in await visit.services.calendar_accounts.list(visit.user):
        if row.id == account_id:
            return row
    raise NotFound("There is no such calendar account.")


async def _refused(
    visit: Visit, opened: str, refused: UserError | Conflict | ToolFailed | NotAllowed, **typed: str
) -> Response:
    """The page with what was typed, and why it was not taken."""
    said = refused if isinstance(refused, (UserError, Conflict)) else UserError(refused.message)
    context = replace(await _context(visit), typed=typed, opened=opened)
    return await visit.show("calendar_accounts.html", context, refused=said, here=HERE)


async def _context(visit: Visit) -> CalendarAccountsContext:
    path = await visit.services.calendar_feed.path(visit.user)
    own = [one for one in await visit.services.agenda.calendars(visit.user) if one.access == "write" and not one.owner]
    root = visit.services.settings.public_url or visit.address_for_others or visit.origin
    accounts = await visit.services.calendar_accounts.list(visit.user)
    return CalendarAccountsContext(
        accounts=accounts,
        books={row.id: await visit.services.contact_books.of_account(visit.user, row.id) for row, _ in accounts},
        hints=HINTS,
        writable=[(one.id, f"{one.name}, {one.account}") for one in own],
        usual=own[0].id if own else "",
        feed=f"{root.rstrip('/')}{FEED}/{path}" if path else "",
    )
