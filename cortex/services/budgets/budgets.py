"""What a turn may still take, settled before each model call.

A call sets aside the most it can take, so that two turns at once cannot both slip under a limit. A limit that is
reached ends in a text, another model or a chat without tools, never in an error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from cortex.base.messages import Usage
from cortex.base.model import ModelEntry
from cortex.base.role import BY_TOKEN, Role
from cortex.base.turn import parent_of
from cortex.base.user import User
from cortex.base.zone import midnight
from cortex.services.models.models import Models
from cortex.services.models.registry import ModelRegistry, shared_name
from cortex.services.roles.roles import Roles, RoleTaker
from cortex.services.runtime import Runtime
from cortex.storage.api_tokens import ApiTokenRow, ApiTokensRepository
from cortex.storage.budgets import AtLimit, BudgetRow
from cortex.storage.budgets import BudgetsRepository as BudgetRows
from cortex.storage.db import Opener
from cortex.storage.round_rows import Spent
from cortex.storage.rounds import AllRoundsRepository, RoundsRepository
from cortex.storage.shared_models import AllSharesRepository, GivenModel
from cortex.storage.turns import TurnsRepository

WARN_SHARE = 0.8
HELD_FOR = timedelta(minutes=15)  # then what a dead process had set aside is free again
WAIT_S = 180.0
LOOK_EVERY_S = 0.25
BUSY = "I stopped: the rest of {whose} is in use by other answers. Try again in a moment."


class Limit(Struct, frozen=True, kw_only=True):
    """One limit as it holds for one turn. `kind` turn: the role's own, for a single message, or a job's for a run.

    `kind` model: what a person may take of a model that somebody shares with them, whose name is the `subject`.
    `token`: what a program's token allows in a day; the `subject` is its name.
    `turn`: whose spending counts for that kind, with the agents it started: the turn itself, or the one behind it.
    """

    kind: Literal["turn", "user", "role", "job", "house", "model", "token"]
    subject: str = ""
    tokens: int | None = None
    usd: float | None = None
    at_limit: AtLimit = "stop"
    model: str = ""
    time_zone: str = "UTC"
    is_of_job: bool = False
    turn: str = ""
    token: str = ""

    def share(self, spent: Spent, *, held: bool = False) -> float:
        """Return how much of it is used: 1.0 and more = reached. With `held`, what is under way counts as used."""
        tokens = spent.tokens + (spent.held_tokens if held else 0)
        usd = spent.usd + (spent.held_usd if held else 0.0)
        return max(_share(tokens, self.tokens), _share(usd, self.usd))

    @property
    def whose(self) -> str:
        """Return whose limit, in words."""
        named = {
            "turn": "this job for one run" if self.is_of_job else f"the role {self.subject!r} for one message",
            "user": "your limit for today",
            "role": f"today's limit for the role {self.subject!r}",
            "job": "today's limit for this job",
            "house": "today's limit for everybody",
            "model": f"your share of {self.subject} for today",
            "token": f"today's limit of the token {self.subject!r}",
        }
        return named[self.kind]

    def sentence(self, spent: Spent) -> str:
        """Why it stops here, with the figures and when it goes on."""
        is_tokens = _share(spent.tokens, self.tokens) >= 1.0
        used = f"{spent.tokens:,} tokens" if is_tokens else f"${spent.usd:.4f}"
        allowed = f"{self.tokens:,}" if is_tokens else f"${self.usd or 0.0:.4f}"
        if self.kind == "turn":
            words = "used" if is_tokens else "cost"
            what, who = ("run", "job") if self.is_of_job else ("message", "role")
            return f"I stopped: this {what} {words} {used}; the {who} allows {allowed}."
        open_price = (
            f" {spent.unpriced} calls with unknown price are not counted." if spent.unpriced and self.usd else ""
        )
        again = "It resets at midnight"
        return f"I stopped: {self.whose} is used up ({used} of {allowed}).{open_price} {again} ({self.time_zone})."


class Admission(Struct, frozen=True, kw_only=True):
    """The decision on the coming call; `text` says why not, or what changed."""

    action: Literal["go", "stop", "model", "chat"] = "go"
    text: str = ""
    model: str = ""


GO = Admission()


class Budgets(Struct, frozen=True, kw_only=True):
    """Checks every limit that holds for a turn, and sets aside for its next call."""

    runtime: Runtime
    roles: Roles
    models: Models
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def admit(
        self, user: User, turn: RoleTaker, limits: Sequence[Limit], round: int, entry: ModelEntry, input_tokens: int
    ) -> Admission:
        """Tell whether this round may ask `entry` with so many tokens. Waits while others hold what is left."""
        limits = of_model(limits, entry.name)
        if not limits:
            return GO
        most = Usage(input_tokens=input_tokens, output_tokens=entry.max_output_tokens)
        is_priced = any(limit.usd is not None for limit in limits)
        usd = (await self.models.cost(user, entry.name, most) or 0.0) if is_priced else 0.0
        # Read ahead of the lock: whoever holds that needs no second connection, of which there may be none left.
        takes_over = any(limit.at_limit == "model" for limit in limits)
        registry = await self.models.registry(user) if takes_over else ModelRegistry()
        ends_s = self.runtime.ticks_s() + WAIT_S
        while True:
            held = (most.input_tokens + most.output_tokens, usd)
            found = await self._look(user, turn, round, limits, held, entry, registry)
            if isinstance(found, Admission):
                return found
            if self.runtime.ticks_s() >= ends_s:
                await self.runtime.db.repository(RoundsRepository, user.id).refused(turn.id, round)
                return Admission(action="stop", text=BUSY.format(whose=found.whose))
            await self.sleep(LOOK_EVERY_S)

    async def open_models(
        self, user: User, limits: Sequence[Limit], names: Sequence[str]
    ) -> tuple[tuple[str, ...], str]:
        """Those of the models of which the person may still take something today, and why the first other may not."""
        shares = [limit for limit in limits if limit.kind == "model" and limit.subject in names]
        if not shares:
            return tuple(names), ""
        async with self.runtime.db.read_transaction(user.id) as repository:
            spent = [(limit, await spent_today(repository, limit, self.runtime.clock())) for limit in shares]
        used_up = {limit.subject: limit.sentence(used) for limit, used in spent if limit.share(used) >= 1.0}
        left = tuple(name for name in names if name not in used_up)
        return left, next((used_up[name] for name in names if name in used_up), "")

    async def warnings(
        self, repository: Opener, turn: RoleTaker, limits: Sequence[Limit], used: Spent, model: str
    ) -> list[str]:
        """A sentence for each limit of which the call that took `used`, booked already, passed four fifths."""
        told = []
        for limit in of_model(limits, model):
            after = await self._spent(repository, turn, limit)
            before = Spent(tokens=after.tokens - used.tokens, usd=after.usd - used.usd)
            if limit.kind != "turn" and limit.share(before) < WARN_SHARE <= limit.share(after):
                told.append(f"{limit.share(after):.0%} of {limit.whose} is used.")
        return told

    async def limits(self, user: User, turn: RoleTaker, role: Role) -> Sequence[Limit]:
        """Every limit that holds for this turn in this role, the role's own first."""
        found = await self._own(user, turn, role)
        async with self.runtime.db.one_view():
            token = None
            if turn.channel in BY_TOKEN:
                token = await self.runtime.db.repository(ApiTokensRepository, user.id).of_turn(turn.id)
            rows = await self.runtime.db.repository(BudgetRows).list()
            given = await self.runtime.db.repository(AllSharesRepository).given(user.id)
        personal = [row for row in rows if row.kind == "user" and row.subject in (user.id, "")]
        chosen = [row for row in personal if row.subject] or personal  # a person's own outranks everybody's
        chosen += [row for row in rows if row.kind == "role" and row.subject == turn.role]
        chosen += [row for row in rows if row.kind == "job" and turn.job_id and row.subject == turn.job_id]
        chosen += [row for row in rows if row.kind == "house"]
        shares = [limit_of_share(one, user.time_zone) for one in given if is_limited(one)]
        own = [limit_of_token(token, user.time_zone)] if token is not None and is_limited(token) else []
        zones = {row.id: self.runtime.settings.time_zone if row.kind == "house" else user.time_zone for row in chosen}
        return [*found, *own, *(limit_of(row, zones[row.id]) for row in chosen), *shares]

    async def _own(self, user: User, turn: RoleTaker, role: Role) -> list[Limit]:
        """The role's, and that of the turn which started this one as a background agent: it holds for both together."""
        found = [self._of_role(turn, role)]
        if parent := parent_of(turn.id):
            starter = await self.runtime.db.repository(TurnsRepository, user.id).get(parent)
            role = await self.roles.of_turn(user, starter)
            found.append(self._of_role(starter, role))
        return [limit for limit in found if limit is not None]

    def _of_role(self, turn: RoleTaker, role: Role) -> Limit | None:
        if role.budget_tokens is None and role.budget_usd is None:
            return None
        tokens, usd, is_of_job = role.budget_tokens, role.budget_usd, bool(turn.job_id)
        return Limit(kind="turn", subject=role.name, turn=turn.id, tokens=tokens, usd=usd, is_of_job=is_of_job)

    async def spent_up(self, user: User, turn: RoleTaker) -> str:
        """Why no further model call may be made for this turn, "" when one may."""
        limits = await self.limits(user, turn, await self.roles.of_turn(user, turn))
        limits = of_model(limits, "")  # whoever used up their share of a model may have another
        async with self.runtime.db.read_transaction(user.id) as repository:
            spent = [(limit, await self._spent(repository, turn, limit)) for limit in limits]
        reached = [limit.sentence(used) for limit, used in spent if limit.at_limit == "stop" and limit.share(used) >= 1]
        return next(iter(reached), "")

    async def _look(
        self,
        user: User,
        turn: RoleTaker,
        round: int,
        limits: Sequence[Limit],
        most: tuple[int, float],
        entry: ModelEntry,
        registry: ModelRegistry,
    ) -> Admission | Limit:
        """One look at everything under a lock; the limit to wait for when others hold the rest of it."""
        until = self.runtime.clock() + HELD_FOR
        async with self.runtime.db.transaction(user.id) as repository:
            await repository(AllRoundsRepository).lock()
            # But what this round itself set aside: a step that is run again must not wait for its first try.
            spent = [(limit, await self._spent(repository, turn, limit, but=(turn.id, round))) for limit in limits]
            reached = [(limit, used) for limit, used in spent if limit.share(used) >= 1.0]
            admission = _at_limit(registry, reached)
            if admission.action == "stop":
                await repository(RoundsRepository).refused(turn.id, round)
                return admission
            over = [limit for limit, _ in reached]
            full = [limit for limit, used in spent if limit not in over and limit.share(used, held=True) >= 1.0]
            if full:
                return full[0]
            await repository(RoundsRepository).hold(turn.id, round, *most, until, model=entry.name)
        return admission

    async def _spent(
        self, repository: Opener, turn: RoleTaker, limit: Limit, *, but: tuple[str, int] = ("", 0)
    ) -> Spent:
        if limit.kind == "turn":
            return await repository(RoundsRepository).spent_in_turn(limit.turn or turn.id, but=but)
        return await spent_today(repository, limit, self.runtime.clock(), but=but)


