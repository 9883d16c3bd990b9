"""My sign-in: the password, where I am logged in, the end of everything else, and of the account."""

from collections.abc import Collection, Sequence

from fastapi.responses import Response
from msgspec.structs import replace

from cortex.base.errors import CortexError, NotAllowed, Throttled, UserError
from cortex.services.accounts.accounts import LoginRow
from cortex.services.accounts.credentials import Credential
from web.deps import Number, Text, Texts
from web.render import DeletionContext, address, described
from web.routes import PageRouter
from web.sections import ROWS, SectionContext
from web.security import clear_login, login_token, set_login
from web.stretch import Stretch, cut
from web.visit import UserVisit, Visit

router = PageRouter()
HERE = "/account/sign-in"
ENDS = 300  # of one form, whole: what is ticked does not travel between pages; two fields each, of `bodies.FIELDS`


class SignInContext(SectionContext, frozen=True, kw_only=True):
    """The password and the logins."""

    logins: Stretch[LoginRow] = described("where the person is logged in, latest first")
    login_id: str = described("the login of this very browser")
    credentials: Sequence[Credential] = described("what lets somebody in as this person besides this login")
    unlisted: int = described("how many more of these there are")
    unticked: Collection[str] = described("keys of those that are to stay when the password changes", default=())


@router.get(HERE)
async def show(visit: UserVisit, logins: Number = 0) -> Response:
    """The password and the logins, these from `logins` on."""
    return await visit.show("account_sign_in.html", await _access(visit, logins), block="section")


@router.post("/account/password")
async def change_password(
    visit: UserVisit, old: Text = "", new: Text = "", listed: Texts = None, ends: Texts = None
) -> Response:
    """Another password; what lets somebody in as this person ends, but what was unticked."""
    keep = {*(listed or ())} - {*(ends or ())}  # what came to be behind the page ends too
    try:
        token = await visit.services.accounts.change_password(login_token(visit.request), old, new, keep=keep)
    except (UserError, NotAllowed, Throttled) as refused:
        field = "old" if isinstance(refused, NotAllowed) else "new" if isinstance(refused, UserError) else ""
        context = replace(await _access(visit), error=refused.message, error_field=field, unticked=keep)
        status = 422 if isinstance(refused, NotAllowed) else refused.status
        return await visit.show("account_sign_in.html", context, block="section", status=status)
    answer = visit.redirect(HERE, f"Password changed.{' What was ticked has ended.' if ends else ''}")
    set_login(visit.request, answer, token)
    return answer


@router.post("/account/sign-out")
async def sign_out(visit: UserVisit) -> Response:
    """End all that lets somebody in as me, but this login."""
    token = await visit.services.accounts.sign_out_everywhere(login_token(visit.request))
    answer = visit.redirect(f"{HERE}#logins", "Everything else was signed out and ended.")
    set_login(visit.request, answer, token)
    return answer


@router.post("/account/logins/{login_id}/end")
async def end_login(visit: UserVisit, login_id: str) -> Response:
    """End one of my logins."""
    await visit.services.accounts.revoke(visit.user, login_id)
    return visit.redirect("/login" if login_id == visit.login.login_id else f"{HERE}#logins", "Logged out.")


@router.get("/account/delete")
async def ask_delete(visit: UserVisit) -> Response:
    """Really, with all of it?"""
    return await _deletion(visit)


@router.post("/account/delete")
async def delete(visit: UserVisit, name: Text = "", password: Text = "") -> Response:
    """Delete my account with all that is mine."""
    try:
        await visit.services.accounts.confirm(login_token(visit.request), password)
        await visit.services.deletions.delete(visit.user, visit.user.id, name)
    except (UserError, NotAllowed, Throttled) as refused:
        return await _deletion(visit, refused)
    answer = visit.redirect("/login", "Your account and everything in it was deleted.")
    clear_login(visit.request, answer)
    return answer


async def _deletion(visit: Visit, refused: CortexError | None = None) -> Response:
    context = DeletionContext(
        name=visit.user.name,
        action="/account/delete",
        back="/account/data",
        needs_password=True,
    )
    return await visit.show("account_delete.html", context, refused=refused)


async def _access(visit: Visit, start: int = 0) -> SignInContext:
    others = [
        one
        for one in await visit.services.accounts.credentials(visit.user)
        if one.key != f"login:{visit.login.login_id}"
    ]
    others.sort(key=lambda one: one.kind == "login")  # they come last: many of one are likeliest, and soonest made anew
    logins = await visit.services.accounts.logins(visit.user)
    return SignInContext(
        section="sign-in",
        logins=cut(logins, start, lambda **at: address(HERE, **at), most=ROWS, by="logins", at="logins"),
        login_id=visit.login.login_id,
        credentials=others[:ENDS],
        unlisted=len(others[ENDS:]),
    )
