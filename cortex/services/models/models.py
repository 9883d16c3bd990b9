"""A user's models: `home/{user}/model_registry.json`, role to chain, sealed keys, prices, connections kept open.

The file names a key and never holds it; keys are sealed rows and leave this module only towards a provider. The
offline model stands in only where nothing is configured.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.address import PUBLIC, AddressPolicy, named
from cortex.base.clock import ticks_s
from cortex.base.crypto import Vault
from cortex.base.errors import ConfigError, Conflict, NotFound, ProviderError, UserError
from cortex.base.log import SecretFilter
from cortex.base.messages import Usage
from cortex.base.model import LOCAL_WINDOW_TOKENS, OFFLINE, ModelEntry, Price, assumed_window
from cortex.base.user import User
from cortex.ports.loop import Delta, Provider, Request, StreamEnd
from cortex.ports.model_lists import LookAtModel
from cortex.services.models import prices
from cortex.services.models.asking import Link
from cortex.services.models.crowd import Crowd
from cortex.services.models.files import (
    FILE,
    FileModel,
    FileTest,
    ModelForm,
    RegistryFile,
    is_same_place,
    kept_key,
    origin_of,
    placed,
    read_form,
    stored_as,
)
from cortex.services.models.learned import LearnedFacts
from cortex.services.models.presets import Preset
from cortex.services.models.probe import TestReport, first_answer, probe, with_consequence, with_window
from cortex.services.models.registry import ModelRegistry, default_profile, entry_of, registry_of, with_given
from cortex.services.models.server_looks import ServerLooks
from cortex.services.models.store import RegistryStore
from cortex.storage.db import Database
from cortex.storage.home import Homes
from cortex.storage.shared_models import AllSharesRepository

Connect = Callable[[ModelEntry, str | None, AddressPolicy], Provider]
MOST_MODELS = 50
LONGEST_S = 3_600.0  # longer than any answer takes, tried again or not
CHECK_S, SAVE_S = 20.0, 2.0
LINE = 300  # characters of a test's finding that are kept


class _Unavailable(Struct, frozen=True):
    """Stands in a chain for a model that can't even be connected, so that the next one gets its turn."""

    error: ProviderError

    async def stream(self, request: Request) -> AsyncIterator[Delta | StreamEnd]:
        raise self.error
        yield  # an async generator, like every provider's stream

    async def close(self) -> None:
        """Nothing is open."""


class RegistryFault(Struct, frozen=True, kw_only=True):
    """Why a registry file cannot be read, and whether there is an earlier one to go back to."""

    text: str
    has_last_good: bool


