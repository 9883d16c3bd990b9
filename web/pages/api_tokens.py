"""Tokens for other programs: the list, a new one shown once, what was asked with one, revoking it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.api.tokens import ApiTokenRow, RoundRow, TokenView
from cortex.services.models.files import FileAlias
from web.deps import CurrentUser, ReauthedUser, Services, Text
from web.figures import day
from web.frame import frame_of
from web.render import MORE, ConfirmContext, Context, NavEntry, described, respond, zone_of
from web.routes import LazyRoute
from web.security import local_path
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
HERE = "/account/tokens"


async def _state(services: Cortex, user: User) -> str:
    """Return how many there are."""
    count = len(await services.api_tokens.list(user))
    return f"{count} in use" if count else ""


NAV = NavEntry(
    title="Tokens",
    href=HERE,
    icon="leave",
    order=44,
    under=MORE,
    about="Let other programs use Cortex in your name.",
    state=_state,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensContext(Context):
    """The list."""

    tokens: Sequence[TokenView] = described("the person's tokens, the newest first")
    asked: Mapping[str, Sequence[str]] = described("token -> conversations that were asked with it lately")
    url: str = described("the address that programs are given")
    became_outside: bool = described("whether to say that text of older tokens counts as external content now")
    names: Sequence[FileAlias] = described("further names by which programs ask for models")
    targets: Sequence[tuple[str, str]] = described("the models that a name may stand for: value, words")
    given: Mapping[str, str] = described("what was typed for a new name, by field", default_factory=dict)
    errors: Mapping[str, str] = described("why that was refused, by field; '' for the whole", default_factory=dict)
    secret: str = described("the token that was made just now, shown this once", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCallsContext(Context):
    """What was asked with one token."""

    token: ApiTokenRow = described("the token")
    calls: Sequence[RoundRow] = described("the newest model calls of its requests")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTokenContext(Context):
    """The form of a new token."""

    roles: Sequence[tuple[str, str]] = described("the roles to choose from: value, words")
    given: Mapping[str, str] = described("what was typed, by field", default_factory=dict)
    errors: Mapping[str, str] = described("why it was refused, by field; '' for the whole", default_factory=dict)


@router.get(HERE)
async def show(request: Request, services: Services, user: CurrentUser) -> Response:
    """The tokens, and how to use one."""
    return await _page(request, services, user)


@router.get(HERE + "/new")
async def ask_new(request: Request, services: Services, user: ReauthedUser) -> Response:
    """The form; a token acts for its person, so it asks for the password."""
    return await _form(request, services, user, {"role": (await services.preferences.get(user)).role}, {})


@router.post(HERE)
async def make(request: Request, services: Services, user: ReauthedUser) -> Response:
    """Make one; the token is on the answer and nowhere else."""
    given = {key: str(value) for key, value in (await request.form()).items()}
    try:
        secret = await services.api_tokens.make(user, given)
    except UserError as error:
        fields = getattr(error, "fields", None) or {error.field: error.message}
        return await _form(request, services, user, given, fields, 422)
    return await _page(request, services, user, secret)


@router.post(HERE + "/names")
async def add_name(request: Request, services: Services, user: CurrentUser) -> Response:
    """A further name for a model."""
    given = {key: str(value).strip() for key, value in (await request.form()).items()}
    try:
        alias = await services.model_names.add(user, given)
    except UserError as error:
        fields = getattr(error, "fields", None) or {error.field: error.message}
        return await _page(request, services, user, given=given, errors=fields, status=422)
    return redirect(request, HERE, f"{alias.name} now uses {alias.embeds or alias.model}.")


@router.post(HERE + "/names/remove")
async def remove_name(request: Request, services: Services, user: CurrentUser, name: Text) -> Response:
    """Forget a name."""
    await services.model_names.remove(user, name)
    return redirect(request, HERE, f"Removed the name {name}.")


@router.post(HERE + "/seen")
async def dismiss(request: Request, services: Services, user: CurrentUser, back: Text = HERE) -> Response:
    """That text of older tokens counts as external content was read."""
    await services.api_tokens.dismiss(user)
    return redirect(request, local_path(back, HERE))


@router.get(HERE + "/{token_id}")
async def show_calls(request: Request, services: Services, user: CurrentUser, token_id: str) -> Response:
    """Return what was asked with it, the newest first."""
    context = TokenCallsContext(
        frame=await frame_of(request, services, user, here=HERE),
        token=await services.api_tokens.get(user, token_id),
        calls=await services.api_tokens.calls(user, token_id),
    )
    return respond(request, "token_calls.html", context)


@router.post(HERE + "/{token_id}/words")
async def set_own_words(
    request: Request, services: Services, user: ReauthedUser, token_id: str, own_words: Text = ""
) -> Response:
    """Whether what its program sends are the person's own words; it loosens guards, so it asks for the password."""
    await services.api_tokens.set_own_words(user, token_id, is_so=bool(own_words))
    return redirect(request, HERE, "Its text counts as your own." if own_words else "Its text is external content.")


