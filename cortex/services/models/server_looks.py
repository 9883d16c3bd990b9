"""Looks again at servers that somebody runs: they are often started anew with another model, window or template.

Ahead of the first request after a start, which waits a moment for it, and when an answer contradicts what is known; a
server at most once in some minutes. What is found is kept with the model, below what a person set (`registry.py:
entry_of`). Any server is asked when a model is saved or tested, and where a refusal does not say what it takes.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from msgspec import Struct, field

from cortex.base.address import AddressPolicy, is_inside
from cortex.base.clock import ticks_s
from cortex.base.errors import Conflict, CortexError, UserError
from cortex.base.messages import Usage
from cortex.base.model import ModelEntry
from cortex.base.turn import Reply
from cortex.base.user import User
from cortex.ports.model_lists import LookAtModel, ModelServer, ServerFacts
from cortex.services.models.files import FileModel, RegistryFile
from cortex.services.models.store import RegistryStore

LIMIT_S = 5.0  # of a look; a turn waits so long for one that a refusal asks for
MOMENT_S = 0.5  # that the first turn waits for it
AGAIN_S = 300.0  # between two looks at a server
TRIES = 3  # where the file is changed meanwhile
LOOKED_AT = frozenset({"llamacpp", "ollama", "lmstudio", "vllm"})  # wherever they stand
READ_LEAST = 0.5  # of what was sent: a server that reads less has cut it
ODD = frozenset({"request", "server", "malformed", "empty", "connection", "too_long", "timeout"})

log = logging.getLogger(__name__)
PolicyOf = Callable[[User, str, str], AddressPolicy]
_Place = tuple[str, str, str]  # owner's id, address, the model's id there


class _Looked(Struct):
    """A model of a server. `at_s`: when it was looked at last, None for never in this life."""

    at_s: float | None = None
    is_due: bool = True
    engine: str = ""
    working: asyncio.Task[None] | None = None


class ServerLooks(Struct):
    """One a process. `policy_of`: where the requests of an account may go. `look` None: nothing is looked at."""

    store: RegistryStore
    look: LookAtModel | None
    policy_of: PolicyOf
    ticks: Callable[[], float] = ticks_s
    _places: dict[_Place, _Looked] = field(default_factory=dict)

    async def ahead(self, user: User, entry: ModelEntry) -> bool:
        """Have a look under way where one is due, and wait a moment for the first; whether something is new by then."""
        if self.look is None or not _is_looked_at(entry):
            return False
        looked = self._places.setdefault(_place(user, entry), _Looked())
        is_first = looked.at_s is None
        self._begin(user, entry, looked)
        if not is_first or looked.working is None:
            return False
        before = self.store.revision
        await asyncio.wait([looked.working], timeout=MOMENT_S)
        return self.store.revision != before

    def heard(self, user: User, entry: ModelEntry, reply: Reply, sent_tokens: int) -> None:
        """An answer or a failure: one that contradicts what is known has the server looked at again.

        sent_tokens: about what the request held.
        """
        if self.look is None or not _is_looked_at(entry) or not contradicts(entry, reply, sent_tokens):
            return
        looked = self._places.setdefault(_place(user, entry), _Looked())
        looked.is_due = True
        if reply.failure_kind != "connection":  # one that is away is looked at when it is asked again
            self._begin(user, entry, looked)

    async def close(self) -> None:
        """End what is under way."""
        working = [one.working for one in self._places.values() if one.working is not None]
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)

    def _begin(self, user: User, entry: ModelEntry, looked: _Looked) -> None:
        is_soon = looked.at_s is not None and self.ticks() - looked.at_s < AGAIN_S
        if not looked.is_due or is_soon or (looked.working is not None and not looked.working.done()):
            return
        looked.at_s, looked.is_due = self.ticks(), False
        work = asyncio.ensure_future(self._work(user, entry, looked))  # noqa: TID251 - ended by `close`, heard by `_log_failure`
        work.add_done_callback(_log_failure)
        looked.working = work

    async def _work(self, user: User, entry: ModelEntry, looked: _Looked) -> None:
        found = await self.ask(user, entry, engine=looked.engine)
        if found is not None:
            looked.engine = found.engine or entry.engine
            await self._keep(entry.owner_id or user.id, entry, found)

    async def window(self, user: User, entry: ModelEntry) -> int | None:
        """The tokens of context that the server says it gives the model; None where it does not say it."""
        found = await self.ask(user, entry)
        return None if found is None else found.window_tokens

    async def ask(
        self,
        user: User,
        model: FileModel | ModelEntry,
        *,
        limit_s: float = LIMIT_S,
        key: str | None = None,
        engine: str = "",
    ) -> ServerFacts | None:
        """Return what the server says of the model now, None where it says nothing. key: None for the stored one."""
        if self.look is None:
            return None
        owner_id = model.owner_id if isinstance(model, ModelEntry) else ""
        try:
            async with asyncio.timeout(limit_s):
                if key is None:
                    key = await self.store.key(owner_id or user.id, model.secret)
                server = ModelServer(
                    provider=model.provider, base_url=model.base_url, ca=model.ca, key=key or "",
                    engine=engine or model.engine, policy=self.policy_of(user, model.base_url, owner_id),
                    limit_s=limit_s,
                )  # fmt: skip
                return await self.look(server, model.model)
        except (CortexError, OSError, TimeoutError) as error:
            log.info("models: could not look at the server of %s: %s", model.name, error)
            return None

    async def _keep(self, owner_id: str, entry: ModelEntry, found: ServerFacts) -> None:
        """Put what is news into the file of whose model it is. One with a slip, or a busy one, stays as it is."""
        with suppress(UserError, Conflict):
            for _ in range(TRIES):
                file, version = await self.store.read(owner_id)
                changed = _with(file, entry, found)
                if changed == file:
                    return
                with suppress(Conflict):
                    await self.store.write(owner_id, file, changed, version)
                    return


def is_own_server(provider: str, base_url: str, engine: str) -> bool:
    """Tell whether this is a server that people run: by its address, or by what it was found to be."""
    if provider != "openai" or not base_url:
        return False
    return engine in LOOKED_AT or is_inside(urlsplit(base_url).hostname or "")


def _is_looked_at(entry: ModelEntry) -> bool:
    return is_own_server(entry.provider, entry.base_url, entry.engine)


def contradicts(entry: ModelEntry, reply: Reply, sent_tokens: int) -> bool:
    """Tell whether this reply says something else than what is known of the model's window or of the server."""
    if reply.message is None:
        return reply.failure_kind in ODD
    used: Usage = reply.usage
    is_over = used.input_tokens > entry.context_tokens
    is_cut_in = 0 < used.input_tokens < READ_LEAST * sent_tokens
    is_cut_out = reply.finish == "length" and used.output_tokens < entry.max_output_tokens
    return is_over or is_cut_in or is_cut_out


