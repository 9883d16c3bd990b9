"""Admin: the people of this server. Every change asks for the password again and is in the audit log."""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal

from fastapi import Form
from fastapi.responses import Response
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.errors import CortexError, NotAllowed, UserError
from cortex.base.user import User
from cortex.services.accounts.people import AccountRow
from web.deps import Services, Text
from web.errors import not_found
from web.figures import counted
from web.render import ADMIN, Context, DeletionContext, NavEntry, described
from web.routes import PageRouter
from web.security import is_phone
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()


async def _state(services: Cortex, user: User) -> str:
    """Return how many accounts there are."""
    return counted(len(await services.accounts.all_accounts()), "account")


NAV = NavEntry(
    title="People",
    href="/admin/users",
    icon="people",
    order=62,
    under=ADMIN,
    about="Invite people, disable accounts, reset passwords.",
    state=_state,
)


class UsersContext(Context, frozen=True, kw_only=True):
    """The people."""

    people: Sequence[AccountRow] = described("every account, closed ones too")
    stopped: Collection[str] = described("the accounts whose work is stopped, by id")
    link: str = described("a fresh password link, shown this once, or empty", default="")
    is_here_only: bool = described("whether the link names this computer, as no public address is set", default=False)
    link_name: str = described("whom the link is for", default="")
    is_new: bool = described("whether the link is an invitation", default=False)
    is_phone: bool = described("whether a phone asks, which shares links by itself")
    newcomers: Mapping[str, str] = described("what whoever is new may use: model -> limit", default_factory=dict)
    draft: str = described("a name that was refused", default="")
    rank: str = described("the rank chosen with it", default="member")


@router.get("/admin/users")
async def show(visit: ReauthedAdminVisit) -> Response:
    """Return who there is."""
    return await visit.show("users.html", await _people(visit))


@router.post("/admin/users")
async def add(
    visit: ReauthedAdminVisit, name: Text = "", rank: Annotated[Literal["admin", "member"], Form()] = "member"
) -> Response:
    """A new account and the link that sets its password."""
    try:
        invited = await visit.services.accounts.add_user(name, rank, by=visit.user.id)
    except UserError as refused:
        return await visit.show("users.html", replace(await _people(visit), draft=name, rank=rank), refused=refused)
    return await _linked(visit, invited.token, invited.user.name, is_new=True)


@router.post("/admin/users/{user_id}/reset")
async def reset(visit: ReauthedAdminVisit, user_id: str) -> Response:
    """A link for another password."""
    account = await _account(visit.services, user_id)
    token = await visit.services.accounts.reset(account.name, by=visit.user.id)
    return await _linked(visit, token, account.name)


@router.get("/admin/users/{user_id}/disable")
async def ask_disable(visit: ReauthedAdminVisit, user_id: str) -> Response:
    """Really?"""
    account = await _account(visit.services, user_id)
    return await visit.ask(
        title=f"Switch off {account.name}?",
        text="Their logins, tokens, devices, web addresses of jobs and permissions end, and their running work stops. "
        "Their data stays. Switched on again, they log in with their password; what ended stays ended.",
        words="Switch off",
        back="/admin/users",
    )


@router.post("/admin/users/{user_id}/disable")
async def disable(visit: ReauthedAdminVisit, user_id: str) -> Response:
    """End their logins and let them in no more."""
    account = await _account(visit.services, user_id)
    await visit.services.accounts.set_active(account.name, False, by=visit.user.id)
    return visit.redirect("/admin/users", f"{account.name} is switched off.")


@router.get("/admin/users/{user_id}/delete")
async def ask_delete(visit: ReauthedAdminVisit, user_id: str) -> Response:
    """Really, with all of it?"""
    account = await _account(visit.services, user_id)
    return await _deletion(visit, account)


@router.post("/admin/users/{user_id}/delete")
async def delete(visit: ReauthedAdminVisit, user_id: str, name: Text = "") -> Response:
    """Delete the account with all that is its person's."""
    account = await _account(visit.services, user_id)
    try:
        gone = await visit.services.deletions.delete(visit.user, user_id, name)
    except (UserError, NotAllowed) as refused:
        return await _deletion(visit, account, refused)
    return visit.redirect("/admin/users", f"{gone} and everything in the account was deleted.")


@router.post("/admin/users/{user_id}/enable")
async def enable(visit: ReauthedAdminVisit, user_id: str) -> Response:
    """Let them in again."""
    account = await _account(visit.services, user_id)
    await visit.services.accounts.set_active(account.name, True, by=visit.user.id)
    return visit.redirect("/admin/users", f"{account.name} is switched on.")


async def _deletion(visit: Visit, account: AccountRow, refused: CortexError | None = None) -> Response:
    context = DeletionContext(
        name=account.name,
        action=f"/admin/users/{account.id}/delete",
        back="/admin/users",
    )
    return await visit.show("account_delete.html", context, refused=refused)


async def _account(services: Services, user_id: str) -> AccountRow:
    found = next((one for one in await services.accounts.all_accounts() if one.id == user_id), None)
    if found is None:
        raise not_found()
    return found


async def _linked(visit: Visit, token: str, name: str, *, is_new: bool = False) -> Response:
    """The page with a fresh link that sets this person's password."""
    place = visit.address_for_others
    link = f"{place or visit.origin}/welcome#{token}"
    context = replace(await _people(visit), link=link, is_here_only=not place, link_name=name, is_new=is_new)
    return await visit.show("users.html", context)


async def _people(visit: Visit) -> UsersContext:
    return UsersContext(
        is_phone=is_phone(visit.request),
        people=await visit.services.accounts.all_accounts(),
        stopped=frozenset(halt.scope for halt in await visit.services.stop_all.all(visit.user)),
        newcomers=await visit.services.model_sharing.for_newcomers(),
    )
