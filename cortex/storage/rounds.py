"""The ledger: one row a model call, what it sent, took and cost. It outlives the conversation; sums are computed.

Budgets read it before each call, with what other calls hold in the meantime (`services/budgets/budgets.py`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, RowMapping, Select, Update, case, func, select, text, update

from cortex.base.errors import NotFound
from cortex.base.messages import Usage
from cortex.base.role import Channel
from cortex.base.turn import SUB
from cortex.storage import kept
from cortex.storage.repository import Repository, SharedRepository, as_row, reading
from cortex.storage.round_rows import Borrowed, CacheSample, RoundBefore, RoundRow, Spent, SpentBy, figures
from cortex.storage.schema import ApiRequestTable, RoundTable, TurnTable

_LOCK = 0x0C07_B4D6
_LONGEST = timedelta(days=1)  # of a turn
_LATE = 200  # calls


class _Head(Struct, frozen=True, kw_only=True):
    conversation_id: str
    role: str
    channel: Channel
    job_id: str


class RoundsRepository(Repository):
    """The model calls of a user."""

    async def begin_alone(self, turn_id: str, *, role: str, channel: Channel) -> None:
        """Begin the one call of a request that is no turn: it stands in no conversation. A repeat is a no-op."""
        head = {"conversation_id": "", "role": role, "channel": channel, "job_id": ""}
        row = {**_BLANK, **head, "turn_id": turn_id, "round": 1, "created_at": self.clock()}
        await self.session.execute(self._insert(RoundTable, row).on_conflict_do_nothing())

    async def hold(
        self, turn_id: str, round: int, tokens: int, usd: float, until: datetime, *, model: str = ""
    ) -> None:
        """Set aside what the coming call may take at most; `answered`, `failed` or `release` gives it back."""
        held: dict[str, Any] = {"held_tokens": tokens, "held_usd": usd, "held_until": until}
        await self._put(turn_id, round, state="held", model=model, **held)

    async def planned(
        self,
        turn_id: str,
        round: int,
        receipt: dict[str, Any],
        request_tokens: int,
        model: str,
        endpoint: str,
        *,
        paid_by: str = "",
    ) -> None:
        """Keep what the receipt of a round says, in figures. NotFound for a foreign turn."""
        prefix = receipt.get("prefix", {})
        await self._put(
            turn_id,
            round,
            **figures(receipt),
            state="planned",
            request_tokens=request_tokens,
            model=model,
            endpoint=endpoint,
            paid_by=paid_by,
            tools_digest=prefix.get("tools", ""),
            system_digest=prefix.get("system", ""),
            history=prefix.get("history", ""),
            sent={one["name"]: one["tokens"] for one in (*receipt.get("sent", ()), *receipt.get("noted", ()))},
        )

    async def refused(self, turn_id: str, round: int) -> None:
        """The budget did not allow this call: it took nothing."""
        await self._put(turn_id, round, state="refused", held_tokens=0, held_usd=0.0, held_until=None)

    async def failed(self, turn_id: str, round: int, model: str, ms: int) -> None:
        """No model answered; what the tries cost is unknown."""
        gone: dict[str, Any] = {"held_tokens": 0, "held_usd": 0.0, "held_until": None}
        await self._put(turn_id, round, state="failed", model=model, ms=ms, **gone)

    async def answered(
        self, turn_id: str, round: int, model: str, usage: Usage, cost_usd: float | None, **known: Any
    ) -> None:
        """Keep what the call took, as the provider counted it; repeated, it is the same row.

        known: ms, cache, idle_s, kept_tokens, endpoint, role, paid_by.
        """
        await self._put(
            turn_id,
            round,
            state="answered",
            model=model,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            written_tokens=usage.written_tokens,
            cost_usd=cost_usd,
            held_tokens=0,
            held_usd=0.0,
            held_until=None,
            **known,
        )

    @reading
    async def failed_last(self, since: datetime) -> str:
        """The model that was asked last since then, when it failed; "" when it answered, or none was asked."""
        ended = RoundTable.state.in_(("failed", "answered"))
        last = select(RoundTable.state, RoundTable.model).where(
            RoundTable.owner_id == self.owner_id, RoundTable.created_at >= since, ended
        )
        found = (await self.session.execute(last.order_by(RoundTable.created_at.desc()).limit(1))).first()
        return found.model if found is not None and found.state == "failed" else ""

    @reading
    async def answered_at(self, model: str) -> datetime | None:
        """When this model answered last, None if it never did."""
        last = select(RoundTable.created_at).where(
            RoundTable.owner_id == self.owner_id, RoundTable.model == model, RoundTable.state == "answered"
        )
        return (await self.session.execute(last.order_by(RoundTable.created_at.desc()).limit(1))).scalar()

    async def release(self, turn_id: str) -> None:
        """The turn is over: what its calls still hold is free again."""
        await self._run(_releasing(), turn_id=turn_id)

    @reading
    async def of_turn(self, turn_id: str) -> Sequence[RoundRow]:
        """The calls of a turn, in order; number 0 is the summary that was written before the first."""
        return await self._where(RoundRow, RoundTable, "round", turn_id=turn_id)

    @reading
    async def at(self, turn_id: str, round: int) -> RoundRow | None:
        """One call; None when it was never planned."""
        found = await self._where(RoundRow, RoundTable, turn_id=turn_id, round=round)
        return found[0] if found else None

    @reading
    async def with_token(self, token_id: str, limit: int) -> Sequence[RoundRow]:
        """The newest calls of requests that came with this token."""
        asked = (ApiRequestTable.turn_id == RoundTable.turn_id) & (ApiRequestTable.token_id == token_id)
        statement = self._mine(RoundRow, RoundTable).join(ApiRequestTable, asked)
        return await self._all(
            RoundRow, statement.order_by(RoundTable.created_at.desc(), RoundTable.round).limit(limit)
        )

    @reading
    async def before(self, conversation_id: str, turn_id: str, round: int) -> RoundBefore | None:
        """The last answered request of the conversation ahead of this one."""
        given = {"conversation_id": conversation_id, "turn_id": turn_id, "round": round}
        return await self._row_of(RoundBefore, _before(), **given)

    @reading
    async def spent(
        self,
        since: datetime,
        *,
        role: str = "",
        job_id: str = "",
        model: str = "",
        token: str = "",
        but: tuple[str, int] = ("", 0),
    ) -> Spent:
        """Sum what the user's calls took since then, of this role, job, model or token if named; `but`: without."""
        mine = [RoundTable.owner_id == self.owner_id]
        mine += [_is_with(token, since)] if token else []
        mine += [RoundTable.role == role] if role else []
        mine += [RoundTable.job_id == job_id] if job_id else []
        mine += [RoundTable.model == model] if model else []
        return await _sum(self, RoundTable.created_at >= since, *mine, but=but)

    @reading
    async def spent_with_tokens(self, since: datetime) -> Mapping[str, Spent]:
        """Return what the user's calls took since then by the token that they came with; none that took nothing."""
        token = ApiRequestTable.token_id
        asked = RoundTable.turn_id == ApiRequestTable.turn_id
        statement = select(token, *_taken(self)).join(RoundTable, asked).where(ApiRequestTable.at >= since - _LONGEST)
        statement = statement.where(RoundTable.created_at >= since, RoundTable.owner_id == self.owner_id)
        rows = (await self.session.execute(statement.group_by(token))).mappings()
        return {row["token_id"]: _spent(row) for row in rows}

    @reading
    async def borrowed(self, conversation_id: str) -> str:
        """The model that answered last in this conversation, if it was a shared one, else ""."""
        row = (await self._run(_answered_last(), conversation_id=conversation_id)).first()
        return row.model if row is not None and row.paid_by else ""

    @reading
    async def spent_in_turn(self, turn_id: str, *, but: tuple[str, int] = ("", 0)) -> Spent:
        """Return what one turn took so far, with the background agents that it started."""
        began = select(TurnTable.created_at).where(TurnTable.id == turn_id).scalar_subquery()  # for the index's sake
        is_agents = RoundTable.turn_id.startswith(f"{turn_id}{SUB}", autoescape=True) & (RoundTable.created_at >= began)
        is_its = (RoundTable.turn_id == turn_id) | is_agents
        return await _sum(self, RoundTable.owner_id == self.owner_id, is_its, but=but)

    @reading
    async def seen(self, endpoint: str, limit: int) -> Sequence[CacheSample]:
        """The latest requests to this endpoint that extended the one before, newest first."""
        return await self._rows_of(CacheSample, _seen(), endpoint=endpoint, limit=limit)

    @reading
    async def first_sent(self, role: str, model: str, limit: int) -> Sequence[tuple[Mapping[str, int], int]]:
        """Return what Auto sent first with the latest messages, newest first: tools with tokens, all with catalog.

        None from before the person's last `_LATE` calls: a role that is hardly used is no reason to read all of them.
        """
        newest = select(RoundTable.created_at).where(RoundTable.owner_id == self.owner_id)
        newest = newest.order_by(RoundTable.created_at.desc()).limit(_LATE)
        since = select(func.min(newest.subquery().c.created_at)).scalar_subquery()
        statement = (
            select(RoundTable.sent, RoundTable.sent_tokens + RoundTable.extra_tokens)
            .join(TurnTable, TurnTable.id == RoundTable.turn_id)
            .where(RoundTable.owner_id == self.owner_id, RoundTable.created_at >= since)
            .where(RoundTable.round == 1, RoundTable.state == "answered", RoundTable.channel == "chat")
            .where(RoundTable.role == role, RoundTable.model == model, TurnTable.mode == "auto")
            .order_by(RoundTable.created_at.desc())
        )
        return [(sent, tokens) for sent, tokens in await self.session.execute(statement.limit(limit))]

    async def _put(self, turn_id: str, round: int, **values: Any) -> None:
        """Change the row of a call, or begin it. NotFound for a foreign turn."""
        turns = await self._where(_Head, TurnTable, id=turn_id) or await self._where(_Head, RoundTable, turn_id=turn_id)
        if not turns:
            raise NotFound("This turn does not exist.")
        head = {**as_row(turns[0]), "turn_id": turn_id, "round": round, "created_at": self.clock()}
        await self._put_row(RoundTable, {**_BLANK, **head, **values}, ("turn_id", "round"), tuple(values))


