"""What handlers ask for by type: the server, who is logged in, and whether an admin confirmed the password lately.

Each takes the request alone and calls the one below it: FastAPI analyses a chain of dependencies anew for each of the
routes, which was a twentieth of the start.
"""

from typing import Annotated, cast

from fastapi import Depends, Request

from cortex.app import Cortex
from cortex.base.errors import NotAllowed
from cortex.base.log import USER_ID
from cortex.base.user import User
from cortex.services.accounts.accounts import LoginView
from cortex.services.roles.settings import RoleDefaults
from cortex.services.tools.listing import ToolListing
from cortex.services.tools.skills import SkillsService
from cortex.services.workshop.call_trials import CallTrials
from cortex.services.workshop.learning import LearningService
from cortex.services.workshop.refits import RefitsService
from cortex.services.workshop.role_editing import RoleEditing
from cortex.services.workshop.tool_effects import ToolEffects
from cortex.services.workshop.tool_trials import ToolTrials
from web.security import login_token


class LoginNeeded(Exception):
    """Nobody is logged in: `web/errors.py` turns it into the way to the login page."""


class ConfirmNeeded(Exception):
    """An admin page wants the password again: 10 minutes have passed since it was last given."""


def services(request: Request) -> Cortex:
    """The wired services."""
    return cast(Cortex, request.app.state.cortex)  # starlette's state is untyped


Services = Annotated[Cortex, Depends(services)]


def role_defaults(services: Services) -> RoleDefaults:
    """What a person may set for a role."""
    return RoleDefaults(
        roles=services.roles,
        models=services.models,
        registry=services.runtime.registry,
        setting_rounds=services.settings.max_rounds,
    )


Defaults = Annotated[RoleDefaults, Depends(role_defaults)]


def role_editing(services: Services, defaults: Defaults) -> RoleEditing:
    """Whole roles, for the admin's page."""
    inside = services.runtime
    return RoleEditing(
        db=inside.db, roles=services.roles, defaults=defaults, tools=services.tools, registry=inside.registry
    )


RoleEdits = Annotated[RoleEditing, Depends(role_editing)]


def skills_service(services: Services) -> SkillsService:
    """A person's how-tos."""
    return SkillsService(services.runtime.db, services.tools)


Skills = Annotated[SkillsService, Depends(skills_service)]


def tool_listing(services: Services) -> ToolListing:
    """What stands about tools."""
    return ToolListing(runtime=services.runtime, tools=services.tools, settings=services.tool_settings)


Listing = Annotated[ToolListing, Depends(tool_listing)]


def tool_trials(services: Services) -> ToolTrials:
    """Messages tried out."""
    return ToolTrials(
        runtime=services.runtime,
        tools=services.tools,
        roles=services.roles,
        models=services.models,
        profiles=services.planning.contexts.profiles,
    )


Trials = Annotated[ToolTrials, Depends(tool_trials)]


def tool_effects(services: Services) -> ToolEffects:
    """What other words would change."""
    return ToolEffects(trials=tool_trials(services))


Effects = Annotated[ToolEffects, Depends(tool_effects)]


def calls_by_hand(services: Services) -> CallTrials:
    """Calls that an admin makes."""
    return CallTrials(runtime=services.runtime, tools=services.tools, chat=services.chat, runs=services.chat.runs)


CallsByHand = Annotated[CallTrials, Depends(calls_by_hand)]


def learning(services: Services) -> LearningService:
    """What use teaches about the choice of tools."""
    inside = services.runtime
    return LearningService(
        db=inside.db, registry=inside.registry, tools=services.tools, settings=services.tool_settings
    )


Learning = Annotated[LearningService, Depends(learning)]


def refits(services: Services) -> RefitsService:
    """The model fitted to this server."""
    return RefitsService(db=services.runtime.db, tools=services.tools, clock=services.runtime.clock)


Refitting = Annotated[RefitsService, Depends(refits)]


async def login_or_none(request: Request) -> LoginView | None:
    """The login of the request's cookie, read once a request."""
    if not hasattr(request.state, "login"):
        token = login_token(request)
        request.state.login = await services(request).accounts.who(token) if token else None
    return cast(LoginView | None, request.state.login)


MaybeLogin = Annotated[LoginView | None, Depends(login_or_none)]


async def login(request: Request) -> LoginView:
    """The login; LoginNeeded without one."""
    view = await login_or_none(request)
    if view is None:
        raise LoginNeeded
    USER_ID.set(view.user.id)
    return view


CurrentLogin = Annotated[LoginView, Depends(login)]


async def current_user(request: Request) -> User:
    """Who is asking."""
    return (await login(request)).user


CurrentUser = Annotated[User, Depends(current_user)]


async def admin(request: Request) -> User:
    """Who is asking, when that is an admin; NotAllowed otherwise."""
    user = await current_user(request)
    if not user.is_admin:
        raise NotAllowed("Only an admin can open this page.")
    return user


Admin = Annotated[User, Depends(admin)]


async def reauthed_admin(request: Request) -> User:
    """An admin who gave the password within the last 10 minutes; ConfirmNeeded otherwise."""
    user = await admin(request)
    if not (await login(request)).is_confirmed:
        raise ConfirmNeeded
    return user


ReauthedAdmin = Annotated[User, Depends(reauthed_admin)]
