"""Tokens for other programs: the list, a new one shown once, what was asked with one, revoking it."""

from collections.abc import Mapping, Sequence

from fastapi.responses import Response

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.api.tokens import ApiTokenRow, RoundRow, TokenView
from cortex.services.models.files import FileAlias
from web.deps import Text
from web.figures import day
from web.render import MORE, Context, NavEntry, described, zone_of
from web.routes import PageRouter
from web.security import local_path
from web.visit import ReauthedVisit, UserVisit, Visit

router = PageRouter()
HERE = "/account/tokens"


async def _state(services: Cortex, user: User) -> str:
    """Return how many there are."""
    count = len(await services.api_tokens.list(user))
    return f"{count} in use" if count else ""


NAV = NavEntry(
    title="Tokens",
    href=HERE,
    icon="key",
    order=44,
    under=MORE,
    about="Let other programs use Cortex in your name.",
    state=_state,
)


class TokensContext(Context, frozen=True, kw_only=True):
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


class TokenCallsContext(Context, frozen=True, kw_only=True):
    """The requests that were made with one token."""

    token: ApiTokenRow = described("the token")
    calls: Sequence[RoundRow] = described("the newest model calls of its requests")


class NewTokenContext(Context, frozen=True, kw_only=True):
    """The form of a new token."""

    roles: Sequence[tuple[str, str]] = described("the roles to choose from: value, words")
    given: Mapping[str, str] = described("what was typed, by field", default_factory=dict)
    errors: Mapping[str, str] = described("why it was refused, by field; '' for the whole", default_factory=dict)


@router.get(HERE)
async def show(visit: UserVisit) -> Response:
    """The tokens, and how to use one."""
    return await _page(visit)


@router.get(HERE + "/new")
async def ask_new(visit: ReauthedVisit) -> Response:
    """The form; a token acts for its person, so it asks for the password."""
    return await _form(visit, {"role": (await visit.services.preferences.get(visit.user)).role}, {})


@router.post(HERE)
async def make(visit: ReauthedVisit) -> Response:
    """Make one; the token is on the answer and nowhere else."""
    given = await visit.fields()
    try:
        secret = await visit.services.api_tokens.make(visit.user, given)
    except UserError as error:
        fields = getattr(error, "fields", None) or {error.field: error.message}
        return await _form(visit, given, fields, 422)
    return await _page(visit, secret)


@router.post(HERE + "/names")
async def add_name(visit: UserVisit) -> Response:
    """A further name for a model."""
    given = {key: value.strip() for key, value in (await visit.fields()).items()}
    try:
        alias = await visit.services.model_names.add(visit.user, given)
    except UserError as error:
        fields = getattr(error, "fields", None) or {error.field: error.message}
        return await _page(visit, given=given, errors=fields, status=422)
    return visit.redirect(HERE, f"{alias.name} now uses {alias.embeds or alias.model}.")


@router.post(HERE + "/names/remove")
async def remove_name(visit: UserVisit, name: Text) -> Response:
    """Forget a name."""
    await visit.services.model_names.remove(visit.user, name)
    return visit.redirect(HERE, f"Removed the name {name}.")


@router.post(HERE + "/seen")
async def dismiss(visit: UserVisit, back: Text = HERE) -> Response:
    """That text of older tokens counts as external content was read."""
    await visit.services.api_tokens.dismiss(visit.user)
    return visit.redirect(local_path(back, HERE))


@router.get(HERE + "/{token_id}")
async def show_calls(visit: UserVisit, token_id: str) -> Response:
    """Return what was asked with it, the newest first."""
    context = TokenCallsContext(
        token=await visit.services.api_tokens.get(visit.user, token_id),
        calls=await visit.services.api_tokens.calls(visit.user, token_id),
    )
    return await visit.show("token_calls.html", context)


@router.post(HERE + "/{token_id}/words")
async def set_own_words(visit: ReauthedVisit, token_id: str, own_words: Text = "") -> Response:
    """Take what it sends as the person's own words, or no longer: less is guarded then, so it asks for the password."""
    await visit.services.api_tokens.set_own_words(visit.user, token_id, is_so=bool(own_words))
    return visit.redirect(HERE, "Its text counts as your own." if own_words else "Its text is external content.")


@router.post(HERE + "/{token_id}/mode")
async def set_pass_through(visit: ReauthedVisit, token_id: str, pass_through: Text = "") -> Response:
    """Send its requests to the models as they come, or answer with tools; the latter needs the password."""
    await visit.services.api_tokens.set_pass_through(visit.user, token_id, is_so=bool(pass_through))
    told = "Its requests go to the models unchanged." if pass_through else "Cortex answers it, with its tools."
    return visit.redirect(HERE, told)


@router.post(HERE + "/{token_id}/extend")
async def extend(visit: ReauthedVisit, token_id: str) -> Response:
    """Let it end 90 days from now."""
    until = await visit.services.api_tokens.extend(visit.user, token_id)
    return visit.redirect(HERE, f"Expires on {day(until, zone_of(visit.user))}.")


@router.get(HERE + "/{token_id}/revoke")
async def ask_revoke(visit: UserVisit, token_id: str) -> Response:
    """The question before it goes."""
    token = await visit.services.api_tokens.get(visit.user, token_id)
    return await visit.ask(
        title=f"Revoke {token.name}?",
        text="Programs using it are refused at once, and their running requests end. This cannot be undone.",
        words="Revoke",
        back=HERE,
    )


@router.post(HERE + "/{token_id}/revoke")
async def revoke(visit: UserVisit, token_id: str) -> Response:
    """Let nobody in with it any more."""
    await visit.services.api_tokens.revoke(visit.user, token_id)
    return visit.redirect(HERE, "Token revoked")


async def _page(
    visit: Visit,
    secret: str = "",
    *,
    given: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    tokens = await visit.services.api_tokens.list(visit.user)
    root = visit.services.settings.public_url or str(visit.request.base_url)
    asked = {}
    for view in tokens:
        rows = await visit.services.api_tokens.latest(visit.user, view.token.id)
        asked[view.token.id] = tuple(row.conversation_id for row in rows)
    context = TokensContext(
        tokens=tokens,
        asked=asked,
        url=f"{root.rstrip('/')}/v1",
        became_outside=await visit.services.api_tokens.became_outside(visit.user),
        names=await visit.services.model_names.list(visit.user),
        targets=[(name, name) for name in await visit.services.model_names.targets(visit.user)],
        given=given or {},
        errors=errors or {},
        secret=secret,
    )
    return await visit.show("tokens.html", context, status=status)


async def _form(visit: Visit, given: Mapping[str, str], errors: Mapping[str, str], status: int = 200) -> Response:
    context = NewTokenContext(
        roles=[(name, name) for name in await visit.services.roles.names(visit.user)], given=given, errors=errors
    )
    return await visit.show("token_new.html", context, status=status)