class Models:
    """The door to models for services and pages. `hosts`: host:port pairs that every account may name as a server."""

    def __init__(
        self,
        db: Database,
        homes: Homes,
        vault: Vault,
        connect: Connect,
        *,
        look: LookAtModel | None = None,
        presets: Sequence[Preset] = (),
        hosts: Sequence[tuple[str, int]] = (),
        local_requests: int = 4,
    ) -> None:
        """`look`: at a model of a server. `presets`: what the page offers. `local_requests`: see `Crowd`."""
        self._db = db
        self.presets = presets
        self.store = RegistryStore(db, homes, vault)
        self._connect = connect
        self._hosts = frozenset(hosts)
        self._open: dict[tuple[str, str], tuple[ModelEntry, str | None, AddressPolicy, Provider]] = {}
        self._opening = asyncio.Lock()
        self.crowd = Crowd(local_requests)
        self.learned = LearnedFacts(store=self.store, clock=db.clock)
        self._replaced: deque[tuple[float, Provider]] = deque()  # since when; a turn may be reading from one
        self.looks = ServerLooks(self.store, look, self.policy)

    @property
    def revision(self) -> int:
        """Grows with each change of anybody's models that is made through here, in this process: some are shared."""
        return self.store.revision

    async def registry(self, user: User) -> ModelRegistry:
        """All of it, with what others share; UserError when the user's file has a slip (it is left as it is)."""
        return await self.shared_with(user, registry_of((await self.store.read(user.id))[0]))

    async def shared_with(self, user: User, own: ModelRegistry | None = None) -> ModelRegistry:
        """Return what others share with this user, behind their `own` models."""
        given = await self._db.repository(AllSharesRepository).given(user.id)
        files = {owner_id: await self.store.of_another(owner_id) for owner_id in {one.owner_id for one in given}}
        return with_given(own or ModelRegistry(), given, files)

    async def shown(self, user: User) -> ModelRegistry:
        """As far as a page can show it: an empty one when the file has a slip, which the frame tells."""
        try:
            return await self.registry(user)
        except UserError:
            return ModelRegistry()

    async def fault(self, user: User) -> RegistryFault | None:
        """Return what is wrong with the file, None when it can be read."""
        try:
            await self.store.read(user.id)
        except UserError as error:
            return RegistryFault(text=error.message, has_last_good=await self.store.last_good.is_there(user.id))
        return None

    async def restore(self, user: User) -> None:
        """Put the last file that could be read in place of one that cannot, which stays beside it under another name.

        NotFound when there is none; Conflict when the present one can be read.
        """
        if await self.fault(user) is None:
            raise Conflict(f"{FILE} can be read; nothing was changed.")
        await self.store.last_good.restore(user.id)
        self.store.revision += 1

    def sharing_changed(self) -> None:
        """Let running turns read anew what they may use."""
        self.store.revision += 1

    async def is_given_still(self, user: User, registry: ModelRegistry) -> bool:
        """Tell whether the user has been given just what this registry says; asked of the database."""
        return tuple(await self._db.repository(AllSharesRepository).given(user.id)) == registry.given

    async def entry(self, user: User, name: str) -> ModelEntry:
        """One model; NotFound when there is none of this name."""
        found = (await self.registry(user)).get(name)
        if found is None:
            raise NotFound(f"There is no model {name!r}.")
        return found

    async def open_chain(self, user: User, names: Sequence[str], registry: ModelRegistry | None = None) -> list[Link]:
        """The named models, connected. Names that are gone are passed over; with none left, the default chain.

        `registry`: the user's, where it was read already.
        """
        registry = registry or await self.registry(user)
        entries = [entry for entry in map(registry.get, names) if entry is not None]
        if not entries:
            entries = [entry for entry in map(registry.get, registry.default) if entry] or [*registry.entries]
        return [Link(entry=entry, provider=await self._reachable(user, entry)) for entry in entries or [OFFLINE]]

    async def provider(self, user: User, entry: ModelEntry) -> Provider:
        """The connection of an entry, kept open until it changes. ConfigError when its key can't be opened."""
        secret, policy = (
            await self.store.key(entry.owner_id or user.id, entry.secret),
            self.policy(user, entry.base_url, entry.owner_id),
        )
        place = (user.id, entry.name)
        async with self._opening:
            known = self._open.get(place)
            if known is not None and known[:3] == (entry, secret, policy):
                return known[3]
            # In a thread: the first model of a kind loads its module, and certificates are read.
            provider = await asyncio.to_thread(self._connect, entry, secret, policy)
            self._open[place] = (entry, secret, policy, provider)
        if known is not None:
            await self._retire(known[3])
        return provider

    async def save(self, user: User, values: Mapping[str, Any], previous: str = "") -> ModelEntry:
        """Add a model, or change the one called `previous`. UserError names every slip.

        values: the fields of `ModelForm`, typed or as text; an empty `api_key` keeps the stored key.
        """
        form = read_form(ModelForm, values)
        file, version = await self.store.read(user.id)
        old = _named(file, previous) if previous else None
        if any(model.name == form.name and model is not old for model in file.models):
            raise UserError(f"There is a model {form.name!r} already.")
        if old is None and len(file.models) >= MOST_MODELS:
            raise UserError(f"At most {MOST_MODELS} models.")
        kept, added = kept_key(form, old, file), form.api_key.get_secret_value().strip()
        secret = await self.store.seal(user.id, added) if added else kept
        model = stored_as(form, old, secret)
        if model.told_tokens is None:
            model = model.model_copy(update=await self._facts_of(user, model, SAVE_S))
        changed = placed(file, model, previous)
        if (
            added and old is not None and old.secret and origin_of(old) == origin_of(model)
        ):  # one key for all of its models
            changed = changed.with_key(old.secret, secret)
        await self.store.write(user.id, file, changed, version)
        await self._let_go(user.id, previous or model.name)
        return entry_of(model)

    async def remove(self, user: User, name: str) -> None:
        """Forget a model, its key and its place in the chains; NotFound when there is none."""
        file, version = await self.store.read(user.id)
        _named(file, name)
        await self.store.write(user.id, file, placed(file, None, name), version)
        await self._let_go(user.id, name)

    async def set_chain(self, user: User, names: Sequence[str], role: str = "") -> None:
        """The default chain, or that of a role; no names = back to the default. UserError for an unknown name."""
        file, version = await self.store.read(user.id)
        registry = await self.registry(user)
        unknown = [name for name in names if registry.get(name) is None]
        if unknown:
            raise UserError(f"There is no model {unknown[0]!r}.")
        kept = tuple(dict.fromkeys(names))
        if role:
            roles = {**file.roles, role: kept}
            changed = file.model_copy(update={"roles": {key: chain for key, chain in roles.items() if chain}})
        else:
            changed = file.model_copy(update={"default": kept})
        await self.store.write(user.id, file, changed, version)

    async def check(self, user: User, entry: ModelEntry) -> None:
        """Ask a model that is to be added for a sentence; ProviderError says why none came."""
        secret, policy = await self.store.key(user.id, entry.secret), self.policy(user, entry.base_url)
        loaded = await asyncio.to_thread(self._connect, entry, secret, policy)  # else the first one holds the loop
        await loaded.close()
        tried = replace(entry, timeout_s=CHECK_S, first_s=None)
        await first_answer(tried, lambda one: self._connect(one, secret, policy))

    async def test(self, user: User, values: Mapping[str, Any], previous: str = "") -> TestReport:
        """Try a model as the form describes it, saved or not, with the typed key or the stored one of `previous`."""
        form = read_form(ModelForm, values)
        file, version = await self.store.read(user.id)
        old = next((model for model in file.models if model.name == previous), None)
        tried = stored_as(form, None, "")
        entry = entry_of(tried)
        secret = form.api_key.get_secret_value().strip() or await self.store.key(user.id, kept_key(form, old, file))
        policy = self.policy(user, entry.base_url)
        report = await probe(entry, lambda one: self._connect(one, secret, policy))
        told = await self._facts_of(user, tried, CHECK_S, secret) if report.is_ok else {}
        report = with_window(report, told.get("told_tokens"), tried.context_tokens)
        if old is not None and is_same_place(form, old):
            await self._note(user, file, version, old, report, told)
        return report

    async def test_saved(self, user: User, name: str) -> TestReport:
        """Try a saved model, and keep what was found out about streaming and tools."""
        entry = await self.entry(user, name)
        if entry.owner_id:  # its address and what it answers to a test are its owner's matter
            raise NotFound(f"Only {entry.owner} can test {name}.")
        secret, policy = await self.store.key(user.id, entry.secret), self.policy(user, entry.base_url)
        report = await probe(entry, lambda tried: self._connect(tried, secret, policy))
        file, version = await self.store.read(user.id)
        old = next((model for model in file.models if model.name == name), None)
        if old is None:
            return report
        told = await self._facts_of(user, old, CHECK_S, secret) if report.is_ok else {}
        report = with_window(report, told.get("told_tokens"), old.context_tokens)
        found = {"streams": report.streams, "tools": report.tools} if report.is_ok else {}
        changed: dict[str, Any] = told | {
            key: value for key, value in found.items() if value is not None and key not in old.by_hand
        }
        report = with_consequence(report, name, was_on=old.tools, is_by_hand="tools" in old.by_hand)
        await self._note(user, file, version, old, report, changed)
        for what in (one for one, is_so in found.items() if is_so):  # it does now what it was seen not to do
            await self.learned.forget(user.id, name, what)
        await self._let_go(user.id, name)
        return report

    async def send_tools(self, user: User, name: str) -> None:
        """Send tools to the model whatever its tests find; NotFound when there is none."""
        file, version = await self.store.read(user.id)
        old = _named(file, name)
        by_hand = tuple(dict.fromkeys((*old.by_hand, "tools")))
        told = old.told.model_copy(update={"is_overruled": True})
        model = old.model_copy(update={"tools": True, "by_hand": by_hand, "told": told})
        await self.store.write(user.id, file, placed(file, model, name), version)
        await self._let_go(user.id, name)

    async def _note(
        self,
        user: User,
        file: RegistryFile,
        version: str,
        old: FileModel,
        report: TestReport,
        found: Mapping[str, Any],
    ) -> None:
        """Keep with a model what its test found."""
        lines = tuple(line[:LINE] for line in report.lines or (report.message,))
        tested = FileTest(at=self._db.clock(), is_ok=report.is_ok, lines=lines)
        model = old.model_copy(update={**found, "tested": tested})
        with suppress(Conflict):  # the file was changed while the model was asked: that change counts
            await self.store.write(user.id, file, placed(file, model, old.name), version)

    async def _facts_of(self, user: User, model: FileModel, limit_s: float, key: str | None = None) -> dict[str, Any]:
        """Return what a local server says of the model, as fields of it: its context, and what server it is."""
        by_address = default_profile(model.provider, model.model, model.base_url)
        is_local = assumed_window(entry_of(model).profile, by_address) == LOCAL_WINDOW_TOKENS
        found = await self.looks.ask(user, model, limit_s=limit_s, key=key) if is_local else None
        said = {"told_tokens": found.window_tokens, "engine": found.engine} if found else {}
        return {name: value for name, value in said.items() if value}

    async def price(self, user: User, name: str) -> Price:
        """Dollars for a million tokens: as typed, else from the public price data, else unknown."""
        return await prices.price(await self.entry(user, name))

    async def cost(self, user: User, name: str, usage: Usage) -> float | None:
        """US dollars of one model call; None where the price is unknown."""
        entry = (await self.registry(user)).get(name)
        return None if entry is None else await prices.cost_usd(entry, usage)

    async def blotter(self, user_id: str) -> SecretFilter:
        """Takes every key out of texts that the user's models have, and those that may have been shared with them."""
        found = await self.store.sealed(user_id)
        keys = await asyncio.to_thread(self._all_opened, user_id, found) if found else []
        return SecretFilter(*keys)

    async def close(self) -> None:
        """Close every connection."""
        await self.looks.close()
        opened = [*(one[3] for one in self._open.values()), *(one[1] for one in self._replaced)]
        self._open, self._replaced = {}, deque()
        for provider in opened:
            await provider.close()

    def _all_opened(self, user_id: str, found: Sequence[tuple[str, bytes]]) -> list[str]:
        keys = [self._opened(sealed, is_own=owner_id == user_id) for owner_id, sealed in found]
        return [key for key in keys if key]

    def _opened(self, sealed: bytes, *, is_own: bool) -> str:
        """A key to look for in texts. Another's that cannot be opened was never sent."""
        try:
            return self.store.unseal(sealed)
        except ConfigError:
            if is_own:
                raise
            return ""

    def policy(self, user: User, base_url: str, owner_id: str = "") -> AddressPolicy:
        """Inside the network: only the very host and port that an admin named, in their registry or the settings.

        owner_id: whose model it is, where that is somebody else.
        """
        parts = urlsplit(base_url)
        place = ((parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80))
        is_of_admin = user.is_admin or bool(owner_id)  # who shares is an admin, or it was not in the registry
        return named(place) if base_url and (is_of_admin or place in self._hosts) else PUBLIC

    async def _reachable(self, user: User, entry: ModelEntry) -> Provider:
        try:
            return await self.provider(user, entry)
        except (ConfigError, UserError) as error:
            return _Unavailable(ProviderError(f"{entry.name}: {error.message}", kind="auth"))

    async def _let_go(self, user_id: str, name: str) -> None:
        known = self._open.pop((user_id, name), None)
        if known is not None:
            await self._retire(known[3])

    async def _retire(self, provider: Provider) -> None:
        """Close it once no answer can come by it any more: a change of settings cuts none off that is under way."""
        now_s = ticks_s()
        self._replaced.append((now_s, provider))
        while now_s - self._replaced[0][0] > LONGEST_S:
            await self._replaced.popleft()[1].close()


def _named(file: RegistryFile, name: str) -> FileModel:
    """The model of this name; NotFound."""
    found = next((model for model in file.models if model.name == name), None)
    if found is None:
        raise NotFound(f"There is no model {name!r}.")
    return found
