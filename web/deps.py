"""What handlers ask for by type: the server and the login. A visit of somebody who is logged in: `web/visit.py`.

Each takes the request alone and calls the one below it: FastAPI analyses a chain of dependencies anew for each of the
routes, which was a twentieth of the start.
"""

from typing import Annotated, cast

from fastapi import Depends, Form, Request
from pydantic import Field

from cortex.app import Cortex
from cortex.base.log import USER_ID
from cortex.services.accounts.accounts import LoginView
from web.connections import prove
from web.security import login_token

NUMBER_MOST = 2**31 - 1  # what each database keeps in every column of whole numbers; pages may still multiply it

Number = Annotated[int, Field(ge=-NUMBER_MOST, le=NUMBER_MOST)]
FormNumber = Annotated[Number, Form()]
Text = Annotated[str, Form()]
Texts = Annotated[list[str] | None, Form()]


class LoginNeeded(Exception):
    """Nobody is logged in: `web/errors.py` turns it into the way to the login page."""


class ConfirmNeeded(Exception):
    """A page wants the password again: 10 minutes have passed since it was last given."""


def services(request: Request) -> Cortex:
    """The wired services."""
    return cast(Cortex, request.app.state.cortex)  # starlette's state is untyped


Services = Annotated[Cortex, Depends(services)]


async def login_or_none(request: Request) -> LoginView | None:
    """The login of the request's cookie, read once a request."""
    if not hasattr(request.state, "login"):
        token = login_token(request)
        request.state.login = await services(request).accounts.who(token) if token else None
        if request.state.login:
            prove(request)
    return cast(LoginView | None, request.state.login)


MaybeLogin = Annotated[LoginView | None, Depends(login_or_none)]


async def login(request: Request) -> LoginView:
    """The login; LoginNeeded without one."""
    view = await login_or_none(request)
    if view is None:
        raise LoginNeeded
    USER_ID.set(view.user.id)
    return view
