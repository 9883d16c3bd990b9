"""Connects a server: asks it for its list of models, and keeps those that are chosen, all in one commit.

The key that was typed is sealed as soon as the server has answered, and goes to no page. Who may reach what is decided
as for any other call of a model: `services/models/models.py: policy`.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import ValidationError

from cortex.base.clock import ticks_s
from cortex.base.errors import ProviderError, UserError
from cortex.base.model import OFFLINE, ModelEntry, Price
from cortex.base.record import as_dict
from cortex.base.user import User
from cortex.ports.model_lists import AskList, ListedModel, ModelServer
from cortex.services.models import prices
from cortex.services.models.files import (
    FileConnection,
    FileModel,
    FilePrice,
    FileTold,
    RegistryFile,
    ServerAddress,
    Slips,
    host_of,
    origin_of,
)
from cortex.services.models.models import MOST_MODELS, Models
from cortex.services.models.presets import OTHER, Preset
from cortex.services.models.registry import entry_of
from cortex.services.models.server_looks import is_own_server

KEPT_S, KEPT_MOST = 900.0, 50  # how long a list is kept to choose from, and of how many people
SHOWN_MOST = 60
HERE_S = 3.0  # nobody waits for it: the page loads it beside itself, and a port that nobody has refuses at once
THINKING_TOKENS = 16_000  # an answer's length where thinking counts with it
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9 ._:/-]+")
_NAME_LENGTH = 60


class Listing(Struct, frozen=True, kw_only=True):
    """A server's models as a person chooses from them.

    `added`: ids that are in the person's registry already. `left_out`, `engine`: as in ModelList. `prices`: by id, the
    list's own or the published ones.
    """

    provider: str
    base_url: str
    ca: str = ""
    models: tuple[ListedModel, ...]
    added: frozenset[str] = frozenset()
    left_out: int = 0
    engine: str = ""
    prices: Mapping[str, Price] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The server as a person reads it."""
        return host_of(self.provider, self.base_url)

    def shown(self, words: str = "", ticked: Sequence[str] = ()) -> tuple[ListedModel, ...]:
        """At most 60 of them that hold every word, ticked ones first: those are never lost by a filter."""
        wanted = words.lower().split()
        kept = [model for model in self.models if model.id in ticked]
        hits = [model for model in self.models if model.id not in ticked and _holds(model, wanted)]
        return (*kept, *hits[: max(0, SHOWN_MOST - len(kept))])

    def matches(self, words: str) -> int:
        """Return how many hold every word."""
        wanted = words.lower().split()
        return sum(_holds(model, wanted) for model in self.models)


class LocalServer(Struct, frozen=True, kw_only=True):
    """A kind of server as it stands on this machine: how many models it has, None where none answers."""

    preset: Preset
    models: int | None = None
    is_connected: bool = False


