"""Tokens of other programs, and the requests that came with them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from msgspec import Struct
from sqlalchemy import Select, exists, func, select

from cortex.storage.repository import Repository, SharedRepository, reading, selected
from cortex.storage.schema import AccountTable, ApiRequestTable, ApiTokenTable, TurnTable

MOST_TOKENS = "max_tokens"  # among a request's parameters: how long each answer of a model may be
INSTRUCTIONS = "instructions"  # there too: what the program tells the model with this message, unless it did before
INSTRUCTED = "instructed"  # and the digest of what it told it last, then or earlier
USED_AGAIN = timedelta(minutes=1)  # when it was used last is kept so exactly


class ApiTokenRow(Struct, frozen=True, kw_only=True):
    """A token as it is kept, without the token itself. `tools`: categories and names of its scope, None = the role's.

    `limit_tokens`, `limit_usd`: of a day. `wait_s`: how long a call that asks waits for its person. `is_own_words`:
    what its program sends was typed by its person; else it is text from outside. `is_pass_through`: its requests go to
    the models as they come, and it reaches nothing else.
    """

    id: str
    owner_id: str
    name: str
    hint: str
    role: str
    tools: tuple[str, ...] | None
    limit_tokens: int | None
    limit_usd: float | None
    per_minute: int
    wait_s: int
    is_own_words: bool
    is_pass_through: bool
    made_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


class ApiRequestRow(Struct, frozen=True, kw_only=True):
    """A request of a program. `model`: the one it asked for by name, "" for the role's.

    `parameters`: what tunes its answer, under the names of chat completions, as JSON texts; and what stands above.
    """

    turn_id: str
    token_id: str
    conversation_id: str
    model: str
    parameters: dict[str, str]
    at: datetime


class NewToken(TypedDict):
    """A new token, as `ApiTokenRow` has it. `digest`: of the token itself."""

    name: str
    digest: str
    hint: str
    role: str
    tools: tuple[str, ...] | None
    limit_tokens: int | None
    limit_usd: float | None
    per_minute: int
    wait_s: int
    is_own_words: bool
    is_pass_through: bool
    expires_at: datetime | None


class ApiTokensRepository(Repository):
    """The tokens of one user, and what came with them."""

    @reading
    async def list(self) -> Sequence[ApiTokenRow]:
        """All of them, the newest first."""
        statement = self._mine(ApiTokenRow, ApiTokenTable).order_by(ApiTokenTable.made_at.desc(), ApiTokenTable.id)
        return await self._all(ApiTokenRow, statement)

    @reading
    async def get(self, id: str) -> ApiTokenRow:
        """The token; NotFound when it is absent or another user's."""
        return await self._get(ApiTokenRow, ApiTokenTable, id, "This token does not exist.")

    async def add(self, id: str, **values: Unpack[NewToken]) -> None:
        """Keep a new token."""
        await self.session.execute(self._insert(ApiTokenTable, {**values, "id": id, "made_at": self.clock()}))

    async def set_own_words(self, id: str, *, is_so: bool) -> None:
        """Say whether what its program sends is its person's own; NotFound."""
        change = self._change(ApiTokenTable).where(ApiTokenTable.id == id).values(is_own_words=is_so)
        await self._must_touch(change, ApiTokenTable.id, "This token does not exist.")

    async def set_pass_through(self, id: str, *, is_so: bool) -> None:
        """Say whether its requests go to the models as they come; NotFound."""
        change = self._change(ApiTokenTable).where(ApiTokenTable.id == id).values(is_pass_through=is_so)
        await self._must_touch(change, ApiTokenTable.id, "This token does not exist.")

    async def extend(self, id: str, expires_at: datetime) -> None:
        """Let it end then; its person is told again ahead of that. NotFound."""
        change = self._change(ApiTokenTable).where(ApiTokenTable.id == id)
        await self._must_touch(
            change.values(expires_at=expires_at, warned_at=None), ApiTokenTable.id, "This token does not exist."
        )

    async def warn(self, id: str) -> bool:
        """Note that its person is told that it ends; False when they were told before, or it is gone."""
        change = self._change(ApiTokenTable).where(ApiTokenTable.id == id, ApiTokenTable.warned_at.is_(None))
        return bool(await self._touched(change.values(warned_at=self.clock()), ApiTokenTable.id))

    async def remove(self, id: str) -> bool:
        """Forget the token and which requests were its; whether there was one."""
        return bool(await self._touched(self._remove(ApiTokenTable).where(ApiTokenTable.id == id), ApiTokenTable.id))

    async def hold(self, id: str) -> bool:
        """Let requests with this token be counted one after the other, to the end of the transaction.

        False where it is gone. That it was used is kept once a minute.
        """
        at = self.clock()
        held = select(ApiTokenTable.used_at).where(ApiTokenTable.owner_id == self.owner_id, ApiTokenTable.id == id)
        found = (await self.session.execute(held.with_for_update())).first()  # SQLite has one writer anyway
        if found is not None and (found.used_at is None or at - found.used_at > USED_AGAIN):
            await self.session.execute(self._change(ApiTokenTable).where(ApiTokenTable.id == id).values(used_at=at))
        return found is not None

    @reading
    async def counted(self, id: str, since: datetime) -> int:
        """Return how many requests came with the token since then."""
        own = (ApiRequestTable.owner_id == self.owner_id, ApiRequestTable.token_id == id, ApiRequestTable.at > since)
        return (await self.session.execute(select(func.count()).select_from(ApiRequestTable).where(*own))).scalar_one()

    async def take(
        self,
        turn_id: str,
        token_id: str,
        conversation_id: str,
        model: str,
        parameters: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Note a request."""
        row = {"turn_id": turn_id, "token_id": token_id, "conversation_id": conversation_id, "model": model}
        known = {"parameters": dict(parameters), "at": self.clock()}
        await self.session.execute(self._insert(ApiRequestTable, {**row, **known}))

    async def go_on(self, turn_id: str, following: str) -> None:
        """Let a turn go on under the token of this one, if it came with any."""
        request = await self.request(turn_id)
        if request is not None:
            await self.take(following, request.token_id, request.conversation_id, request.model)

    async def keep_thread(self, turn_id: str, thread: str) -> None:
        """Keep what was said up to the answer of this request."""
        change = self._change(ApiRequestTable).where(ApiRequestTable.turn_id == turn_id)
        await self.session.execute(change.values(thread=thread))

    @reading
    async def at_thread(self, token_id: str, thread: str) -> ApiRequestRow | None:
        """The newest request with the token whose answer came to just this; None for none."""
        asked = (ApiRequestTable.token_id == token_id, ApiRequestTable.thread == thread)
        statement = self._mine(ApiRequestRow, ApiRequestTable).where(*asked)
        return await self._first(ApiRequestRow, statement.order_by(ApiRequestTable.at.desc()))

    @reading
    async def request(self, turn_id: str) -> ApiRequestRow | None:
        """The request of this turn; None where no program asked for it, or its token is gone."""
        statement = self._mine(ApiRequestRow, ApiRequestTable).where(ApiRequestTable.turn_id == turn_id)
        return await self._first(ApiRequestRow, statement)

    @reading
    async def of_turn(self, turn_id: str) -> ApiTokenRow | None:
        """The token that this turn came with; None where it is gone."""
        statement = self._mine(ApiTokenRow, ApiTokenTable)
        statement = statement.join(ApiRequestTable, ApiRequestTable.token_id == ApiTokenTable.id)
        return await self._first(ApiTokenRow, statement.where(ApiRequestTable.turn_id == turn_id))

    @reading
    async def was_given(self, token_id: str) -> bool:
        """Tell whether an answer to a request with this token may have held private data."""
        asked = exists().where(
            ApiRequestTable.turn_id == TurnTable.id, ApiRequestTable.token_id == token_id, TurnTable.has_read_private
        )
        return bool((await self.session.execute(select(asked))).scalar_one())

    @reading
    async def latest(self, token_id: str, limit: int) -> Sequence[ApiRequestRow]:
        """The newest requests with this token that stand in a conversation."""
        statement = self._mine(ApiRequestRow, ApiRequestTable).where(ApiRequestTable.token_id == token_id)
        statement = statement.where(ApiRequestTable.conversation_id != "")
        return await self._all(ApiRequestRow, statement.order_by(ApiRequestTable.at.desc()).limit(limit))


class AllApiTokensRepository(SharedRepository):
    """The tokens of everybody."""

    @reading
    async def of_digest(self, digest: str) -> ApiTokenRow | None:
        """The token of this digest, expired or not, of an account that is open; else None."""
        return await self._first(ApiTokenRow, self._open().where(ApiTokenTable.digest == digest))

    @reading
    async def ending(self, until: datetime, lived_longer_than: timedelta) -> Sequence[ApiTokenRow]:
        """Those in force that end before then, were made for longer than that, and whose people were not told."""
        statement = self._open().where(
            ApiTokenTable.warned_at.is_(None),
            ApiTokenTable.expires_at > self.clock(),
            ApiTokenTable.expires_at <= until,
        )
        rows = await self._all(ApiTokenRow, statement.order_by(ApiTokenTable.expires_at, ApiTokenTable.id))
        return [row for row in rows if row.expires_at and row.expires_at - row.made_at > lived_longer_than]

    def _open(self) -> Select[Any]:
        owners = selected(ApiTokenRow, ApiTokenTable).join(AccountTable, AccountTable.id == ApiTokenTable.owner_id)
        return owners.where(AccountTable.is_active)
