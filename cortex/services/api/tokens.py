"""Tokens of other programs: made, shown once, looked up, counted, revoked.

A token is 32 random bytes; its SHA-256 alone is kept. What it may do is its person's own rights, cut down to a role, a
scope of tools, a budget of a day and so many requests a minute.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from cortex.base.errors import Busy, NotAllowed, Throttled, UserError
from cortex.base.ids import new_id
from cortex.base.rates import MINUTE, Rates
from cortex.base.user import User
from cortex.base.zone import midnight
from cortex.ports.mcp import FAMILY
from cortex.services.accounts.accounts import Accounts
from cortex.services.accounts.credentials import end_token
from cortex.services.models.files import read_form
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.tools.tools import ToolsService
from cortex.services.turns.lone_calls import LoneCall
from cortex.storage.accounts import token_hash
from cortex.storage.api_tokens import AllApiTokensRepository, ApiRequestRow, ApiTokensRepository
from cortex.storage.api_tokens import ApiTokenRow as ApiTokenRow
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Opener
from cortex.storage.halts import HaltsRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.round_rows import RoundRow as RoundRow
from cortex.storage.round_rows import Spent
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import TurnRow

PREFIX = "cx-"
MOST = 50
DAYS = 90  # a token that nobody looks after ends by itself
TOLD = "tokens.became_outside"  # among the preferences of who had tokens when this began to count (migration 0034)
SHOWN, CALLS_SHOWN = 20, 100
BESIDES = 20  # a minute, read besides the requests that count: handshakes, lists of tools, slips
UNKNOWN = "This token is unknown or was revoked."
EXPIRED = "This token expired on {day}. Create a new one in Cortex under Account, Tokens."
STOPPED = "Work is stopped on this server. Try again later."

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60)]


class TokenForm(BaseModel):
    """A token as a person asks for it. `tools`: names and categories with blanks or commas, "" = all of the role's.

    `wait_s`: seconds that a call which asks waits for its person; `days`: until it expires, unless `never`.
    `own_words`: what the program sends was typed by its person, and is not text from outside. `pass_through`: its
    requests go to the models as they come.
    """

    model_config = ConfigDict(extra="ignore")

    name: Name
    role: str
    tools: str = ""
    limit_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    limit_usd: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)] | None = None
    per_minute: Annotated[int, Field(ge=1, le=6_000)] = 60
    wait_s: Annotated[int, Field(ge=0, le=3_600)] = 120
    days: Annotated[int, Field(ge=1, le=3_650)] = DAYS
    never: bool = False
    own_words: bool = False
    pass_through: bool = False


class Caller(Struct, frozen=True, kw_only=True):
    """A program that showed its token: for whom it asks, and how far it may go."""

    user: User
    token: ApiTokenRow


class TokenView(Struct, frozen=True, kw_only=True):
    """A token on its page. `spent`: of this day; `is_expired`: it lets nobody in any more."""

    token: ApiTokenRow
    spent: Spent
    is_expired: bool


class ApiTokens(Struct, frozen=True, kw_only=True):
    """The tokens of people. `stop`: ends a turn that runs; `_came`: what came with each token to this process."""

    runtime: Runtime
    accounts: Accounts
    roles: Roles
    tools: ToolsService
    stop: Callable[[TurnRow], Awaitable[None]]
    _came: Rates = field(default_factory=Rates)

    async def list(self, user: User) -> Sequence[TokenView]:
        """The user's, the newest first, with what they took today."""
        now = self.runtime.clock()
        async with self.runtime.db.read_transaction(user.id) as repository:
            spent = await repository(RoundsRepository).spent_with_tokens(midnight(now, user.time_zone))
            return [
                TokenView(
                    token=token,
                    spent=spent.get(token.id, Spent()),
                    is_expired=token.expires_at is not None and token.expires_at <= now,
                )
                for token in await repository(ApiTokensRepository).list()
            ]

    async def get(self, user: User, token_id: str) -> ApiTokenRow:
        """One of the user's; NotFound."""
        return await self.runtime.db.repository(ApiTokensRepository, user.id).get(token_id)

    async def latest(self, user: User, token_id: str) -> Sequence[ApiRequestRow]:
        """The conversations that were asked with it lately, the newest first."""
        rows = await self.runtime.db.repository(ApiTokensRepository, user.id).latest(token_id, SHOWN)
        return [*{row.conversation_id: row for row in rows}.values()]

    async def calls(self, user: User, token_id: str) -> Sequence[RoundRow]:
        """The newest model calls of its requests."""
        return await self.runtime.db.repository(RoundsRepository, user.id).with_token(token_id, CALLS_SHOWN)

    async def make(self, user: User, values: dict[str, Any]) -> str:
        """Make a token and give it back: it is shown this once. UserError names each wrong field."""
        form = read_form(TokenForm, values)
        if form.role not in await self.roles.names(user):
            raise UserError("Choose one of your roles.", field="role")
        scope = await self._scope(user, form.tools)
        secret = PREFIX + secrets.token_urlsafe(32)
        expires_at = None if form.never else self.runtime.clock() + timedelta(days=form.days)
        async with self.runtime.db.transaction(user.id) as repository:
            if len(await repository(ApiTokensRepository).list()) >= MOST:
                raise UserError(f"At most {MOST} tokens. Revoke one you no longer use.")
            id = new_id(self.runtime.clock)
            await repository(ApiTokensRepository).add(
                id,
                name=form.name,
                digest=token_hash(secret),
                hint=secret[-4:],
                role=form.role,
                tools=scope,
                limit_tokens=form.limit_tokens,
                limit_usd=form.limit_usd,
                per_minute=form.per_minute,
                wait_s=form.wait_s,
                is_own_words=form.own_words,
                is_pass_through=form.pass_through,
                expires_at=expires_at,
            )
            detail: dict[str, Any] = {"token": id, "role": form.role, "own_words": form.own_words}
            detail |= {"pass_through": True} if form.pass_through else {}
            await repository(AuditRepository).add(user.id, "token.made", form.name, detail)
        return secret

    async def revoke(self, user: User, token_id: str) -> None:
        """Let nobody in with it any more, and end what it asked for. NotFound."""
        async with self.runtime.db.transaction(user.id) as repository:
            running = await end_token(repository, token_id)
        for turn in running:
            await self.stop(turn)

    async def set_own_words(self, user: User, token_id: str, *, is_so: bool) -> None:
        """Say whether what its program sends is the person's own, from the next request on. NotFound."""
        async with self.runtime.db.transaction(user.id) as repository:
            await repository(ApiTokensRepository).set_own_words(token_id, is_so=is_so)
            await _audit(repository, token_id, "token.words", {"own_words": is_so})

    async def set_pass_through(self, user: User, token_id: str, *, is_so: bool) -> None:
        """Say whether its requests go to the models as they come, from the next one on. NotFound."""
        async with self.runtime.db.transaction(user.id) as repository:
            await repository(ApiTokensRepository).set_pass_through(token_id, is_so=is_so)
            await _audit(repository, token_id, "token.mode", {"pass_through": is_so})

    async def extend(self, user: User, token_id: str) -> datetime:
        """Let a token that has not expired end 90 days from now, where that is later; when it ends. NotFound."""
        now = self.runtime.clock()
        async with self.runtime.db.transaction(user.id) as repository:
            token = await repository(ApiTokensRepository).get(token_id)
            if token.expires_at is None or token.expires_at <= now:
                raise UserError("This token has no end to move. Create another one.")
            until = max(token.expires_at, now + timedelta(days=DAYS))
            await repository(ApiTokensRepository).extend(token_id, until)
            await _audit(repository, token_id, "token.extended", {"until": until.isoformat()})
        return until

    async def became_outside(self, user: User) -> bool:
        """Tell whether the person is still to be told that what their older tokens send counts as text from outside."""
        return bool(await self.runtime.db.repository(PreferencesRepository, user.id).get(TOLD))

    async def dismiss(self, user: User) -> None:
        """They have read it."""
        await self.runtime.db.repository(PreferencesRepository, user.id).unset(TOLD)

    async def who(self, secret: str) -> Caller:
        """Return whose token this is; NotAllowed for one that lets nobody in."""
        found = await self.runtime.db.repository(AllApiTokensRepository).of_digest(token_hash(secret))
        if found is None:
            raise NotAllowed(UNKNOWN)
        if found.expires_at is not None and found.expires_at <= self.runtime.clock():
            raise NotAllowed(EXPIRED.format(day=found.expires_at.date().isoformat()))
        return Caller(user=await self.accounts.user(found.owner_id), token=found)

    def must_not_insist(self, caller: Caller) -> None:
        """Count a request before a byte of it is read, whatever it holds; Throttled for one too many in a minute."""
        now = self.runtime.clock()
        if self._came.count(caller.token.id, now) >= caller.token.per_minute + BESIDES:
            raise self._too_many(caller)
        self._came.add(caller.token.id, now)

    async def must_be_open(self, repository: Opener, caller: Caller) -> None:
        """In the transaction of a request: NotAllowed, Throttled or Busy where it may not be taken."""
        tokens, now = repository(ApiTokensRepository), self.runtime.clock()
        if not await tokens.hold(caller.token.id):
            raise NotAllowed(UNKNOWN)
        if await repository(HaltsRepository).of(caller.user.id):
            raise Busy(STOPPED)
        if await tokens.counted(caller.token.id, now - MINUTE) >= caller.token.per_minute:
            raise self._too_many(caller)

    async def begin_call(self, caller: Caller, call: LoneCall, model: str) -> None:
        """Note a request that is one call of a model; raises as `must_be_open`."""
        async with self.runtime.db.transaction(caller.user.id) as repository:
            await self.must_be_open(repository, caller)
            await repository(ApiTokensRepository).take(call.id, caller.token.id, "", model)
            await repository(RoundsRepository).begin_alone(call.id, role=call.role, channel=call.channel)

    @staticmethod
    def _too_many(caller: Caller) -> Throttled:
        most = f"At most {caller.token.per_minute} requests per minute with this token."
        return Throttled(most, wait_s=MINUTE.total_seconds())

    async def _scope(self, user: User, text: str) -> tuple[str, ...] | None:
        """Return what was typed as a scope; UserError for a word that names nothing this person could have."""
        words = tuple(dict.fromkeys(text.replace(",", " ").split()))
        if not words:
            return None
        registry = self.runtime.registry
        names = await self.tools.grantable(user, channel="api")
        known = {"all", FAMILY, *names, *(registry.tools[name].category for name in names)}
        strange = [word for word in words if word not in known]
        if strange:
            raise UserError(f"{strange[0]!r} is not a tool or category you can use.", field="tools")
        return words


async def _audit(repository: Opener, token_id: str, action: str, detail: dict[str, Any]) -> None:
    """Note what its person changed of a token."""
    token = await repository(ApiTokensRepository).get(token_id)
    await repository(AuditRepository).add(token.owner_id, action, token.name, {"token": token_id, **detail})
