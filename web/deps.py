"""What handlers ask for by type: the house, who is logged in, and whether an admin confirmed the password lately.

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


def house(request: Request) -> Cortex:
    """The wired house."""
    return cast(Cortex, request.app.state.cortex)  # starlette's state is untyped


House = Annotated[Cortex, Depends(house)]


def role_defaults(house: House) -> RoleDefaults:
    """What a person may set for a role."""
    return RoleDefaults(
        roles=house.roles, models=house.models, registry=house.house.registry, setting_rounds=house.settings.max_rounds
    )


Defaults = Annotated[RoleDefaults, Depends(role_defaults)]


def role_editing(house: House, defaults: Defaults) -> RoleEditing:
    """Whole roles, for the admin's page."""
    inside = house.house
    return RoleEditing(db=inside.db, roles=house.roles, defaults=defaults, tools=house.tools, registry=inside.registry)


RoleEdits = Annotated[RoleEditing, Depends(role_editing)]


def skills_service(house: House) -> SkillsService:
    """A person's how-tos."""
    return SkillsService(house.house.db, house.tools)


Skills = Annotated[SkillsService, Depends(skills_service)]


def tool_listing(house: House) -> ToolListing:
    """What stands about tools."""
    return ToolListing(house=house.house, tools=house.tools, settings=house.tool_settings)


Listing = Annotated[ToolListing, Depends(tool_listing)]


def tool_trials(house: House) -> ToolTrials:
    """Messages tried out."""
    return ToolTrials(
        house=house.house,
        tools=house.tools,
        roles=house.roles,
        models=house.models,
        profiles=house.planning.contexts.profiles,
    )


Trials = Annotated[ToolTrials, Depends(tool_trials)]


def tool_effects(house: House) -> ToolEffects:
    """What other words would change."""
    return ToolEffects(trials=tool_trials(house))


Effects = Annotated[ToolEffects, Depends(tool_effects)]


def calls_by_hand(house: House) -> CallTrials:
    """Calls that an admin makes."""
    return CallTrials(house=house.house, tools=house.tools, chat=house.chat, runs=house.chat.runs)


CallsByHand = Annotated[CallTrials, Depends(calls_by_hand)]


def learning(house: House) -> LearningService:
    """What use teaches about the choice of tools."""
    inside = house.house
    return LearningService(db=inside.db, registry=inside.registry, tools=house.tools, settings=house.tool_settings)


Learning = Annotated[LearningService, Depends(learning)]


def refits(house: House) -> RefitsService:
    """The model fitted to this house."""
    return RefitsService(db=house.house.db, tools=house.tools, clock=house.house.clock)


Refitting = Annotated[RefitsService, Depends(refits)]


async def login_or_none(request: Request) -> LoginView | None:
    """The login of the request's cookie, read once a request."""
    if not hasattr(request.state, "login"):
        token = login_token(request)
        request.state.login = await house(request).accounts.who(token) if token else None
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