@router.post(HERE + "/{token_id}/mode")
async def set_pass_through(
    request: Request, services: Services, user: ReauthedUser, token_id: str, pass_through: Text = ""
) -> Response:
    """Whether its requests go to the models as they come; the other way gives it tools, so it asks for the password."""
    await services.api_tokens.set_pass_through(user, token_id, is_so=bool(pass_through))
    told = "Its requests go to the models unchanged." if pass_through else "Cortex answers it, with its tools."
    return redirect(request, HERE, told)


@router.post(HERE + "/{token_id}/extend")
async def extend(request: Request, services: Services, user: ReauthedUser, token_id: str) -> Response:
    """Let it end 90 days from now."""
    until = await services.api_tokens.extend(user, token_id)
    return redirect(request, HERE, f"Expires on {day(until, zone_of(user))}.")


@router.get(HERE + "/{token_id}/revoke")
async def ask_revoke(request: Request, services: Services, user: CurrentUser, token_id: str) -> Response:
    """The question before it goes."""
    token = await services.api_tokens.get(user, token_id)
    context = ConfirmContext(
        frame=await frame_of(request, services, user, here=HERE),
        title=f"Revoke {token.name}?",
        text="Programs using it are refused at once, and their running requests end. This cannot be undone.",
        action=f"{HERE}/{token_id}/revoke",
        words="Revoke",
        back=HERE,
    )
    return respond(request, "confirm.html", context)


@router.post(HERE + "/{token_id}/revoke")
async def revoke(request: Request, services: Services, user: CurrentUser, token_id: str) -> Response:
    """Let nobody in with it any more."""
    await services.api_tokens.revoke(user, token_id)
    return redirect(request, HERE, "Token revoked")


async def _page(
    request: Request,
    services: Services,
    user: CurrentUser,
    secret: str = "",
    *,
    given: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    tokens = await services.api_tokens.list(user)
    root = services.settings.public_url or str(request.base_url)
    asked = {}
    for view in tokens:
        rows = await services.api_tokens.latest(user, view.token.id)
        asked[view.token.id] = tuple(row.conversation_id for row in rows)
    context = TokensContext(
        frame=await frame_of(request, services, user, here=HERE),
        tokens=tokens,
        asked=asked,
        url=f"{root.rstrip('/')}/v1",
        became_outside=await services.api_tokens.became_outside(user),
        names=await services.model_names.list(user),
        targets=[(name, name) for name in await services.model_names.targets(user)],
        given=given or {},
        errors=errors or {},
        secret=secret,
    )
    return respond(request, "tokens.html", context, status=status)


async def _form(
    request: Request,
    services: Services,
    user: CurrentUser,
    given: Mapping[str, str],
    errors: Mapping[str, str],
    status: int = 200,
) -> Response:
    context = NewTokenContext(
        frame=await frame_of(request, services, user, here=HERE),
        roles=[(name, name) for name in await services.roles.names(user)],
        given=given,
        errors=errors,
    )
    return respond(request, "token_new.html", context, status=status)