class ModelConnecting(Struct):
    """The Models page's door to other servers' lists."""

    models: Models
    ask: AskList
    # user id -> until when, key, list
    _kept: OrderedDict[str, tuple[float, str, Listing]] = field(default_factory=OrderedDict)

    async def connect(self, user: User, preset_id: str, base_url: str = "", key: str = "", ca: str = "") -> Listing:
        """The list of a preset's server, or of the one at `base_url`; the key is stored once the server has taken it.

        An empty key is the one that is stored for the address, if there is one. UserError or ProviderError, for the
        person, when there is no list.
        """
        place = self._place(preset_id, base_url, ca)
        file, version = await self.models.store.read(user.id)
        if not key.strip():
            return await self._fresh(user, file, place)
        listing = await self._asked(user, file, place, key.strip())
        found = _address(place.provider, listing.base_url, listing.ca, listing.engine)
        secret = await self._wait_with(user, file, version, found, key)
        self._keep(user, secret, listing)
        return listing

    async def _wait_with(self, user: User, file: RegistryFile, version: str, place: ServerAddress, key: str) -> str:
        """The name of the key, stored for the server until a model of it is chosen."""
        secret = await self.models.store.seal(user.id, key.strip())
        waiting = FileConnection(
            provider=place.provider,
            base_url=place.base_url,
            ca=place.ca or file.ca_for(place),
            engine=place.engine or file.engine_for(place),
            secret=secret,
        )
        await self.models.store.write(user.id, file, file.model_copy(update={"waiting": waiting}), version)
        return secret

    async def more(self, user: User, provider: str, base_url: str) -> Listing:
        """The list of a server as it is now, by the key that is stored for it."""
        file, _ = await self.models.store.read(user.id)
        return await self._fresh(user, file, _address(provider, base_url))

    async def listing(self, user: User, provider: str, base_url: str) -> Listing:
        """The list that was shown last, asked for anew where it is not kept any more."""
        place = _address(provider, base_url)
        file, _ = await self.models.store.read(user.id)
        until_s, key_name, kept = self._kept.get(user.id, (0.0, "", None))
        is_same = kept is not None and (kept.provider, kept.base_url) == (place.provider, place.base_url)
        if kept is None or not is_same or until_s < ticks_s() or key_name != file.key_for(place):
            return await self._fresh(user, file, place)
        return replace(kept, added=_added(file, place))

    async def use(
        self, user: User, provider: str, base_url: str, ids: Sequence[str], *, key: str = "", is_checked: bool = True
    ) -> Sequence[ModelEntry]:
        """Add these models of the list, in one commit; the first becomes the default where nothing else answers.

        key: in place of the stored one. With a key that no model uses yet the first is asked for a sentence:
        ProviderError, with nothing added, where none comes; not so for `is_checked` false. Those that are there already
        are left as they are. UserError when none is left to add.
        """
        if key.strip():
            await self._wait_with(user, *await self.models.store.read(user.id), _address(provider, base_url), key)
        listing = await self.listing(user, provider, base_url)
        file, version = await self.models.store.read(user.id)
        place = _address(listing.provider, listing.base_url, listing.ca)
        have = _added(file, place)
        chosen = [model for model in listing.models if model.id in ids and model.id not in have]
        if not chosen:
            raise UserError("Choose at least one model that is not added yet.", field="pick")
        if len(file.models) + len(chosen) > MOST_MODELS:
            raise UserError(f"At most {MOST_MODELS} models; you have {len(file.models)}.", field="pick")
        secret = file.key_for(place)
        taken = {model.name for model in file.models}
        fresh = []
        for model in chosen:
            name = _name(model.name, taken)
            taken.add(name)
            fresh.append(_stored(model, name, listing, secret))
        if is_checked and secret and not any(model.secret == secret for model in file.models):
            await self.models.check(user, entry_of(fresh[0]))
        changed: dict[str, Any] = {"models": (*file.models, *fresh)}
        if not file.models and set(file.default) <= {OFFLINE.name}:
            changed["default"] = (fresh[0].name,)
        if file.waiting is not None and origin_of(file.waiting) == origin_of(place):
            changed["waiting"] = None
        await self.models.store.write(user.id, file, file.model_copy(update=changed), version)
        return [entry_of(model) for model in fresh]

    async def forget(self, user: User) -> None:
        """Forget the key of a server of which no model was chosen."""
        file, version = await self.models.store.read(user.id)
        if file.waiting is not None:
            await self.models.store.write(user.id, file, file.model_copy(update={"waiting": None}), version)

    async def here(self, user: User) -> Sequence[LocalServer]:
        """Each kind of server that may be on this machine, as it stands; for admins only. Connected ones are not asked.

        Each is given 3 s, all at the same time: a busy machine answers late.
        """
        if not user.is_admin:
            return ()
        own = {entry.base_url for entry in (await self.models.shown(user)).own}
        local = [preset for preset in self.models.presets if preset.is_local]
        return await asyncio.gather(*(self._look(user, preset, preset.base_url in own) for preset in local))

    async def _look(self, user: User, preset: Preset, is_connected: bool) -> LocalServer:
        if is_connected:
            return LocalServer(preset=preset, is_connected=True)
        policy = self.models.policy(user, preset.base_url)
        server = ModelServer(
            provider=preset.provider, base_url=preset.base_url, policy=policy, limit_s=HERE_S, is_brief=True
        )
        try:
            return LocalServer(preset=preset, models=len((await self.ask(server)).models))
        except ProviderError:
            return LocalServer(preset=preset)

    def _place(self, preset_id: str, base_url: str, ca: str) -> ServerAddress:
        """Where a preset's server is; UserError when that is not said."""
        preset = next((one for one in self.models.presets if one.id == preset_id), None)
        if preset is None:
            raise UserError("Choose a provider.", field="preset")
        if preset.example and not base_url.strip():
            raise UserError(f"Enter the address of the server's API, such as {preset.example}.", field="base_url")
        typed = base_url.strip() if preset.takes_address else ""
        is_said = preset.takes_address and preset.id != OTHER
        return _address(preset.provider, typed or preset.base_url, ca, preset.id if is_said else "")

    async def _fresh(self, user: User, file: RegistryFile, place: ServerAddress) -> Listing:
        """The list as it is now, by the stored key."""
        secret = file.key_for(place)
        listing = await self._asked(user, file, place, await self.models.store.key(user.id, secret) or "")
        self._keep(user, secret, listing)
        return listing

    async def _asked(self, user: User, file: RegistryFile, place: ServerAddress, key: str) -> Listing:
        policy = self.models.policy(user, place.base_url)
        ca = place.ca or file.ca_for(place)
        server = ModelServer(
            provider=place.provider,
            base_url=place.base_url,
            ca=ca,
            key=key,
            engine=place.engine or file.engine_for(place),
            policy=policy,
        )
        try:
            found = await self.ask(server)
        except ProviderError as error:
            if error.kind == "refused" and not user.is_admin:
                raise UserError(f"{error.message} Only an admin can connect a server there.") from error
            raise
        models, known = await prices.filled(found.models, place.provider, found.base_url)
        return Listing(
            provider=place.provider,
            base_url=found.base_url,
            ca=ca,
            models=models,
            added=_added(file, _address(place.provider, found.base_url)),
            left_out=found.left_out,
            engine=found.engine,
            prices=known,
        )

    def _keep(self, user: User, secret: str, listing: Listing) -> None:
        self._kept[user.id] = (ticks_s() + KEPT_S, secret, listing)
        self._kept.move_to_end(user.id)
        while len(self._kept) > KEPT_MOST:
            self._kept.popitem(last=False)