@cache
def _releasing() -> Update:
    call = kept.columns(RoundTable)
    change = update(RoundTable.__table__).where(kept.is_own(RoundTable), call.turn_id == kept.given("turn_id"))  # type: ignore[arg-type]
    return change.where(call.held_until.is_not(None)).values(held_tokens=0, held_usd=0.0, held_until=None)


@cache
def _before() -> Select[Any]:
    call, turn = kept.columns(RoundTable), kept.columns(TurnTable)
    is_replaced = func.coalesce(turn.is_dropped, True).label("is_replaced")
    return (
        kept.owned(RoundBefore, RoundTable, is_replaced)
        .join(TurnTable.__table__, turn.id == call.turn_id, isouter=True)
        .where(call.conversation_id == kept.given("conversation_id"))
        .where(call.state == "answered", call.round > 0)
        .where((call.turn_id != kept.given("turn_id")) | (call.round < kept.given("round")))
        .order_by(call.created_at.desc(), turn.ordinal.desc(), call.round.desc())
        .limit(1)
    )


@cache
def _answered_last() -> Select[Any]:
    call = kept.columns(RoundTable)
    found = select(call.model, call.paid_by).where(kept.is_own(RoundTable))
    found = found.where(call.conversation_id == kept.given("conversation_id"), call.state == "answered", call.round > 0)
    return found.order_by(call.created_at.desc()).limit(1)


