"""Admin: the people of this server. Every change asks for the password again and is in the audit log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from cortex.app import Cortex
from cortex.base.errors import NotAllowed, UserError
from cortex.base.user import User
from cortex.services.accounts.people import AccountRow
from web.deps import ReauthedAdmin, Services, Text
from web.errors import not_found
from web.figures import counted
from web.frame import frame_of
from web.render import ADMIN, ConfirmContext, Context, DeletionContext, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)


async def _state(services: Cortex, user: User) -> str:
    """Return how many accounts there are."""
    return counted(len(await services.accounts.all_accounts()), "account")


NAV = NavEntry(
    title="People",
    href="/admin/users",
    icon="user",
    order=62,
    under=ADMIN,
    about="Invite people, disable accounts, reset passwords.",
    state=_state,
)

HERE_ONLY = ("localhost", "127.0.0.1", "::1")  # hosts by which every computer names itself


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersContext(Context):
    """The people."""

    people: Sequence[AccountRow] = described("every account, closed ones too")
    stopped: Collection[str] = described("the accounts whose work is stopped, by id")
    link: str = described("a fresh password link, shown this once, or empty", default="")
    is_here_only: bool = described("whether the link names this computer, as no public address is set", default=False)
    link_name: str = described("whom the link is for", default="")
    is_new: bool = described("whether the link is an invitation", default=False)
    newcomers: Mapping[str, str] = described("what whoever is new may use: model -> limit", default_factory=dict)
    draft: str = described("a name that was refused", default="")
    rank: str = described("the rank chosen with it", default="member")
    error: str = described("why the last change was refused", default="")
    error_field: str = described("the field the error is about, or empty", default="")


@router.get("/admin/users")
async def show(request: Request, services: Services, user: ReauthedAdmin) -> Response:
    """Return who there is."""
    return await _page(request, services, user)


@router.post("/admin/users")
async def add(
    request: Request,
    services: Services,
    user: ReauthedAdmin,
    name: Text = "",
    rank: Annotated[Literal["admin", "member"], Form()] = "member",
) -> Response:
    """A new account and the link that sets its password."""
    try:
        invited = await services.accounts.add_user(name, rank, by=user.id)
    except UserError as refused:
        return await _page(
            request, services, user, draft=name, rank=rank, error=refused.message, error_field=refused.field, status=422
        )
    return await _page(
        request,
        services,
        user,
        link=_link(request, services, invited.token),
        link_name=invited.user.name,
        is_new=True,
    )


@router.post("/admin/users/{user_id}/reset")
async def reset(request: Request, services: Services, user: ReauthedAdmin, user_id: str) -> Response:
    """A link for another password."""
    account = await _account(services, user_id)
    token = await services.accounts.reset(account.name, by=user.id)
    return await _page(request, services, user, link=_link(request, services, token), link_name=account.name)


@router.get("/admin/users/{user_id}/disable")
async def ask_disable(request: Request, services: Services, user: ReauthedAdmin, user_id: str) -> Response:
    """Really?"""
    account = await _account(services, user_id)
    context = ConfirmContext(
        frame=await frame_of(request, services, user, here="/admin/users"),
        title=f"Switch off {account.name}?",
        text="Their logins, tokens, devices, web addresses of jobs and permissions end, and their running work stops. "
        "Their data stays. Switched on again, they log in with their password; what ended stays ended.",
        action=f"/admin/users/{user_id}/disable",
        words="Switch off",
        back="/admin/users",
    )
    return respond(request, "confirm.html", context)


@router.post("/admin/users/{user_id}/disable")
async def disable(request: Request, services: Services, user: ReauthedAdmin, user_id: str) -> Response:
    """End their logins and let them in no more."""
    account = await _account(services, user_id)
    await services.accounts.set_active(account.name, False, by=user.id)
    return redirect(request, "/admin/users", f"{account.name} is switched off.")


@router.get("/admin/users/{user_id}/delete")
async def ask_delete(request: Request, services: Services, user: ReauthedAdmin, user_id: str) -> Response:
    """Really, with all of it?"""
    account = await _account(services, user_id)
    return await _deletion(request, services, user, account)


@router.post("/admin/users/{user_id}/delete")
async def delete(request: Request, services: Services, user: ReauthedAdmin, user_id: str, name: Text = "") -> Response:
    """Delete the account with all that is its person's."""
    account = await _account(services, user_id)
    try:
        gone = await services.deletions.delete(user, user_id, name)
    except (UserError, NotAllowed) as refused:
        return await _deletion(request, services, user, account, refused.message, refused.status)
    return redirect(request, "/admin/users", f"{gone} and everything in the account was deleted.")


@router.post("/admin/users/{user_id}/enable")
async def enable(request: Request, services: Services, user: ReauthedAdmin, user_id: str) -> Response:
    """Let them in again."""
    account = await _account(services, user_id)
    await services.accounts.set_active(account.name, True, by=user.id)
    return redirect(request, "/admin/users", f"{account.name} is switched on.")


async def _deletion(
    request: Request, services: Services, user: User, account: AccountRow, error: str = "", status: int = 200
) -> Response:
    context = DeletionContext(
        frame=await frame_of(request, services, user, here="/admin/users"),
        name=account.name,
        action=f"/admin/users/{account.id}/delete",
        back="/admin/users",
        error=error,
    )
    return respond(request, "account_delete.html", context, status=status)


async def _account(services: Services, user_id: str) -> AccountRow:
    found = next((one for one in await services.accounts.all_accounts() if one.id == user_id), None)
    if found is None:
        raise not_found()
    return found


def _link(request: Request, services: Services, token: str) -> str:
    place = services.settings.public_url or str(request.base_url).rstrip("/")
    return f"{place}/welcome#{token}"


async def _page(
    request: Request,
    services: Services,
    user: ReauthedAdmin,
    *,
    link: str = "",
    link_name: str = "",
    is_new: bool = False,
    draft: str = "",
    rank: str = "member",
    error: str = "",
    error_field: str = "",
    status: int = 200,
) -> Response:
    context = UsersContext(
        frame=await frame_of(request, services, user, here="/admin/users"),
        people=await services.accounts.all_accounts(),
        stopped=frozenset(halt.scope for halt in await services.stop_all.all(user)),
        link=link,
        is_here_only=urlsplit(link).hostname in HERE_ONLY,
        link_name=link_name,
        is_new=is_new,
        newcomers=await services.model_sharing.for_newcomers(),
        draft=draft,
        rank=rank,
        error=error,
        error_field=error_field,
    )
    return respond(request, "users.html", context, status=status)