async def spent_today(repository: Opener, limit: Limit, now: datetime, *, but: tuple[str, int] = ("", 0)) -> Spent:
    """Return what counts against a daily limit so far, for the user whose repositories these are."""
    since = midnight(now, limit.time_zone)
    if limit.kind == "house":
        return await repository(AllRoundsRepository).spent(since, but=but)
    role, job, model = (limit.subject if limit.kind == kind else "" for kind in ("role", "job", "model"))
    rounds = repository(RoundsRepository)
    return await rounds.spent(since, role=role, job_id=job, model=model, token=limit.token, but=but)


def limit_of(row: BudgetRow, time_zone: str) -> Limit:
    """A stored budget as a limit of somebody's day."""
    return Limit(
        kind=row.kind,
        subject=row.subject,
        tokens=row.limit_tokens,
        usd=row.limit_usd,
        at_limit=row.at_limit,
        model=row.model,
        time_zone=time_zone,
    )


def _at_limit(registry: ModelRegistry, reached: Sequence[tuple[Limit, Spent]]) -> Admission:
    """The hardest of what the reached limits ask for."""
    chosen = GO
    for limit, used in reached:
        if limit.at_limit == "stop":
            return Admission(action="stop", text=limit.sentence(used))
        if limit.at_limit == "chat":
            text = f"{_first(limit.whose)} is used up: answering without tools."
            chosen = Admission(action="chat", text=text)
        elif chosen.action == "go":
            if registry.get(limit.model) is None:
                missing = f" The fallback model {limit.model!r} is not one of your models."
                return Admission(action="stop", text=limit.sentence(used) + missing)
            text = f"{_first(limit.whose)} is used up: switching to {limit.model}."
            chosen = Admission(action="model", text=text, model=limit.model)
    return chosen