def _place(user: User, entry: ModelEntry) -> _Place:
    return entry.owner_id or user.id, entry.base_url, entry.model


def _with(file: RegistryFile, entry: ModelEntry, found: ServerFacts) -> RegistryFile:
    """The file with what is said now of this model, and without what was learned of the server as it was before."""
    place = entry.base_url, entry.model
    now = {model.name: _with_facts(model, found) for model in file.models if (model.base_url, model.model) == place}
    learned = dict(file.learned)
    for model in file.models:
        if model.name in now and model.name in learned:
            gone = _outdated(model, now[model.name])
            learned[model.name] = tuple(fact for fact in learned[model.name] if fact.what not in gone)
    models = tuple(now.get(model.name, model) for model in file.models)
    return file.model_copy(
        update={"models": models, "learned": {name: facts for name, facts in learned.items() if facts}}
    )


def _outdated(before: FileModel, now: FileModel) -> frozenset[str]:
    """Return what is to be learned anew, since the server says something else than it said before."""
    is_other_window = before.told_tokens not in (None, now.told_tokens)
    has_tools_now = before.told.tools is False and now.told.tools is True
    window = ("context_tokens", "max_output_tokens") if is_other_window else ()
    return frozenset((*window, *(("tools",) if has_tools_now else ())))


def _with_facts(model: FileModel, found: ServerFacts) -> FileModel:
    """The model with what is said now; what is not said stays."""
    said = {name: value for name, value in (("tools", found.tools), ("slots", found.slots)) if value is not None}
    return model.model_copy(
        update={
            "told_tokens": found.window_tokens or model.told_tokens,
            "told": model.told.model_copy(update=said),
            "engine": found.engine or model.engine,
        }
    )


def _log_failure(work: "asyncio.Task[None]") -> None:
    if not work.cancelled() and work.exception() is not None:
        log.error("models: a look at a server failed", exc_info=work.exception())
