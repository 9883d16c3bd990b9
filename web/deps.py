"""What handlers ask for by type: the house, who is logged in, and whether an admin confirmed the password lately."""

from typing import Annotated, cast

from fastapi import Depends, Request

from cortex.app import Cortex
from cortex.base.errors import NotAllowed
from cortex.base.log import USER_ID
from cortex.base.user import User
from cortex.services.accounts import LoginView
from web.security import login_token


class LoginNeeded(Exception):
    """Nobody is logged in: `web/errors.py` turns it into the way to the login page."""


class ConfirmNeeded(Exception):
    """An admin page wants the password again: 10 minutes have passed since it was last given."""


def house(request: Request) -> Cortex:
    """The wired house."""
    return cast(Cortex, request.app.state.cortex)  # starlette's state is untyped


House = Annotated[Cortex, Depends(house)]


async def login_or_none(request: Request, house: House) -> LoginView | None:
    """The login of the request's cookie, read once a request."""
    if not hasattr(request.state, "login"):
        token = login_token(request)
        request.state.login = await house.accounts.who(token) if token else None
    return cast(LoginView | None, request.state.login)


MaybeLogin = Annotated[LoginView | None, Depends(login_or_none)]


async def login(view: MaybeLogin) -> LoginView:
    """The login; LoginNeeded without one."""
    if view is None:
        raise LoginNeeded
    USER_ID.set(view.user.id)
    return view


CurrentLogin = Annotated[LoginView, Depends(login)]


async def current_user(view: CurrentLogin) -> User:
    """Who is asking."""
    return view.user


CurrentUser = Annotated[User, Depends(current_user)]


async def admin(user: CurrentUser) -> User:
    """Who is asking, when that is an admin; NotAllowed otherwise."""
    if not user.is_admin:
        raise NotAllowed("Only an admin can open this page.")
    return user


Admin = Annotated[User, Depends(admin)]


async def reauthed_admin(user: Admin, view: CurrentLogin) -> User:
    """An admin who gave the password within the last 10 minutes; ConfirmNeeded otherwise."""
    if not view.is_confirmed:
        raise ConfirmNeeded
    return user


ReauthedAdmin = Annotated[User, Depends(reauthed_admin)]