def of_model(limits: Sequence[Limit], name: str) -> list[Limit]:
    """Those that hold for a call of this model."""
    return [limit for limit in limits if limit.kind != "model" or limit.subject == name]


def limit_of_token(token: ApiTokenRow, time_zone: str) -> Limit:
    """Return what a program may take in a day with its token."""
    return Limit(
        kind="token",
        subject=token.name,
        token=token.id,
        tokens=token.limit_tokens,
        usd=token.limit_usd,
        time_zone=time_zone,
    )


def is_limited(given: GivenModel | ApiTokenRow) -> bool:
    """Tell whether its owner set a limit."""
    return given.limit_tokens is not None or given.limit_usd is not None


def limit_of_share(given: GivenModel, time_zone: str) -> Limit:
    """Return what a person may take of a shared model in a day."""
    return Limit(
        kind="model",
        subject=shared_name(given.model, given.owner),
        tokens=given.limit_tokens,
        usd=given.limit_usd,
        time_zone=time_zone,
    )


def _share(used: float, allowed: float | None) -> float:
    """Used / allowed; a limit of nothing is always reached, one that is not set never."""
    if allowed is None:
        return 0.0
    return used / allowed if allowed > 0 else 1.0


def _first(words: str) -> str:
    return words[:1].upper() + words[1:]