def _address(provider: str, base_url: str, ca: str = "", engine: str = "") -> ServerAddress:
    """The address, checked; Slips where it is none."""
    try:
        return ServerAddress.model_validate({"provider": provider, "base_url": base_url, "ca": ca, "engine": engine})
    except ValidationError as error:
        raise Slips(error) from error


def _added(file: RegistryFile, place: ServerAddress) -> frozenset[str]:
    return frozenset(model.model for model in file.models if origin_of(model) == origin_of(place))


def _stored(model: ListedModel, name: str, listing: Listing, secret: str) -> FileModel:
    """The model as the file holds it, with what its list said. A published price is looked up anew each time."""
    longest = THINKING_TOKENS if model.thinks else FileModel.model_fields["max_output_tokens"].default
    context = model.context_tokens and min(max(model.context_tokens, 1_000), 20_000_000)
    is_own = is_own_server(listing.provider, listing.base_url, listing.engine)
    stored = FileModel(
        name=name,
        provider=listing.provider,
        model=model.id,
        base_url=listing.base_url,
        ca=listing.ca,
        secret=secret,
        # What a server of one's own says is looked at again; what another one lists stands.
        context_tokens=None if is_own else context,
        told_tokens=context if is_own else None,
        told=FileTold(tools=model.tools) if is_own else FileTold(),
        tools=is_own or model.tools is not False,
        parallel_calls=is_own or model.tools is not False,
        sees=model.sees,
        engine=listing.engine,
        price=FilePrice(**as_dict(model.price)),
    )
    most = min(longest, model.max_output_tokens or longest, entry_of(stored).context_tokens // 2)
    return stored.model_copy(update={"max_output_tokens": max(16, most)})


def _name(own: str, taken: set[str]) -> str:
    """Name the model for here: its own name as far as one may hold it, with a number where that is taken."""
    plain = _NOT_IN_NAMES.sub("-", own).strip(" ._:/-")[:_NAME_LENGTH] or "model"
    names = (plain, *(f"{plain[: _NAME_LENGTH - 4]} {number}" for number in range(2, MOST_MODELS + 3)))
    return next(name for name in names if name not in taken and name.lower() != OFFLINE.name)


def _holds(model: ListedModel, wanted: Sequence[str]) -> bool:
    text = f"{model.id} {model.label}".lower()
    return all(word in text for word in wanted)