@cache
def _seen() -> Select[Any]:
    call = kept.columns(RoundTable)
    found = kept.owned(CacheSample, RoundTable).where(call.endpoint == kept.given("endpoint"))
    found = found.where(call.state == "answered", call.kept_tokens > 0)
    return found.order_by(call.created_at.desc(), call.turn_id, call.round.desc()).limit(kept.given("limit"))


class AllRoundsRepository(SharedRepository):
    """The model calls of everybody."""

    async def lock(self) -> None:
        """From here to the commit nobody else looks at what is left; SQLite has one writer anyway."""
        if self._is_postgresql:
            await self.session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})

    @reading
    async def spent(self, since: datetime, *, but: tuple[str, int] = ("", 0)) -> Spent:
        """Return what everybody's calls took since then."""
        return await _sum(self, RoundTable.created_at >= since, but=but)

    @reading
    async def spent_by(self, since: datetime, people: Sequence[str]) -> Sequence[SpentBy]:
        """Return what the calls of each of these accounts took since then, apart by role, job and model."""
        what = (RoundTable.owner_id, RoundTable.role, RoundTable.job_id, RoundTable.model)
        statement = select(*what, *_taken(self)).where(RoundTable.created_at >= since, RoundTable.owner_id.in_(people))
        rows = (await self.session.execute(statement.group_by(*what))).mappings()
        return [SpentBy(spent=_spent(row), **{column.key: row[column.key] for column in what}) for row in rows]

    @reading
    async def borrowed_from(self, owner_id: str, since: datetime) -> Sequence[Borrowed]:
        """Return what others took since then with the models of this account, the most first."""
        tokens = func.sum(RoundTable.input_tokens + RoundTable.output_tokens).label("tokens")
        usd = func.coalesce(func.sum(RoundTable.cost_usd), 0.0).label("usd")
        statement = (
            select(
                RoundTable.owner_id.label("person_id"),
                RoundTable.model,
                func.count().label("rounds"),
                tokens,
                usd,
                func.sum(case((_is_unpriced(), 1), else_=0)).label("unpriced"),
            )
            .where(RoundTable.created_at >= since, RoundTable.paid_by == owner_id, RoundTable.state == "answered")
            # In this order: by person first SQLite reads all rounds there are, as their index has them, to group them.
            .group_by(RoundTable.model, RoundTable.owner_id)
            .order_by(usd.desc(), tokens.desc(), RoundTable.owner_id, RoundTable.model)
        )
        rows = (await self.session.execute(statement)).mappings()
        return [Borrowed(**{**row, "tokens": int(row["tokens"]), "unpriced": int(row["unpriced"])}) for row in rows]


