"""Tokens of other programs, and the requests that came with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, or_, select

from cortex.base.errors import NotFound
from cortex.storage.repository import Repository, SharedRepository, reading
from cortex.storage.schema import AccountTable, ApiRequestTable, ApiTokenTable

USED_AGAIN = timedelta(minutes=1)  # when it was used last is kept so exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiTokenRow:
    """A token as it is kept, without the token itself. `tools`: categories and names of its scope, None = the role's.

    `limit_tokens`, `limit_usd`: of a day. `wait_s`: how long a call that asks waits for its person.
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
    made_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequestRow:
    """A request of a program. `model`: the one it asked for by name, "" for the role's."""

    turn_id: str
    token_id: str
    conversation_id: str
    model: str
    at: datetime


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
        found = await self._first(ApiTokenRow, self._mine(ApiTokenRow, ApiTokenTable).where(ApiTokenTable.id == id))
        if found is None:
            raise NotFound("This token does not exist.")
        return found

    async def add(
        self,
        id: str,
        *,
        name: str,
        digest: str,
        hint: str,
        role: str,
        tools: tuple[str, ...] | None,
        limit_tokens: int | None,
        limit_usd: float | None,
        per_minute: int,
        wait_s: int,
        expires_at: datetime | None,
    ) -> None:
        """Keep a new token."""
        row = {
            "id": id,
            "name": name,
            "digest": digest,
            "hint": hint,
            "role": role,
            "tools": tools,
            "limit_tokens": limit_tokens,
            "limit_usd": limit_usd,
            "per_minute": per_minute,
            "wait_s": wait_s,
            "made_at": self.clock(),
            "expires_at": expires_at,
            "used_at": None,
        }
        await self.session.execute(self._insert(ApiTokenTable, row))

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
        """How many requests came with the token since then."""
        own = (ApiRequestTable.owner_id == self.owner_id, ApiRequestTable.token_id == id, ApiRequestTable.at > since)
        return (await self.session.execute(select(func.count()).select_from(ApiRequestTable).where(*own))).scalar_one()

    async def take(self, turn_id: str, token_id: str, conversation_id: str, model: str) -> None:
        """Note a request."""
        row = {"turn_id": turn_id, "token_id": token_id, "conversation_id": conversation_id, "model": model}
        await self.session.execute(self._insert(ApiRequestTable, {**row, "thread": "", "at": self.clock()}))

    async def keep_thread(self, turn_id: str, thread: str) -> None:
        """What was said up to the answer of this request."""
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
    async def latest(self, token_id: str, limit: int) -> Sequence[ApiRequestRow]:
        """The newest requests with this token that stand in a conversation."""
        statement = self._mine(ApiRequestRow, ApiRequestTable).where(ApiRequestTable.token_id == token_id)
        statement = statement.where(ApiRequestTable.conversation_id != "")
        return await self._all(ApiRequestRow, statement.order_by(ApiRequestTable.at.desc()).limit(limit))


class AllApiTokensRepository(SharedRepository):
    """The tokens of everybody."""

    @reading
    async def of_digest(self, digest: str) -> ApiTokenRow | None:
        """The token of this digest that has not expired, of an account that is open; else None."""
        columns = (getattr(ApiTokenTable, name) for name in ApiTokenRow.__dataclass_fields__)
        is_in_force = or_(ApiTokenTable.expires_at.is_(None), ApiTokenTable.expires_at > self.clock())
        statement = (
            select(*columns)
            .join(AccountTable, AccountTable.id == ApiTokenTable.owner_id)
            .where(ApiTokenTable.digest == digest, is_in_force, AccountTable.is_active)
        )
        return await self._first(ApiTokenRow, statement)
