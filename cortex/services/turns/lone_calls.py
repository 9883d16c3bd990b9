"""Model calls that are no turn: each is admitted by the budgets and stands in the ledger by itself.

A program's request that brings its own tools (`services/api/bare_calls.py`) and the coding agent's questions
(`services/agents/coding_model.py`) are such.
"""

import asyncio

from msgspec import Struct

from cortex.base.model import ModelEntry
from cortex.base.role import Channel, Role
from cortex.base.tokens import count, count_message, minified, wire_schema
from cortex.base.turn import Reply
from cortex.base.user import User
from cortex.ports.loop import Request
from cortex.services.budgets.budgets import Budgets
from cortex.services.models.asking import Link, ask
from cortex.services.models.models import Models
from cortex.services.models.prices import cost_usd
from cortex.services.models.profiles import endpoint_of
from cortex.services.models.registry import ModelRegistry
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.storage.rounds import RoundsRepository

ROUND = 1


class LoneCall(Struct, frozen=True, kw_only=True):
    """A call that is no turn's, as budgets count it: a `RoleTaker`."""

    id: str
    role: str
    job_id: str = ""
    channel: Channel = "api"


class Admitted(Struct, frozen=True, kw_only=True):
    """The models to ask, or why none may be asked. `tokens`: what the request has, as far as counted here."""

    links: tuple[Link, ...] = ()
    refusal: str = ""
    tokens: int = 0


class LoneCalls(Struct, frozen=True, kw_only=True):
    """Admits and books them."""

    runtime: Runtime
    roles: Roles
    models: Models
    budgets: Budgets

    async def asked(self, user: User, call: LoneCall, sent: Request, model: str, within_s: float) -> Reply:
        """The answer as `ask` gives it, within so many seconds; its `failure` says why there is none."""
        try:
            async with asyncio.timeout(within_s):
                return await self.ask(user, call, sent, model)
        except TimeoutError:
            return Reply(model=model, failure="The model took too long.", failure_kind="connection")

    async def ask(self, user: User, call: LoneCall, sent: Request, model: str) -> Reply:
        """Return the whole answer, or a reply with the failure; booked whatever ends it, a cancel too."""
        rounds = self.runtime.db.repository(RoundsRepository, user.id)
        await rounds.begin_alone(call.id, role=call.role, channel=call.channel)
        admitted = await self.admit(user, call, sent, model)
        if not admitted.links:
            return Reply(failure=admitted.refusal)
        began_s, reply = self.runtime.ticks_s(), Reply()
        try:
            reply = await ask(admitted.links, sent)
        finally:
            ms = round((self.runtime.ticks_s() - began_s) * 1000)
            await self.book(user, call, reply, admitted.links, ms)
        return reply

    async def admit(self, user: User, call: LoneCall, sent: Request, model: str) -> Admitted:
        """The chain to ask, for a call that stands in the ledger; `model` "": that of its role. A refusal is kept."""
        rounds = self.runtime.db.repository(RoundsRepository, user.id)
        role: Role = await self.roles.role(user, call.role)
        registry = await self.models.registry(user)
        limits = await self.budgets.limits(user, call, role)
        names, why = await self.budgets.open_models(user, limits, (model,) if model else registry.chain(role))
        tokens = await asyncio.to_thread(_request_tokens, sent)
        if names:
            entry = _entry(registry, names[0])
            admission = await self.budgets.admit(user, call, limits, ROUND, entry, tokens)
            if admission.action in ("stop", "chat"):  # without its tools the answer would be another one
                names, why = (), admission.text
            elif admission.model:
                names, why = await self.budgets.open_models(user, limits, (admission.model,))
        if not names:
            await rounds.refused(call.id, ROUND)
            return Admitted(refusal=why)
        return Admitted(links=tuple(await self.models.open_chain(user, names, registry)), tokens=tokens)

    async def book(self, user: User, call: LoneCall, reply: Reply, links: tuple[Link, ...], ms: int) -> None:
        """Book what it took, as far as that is known, and free what it held."""
        rounds = self.runtime.db.repository(RoundsRepository, user.id)
        if reply.message is None:
            await rounds.failed(call.id, ROUND, reply.model, ms)
            return
        entry = next(link.entry for link in links if link.entry.name == reply.model)
        known = {"ms": ms, "endpoint": endpoint_of(entry), "paid_by": entry.owner_id}
        cost = await cost_usd(entry, reply.usage)
        await rounds.answered(call.id, ROUND, reply.model, reply.usage, cost, **known)


def _entry(registry: ModelRegistry, name: str) -> ModelEntry:
    entry = registry.get(name)
    assert entry is not None  # noqa: S101 - the name came out of this registry
    return entry


def _request_tokens(sent: Request) -> int:
    tools = minified([wire_schema(tool) for tool in sent.tools])
    return count(sent.system) + count(tools) + sum(map(count_message, sent.messages))