async def _sum(repository: Repository, *conditions: ColumnElement[bool], but: tuple[str, int]) -> Spent:
    statement = select(*_taken(repository)).where(*conditions)
    statement = statement.where((RoundTable.turn_id != but[0]) | (RoundTable.round != but[1]))
    return _spent((await repository.session.execute(statement)).mappings().one())


def _taken(repository: Repository) -> Sequence[ColumnElement[Any]]:
    """The sums over rounds that `Spent` has."""
    is_held = RoundTable.held_until > repository.clock()  # what a dead process set aside runs out by itself
    return (
        func.coalesce(func.sum(RoundTable.input_tokens + RoundTable.output_tokens), 0).label("tokens"),
        func.coalesce(func.sum(RoundTable.cost_usd), 0.0).label("usd"),
        func.coalesce(func.sum(case((_is_unpriced(), 1), else_=0)), 0).label("unpriced"),
        func.coalesce(func.sum(case((is_held, RoundTable.held_tokens), else_=0)), 0).label("held_tokens"),
        func.coalesce(func.sum(case((is_held, RoundTable.held_usd), else_=0.0)), 0.0).label("held_usd"),
    )


def _spent(row: RowMapping) -> Spent:
    return Spent(
        tokens=int(row["tokens"]),
        usd=float(row["usd"]),
        unpriced=int(row["unpriced"]),
        held_tokens=int(row["held_tokens"]),
        held_usd=float(row["held_usd"]),
    )


def _is_unpriced() -> ColumnElement[bool]:
    return (RoundTable.state == "answered") & RoundTable.cost_usd.is_(None)


def _is_with(token: str, since: datetime) -> ColumnElement[bool]:
    """Tell whether a round is of a request that came with this token; one may have begun before that moment."""
    asked = (ApiRequestTable.token_id == token, ApiRequestTable.at >= since - _LONGEST)
    return RoundTable.turn_id.in_(select(ApiRequestTable.turn_id).where(*asked))


_BLANK: dict[str, Any] = {
    **figures({}),
    **dict.fromkeys(("model", "endpoint", "paid_by", "cache", "tools_digest", "system_digest", "history"), ""),
    **dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens", "written_tokens", "request_tokens"), 0),
    **dict.fromkeys(("cost_usd", "ms", "idle_s", "held_until")),
    "state": "planned",
    "kept_tokens": 0,
    "held_tokens": 0,
    "held_usd": 0.0,
    "sent": {},
}
