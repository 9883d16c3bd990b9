"""A request of somebody who is logged in: who asks, and how they are answered.

A page handler takes a `Visit` by the name that says who may come: `UserVisit`, `AdminVisit`, and `ReauthedVisit` and
`ReauthedAdminVisit` for those who gave their password within the last 10 minutes.
"""

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from msgspec import Struct
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.errors import CortexError
from cortex.base.user import User
from cortex.services.accounts.accounts import LoginView
from web import toast
from web.deps import ConfirmNeeded, login, services
from web.frame import frame_of
from web.render import ConfirmContext, Context, Renderer, respond

ON_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")  # hosts by which every computer names itself


class Visit(Struct, frozen=True, kw_only=True):
    """One request of a person, and the ways to answer it."""

    request: Request
    login: LoginView

    @property
    def services(self) -> Cortex:
        """The wired services."""
        return services(self.request)

    @property
    def user(self) -> User:
        """The person."""
        return self.login.user

    @property
    def pages(self) -> Renderer:
        """The templates."""
        pages: Renderer = self.request.app.state.pages
        return pages

    @property
    def origin(self) -> str:
        """The address that this request came to, without a path."""
        return str(self.request.base_url).rstrip("/")

    @property
    def port(self) -> int:
        """The port that is listened on: the set one, or the one that the system chose."""
        return self.services.settings.port or (self.request.scope.get("server") or ("", 0))[1] or 0

    @property
    def address_for_others(self) -> str:
        """The address to hand on: the one in force, else this request's where others can open that; "" for none."""
        opening = self.services.opening
        is_here = self.request.url.hostname in ON_THIS_MACHINE
        return opening.address(opening.way, self.port) or ("" if is_here else self.origin)

    async def fields(self) -> dict[str, str]:
        """The fields of the form as text; of several by one name the last."""
        return {name: str(value) for name, value in (await self.request.form()).items()}

    async def show(
        self,
        template: str,
        context: Context,
        *,
        here: str | None = None,
        conversation_id: str = "",
        block: str = "content",
        status: int = 200,
        refused: CortexError | None = None,
    ) -> HTMLResponse:
        """The page, or `block` of it when htmx asks for a part. A context without a frame gets the person's.

        here: the address of the page that is open, "" for none, where that is not told by the request's own.
        refused: why what was typed was not taken: its words, its field and its status are the answer's.
        """
        filled: dict[str, Any] = {}  # fields of Context
        if context.frame.user is None:
            cid = conversation_id or self.request.path_params.get("cid", "")
            place = self.request.scope["path"] if here is None else here
            filled["frame"] = await frame_of(self.request, self.services, self.user, here=place, conversation_id=cid)
        if refused:
            field = getattr(refused, "field", "") or context.error_field
            filled |= {"error": refused.message, "error_field": field}
            status = refused.status
        return respond(self.request, template, replace(context, **filled), block=block, status=status)

    async def ask(
        self, *, title: str, text: str, words: str, back: str, action: str = "", here: str | None = None
    ) -> HTMLResponse:
        """The page that asks before something is done. `words`: its button; `back`: where *Keep it* leads.

        action: where the form posts, where that is another address than this request's.
        """
        action = action or quote(self.request.scope["path"])
        question = ConfirmContext(title=title, text=text, words=words, action=action, back=back)
        return await self.show("confirm.html", question, here=here)

    def redirect(self, place: str, text: str = "", *, undo_href: str = "") -> RedirectResponse:
        """Go on to `place` and say `text` there, with the way to undo it."""
        return toast.redirect(self.request, place, text, undo_href=undo_href)


async def of_user(request: Request) -> Visit:
    """The visit of whoever is logged in; LoginNeeded without a login."""
    return Visit(request=request, login=await login(request))


async def of_admin(request: Request) -> Visit:
    """The visit of an admin; NotAllowed for members."""
    visit = await of_user(request)
    visit.user.must_be_admin("open this page")
    return visit


async def of_reauthed_user(request: Request) -> Visit:
    """The visit of a person who gave the password within the last 10 minutes; ConfirmNeeded otherwise."""
    visit = await of_user(request)
    if not visit.login.is_confirmed:
        raise ConfirmNeeded
    return visit


async def of_reauthed_admin(request: Request) -> Visit:
    """The visit of an admin who gave the password within the last 10 minutes; ConfirmNeeded otherwise."""
    await of_admin(request)
    return await of_reauthed_user(request)


UserVisit = Annotated[Visit, Depends(of_user)]
AdminVisit = Annotated[Visit, Depends(of_admin)]
ReauthedVisit = Annotated[Visit, Depends(of_reauthed_user)]
ReauthedAdminVisit = Annotated[Visit, Depends(of_reauthed_admin)]

GUARDS = (of_user, of_admin, of_reauthed_user, of_reauthed_admin)  # what an endpoint can ask of whoever sends
