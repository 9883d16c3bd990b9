"""A user's models as services read them: each entry with what its file, its server and its address say. Pure.

Also what others gave them: under a name that says whose it is, with the owner's key.
"""

import json
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.address import is_inside
from cortex.base.model import (
    LOCAL_FIRST_S,
    OFFLINE,
    PROFILES,
    TIMEOUT_S,
    ModelEntry,
    ModelPlace,
    Price,
    Profile,
    assumed_window,
)
from cortex.base.role import Role
from cortex.services.models.endpoint_caches import FACTS, is_native, shipped
from cortex.services.models.files import FileAlias, FileConnection, FileFact, FileModel, FileTest, RegistryFile, host_of
from cortex.services.models.learned import applied
from cortex.storage.shared_models import GivenModel


class ModelRegistry(Struct, frozen=True, kw_only=True):
    """A user's models as they stand, their own first. `default`: the chain of roles that name none.

    `with_key`: own ones that have a stored key. `given`: what others share with the user, whose entries name an owner.
    `tested`: what the last test of each own model found. `waiting`: a server whose models are still to be chosen.
    `learned`: what was seen of each model by its use; `as_set`: own models of which something was, as they are set.
    `aliases`: further names by which other programs ask for models.
    """

    entries: tuple[ModelEntry, ...] = ()
    default: tuple[str, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    with_key: frozenset[str] = frozenset()
    given: tuple[GivenModel, ...] = ()
    tested: Mapping[str, FileTest] = field(default_factory=dict)
    waiting: FileConnection | None = None
    learned: Mapping[str, tuple[FileFact, ...]] = field(default_factory=dict)
    as_set: Mapping[str, ModelEntry] = field(default_factory=dict)
    aliases: tuple[FileAlias, ...] = ()

    def key_mates(self, name: str) -> tuple[str, ...]:
        """The own models that use the same stored key as this one."""
        secret = next((entry.secret for entry in self.own if entry.name == name), "")
        return tuple(one.name for one in self.own if secret and one.secret == secret and one.name != name)

    def set_as(self, name: str) -> ModelEntry | None:
        """The own model of this name as its person set it, whatever its use showed."""
        return self.as_set.get(name) or next((entry for entry in self.own if entry.name == name), None)

    @property
    def servers(self) -> tuple[tuple[str, str, str], ...]:
        """The servers of the own models: kind, address, and the host as a person reads it."""
        found = {(entry.provider, entry.base_url): None for entry in self.own}
        return tuple((provider, url, host_of(provider, url)) for provider, url in found)

    @property
    def own(self) -> tuple[ModelEntry, ...]:
        """The user's own models."""
        return tuple(entry for entry in self.entries if not entry.owner_id)

    @property
    def shared(self) -> tuple[ModelEntry, ...]:
        """Those that others share with the user."""
        return tuple(entry for entry in self.entries if entry.owner_id)

    def chain(self, role: Role, chosen: str = "") -> tuple[str, ...]:
        """The names for a role: its own, else the registry's for it, else the default; at least one name, always.

        chosen: the model that a person chose goes ahead of them, if it is there.
        """
        names = self._chain(role)
        if not chosen or self.get(chosen) is None:
            return names
        return (chosen, *(name for name in names if name != chosen))

    def _chain(self, role: Role) -> tuple[str, ...]:
        for names in (role.models, self.roles.get(role.name, ()), self.default):
            known = tuple(name for name in names if self.get(name) is not None)
            if known:
                return known
        return tuple(entry.name for entry in self.entries) or (OFFLINE.name,)

    def real_chain(self, role: Role) -> tuple[ModelEntry, ...]:
        """The entries of `chain` without the offline demo model."""
        entries = [self.get(name) for name in self.chain(role)]
        return tuple(entry for entry in entries if entry is not None and entry.provider != "offline")

    def first(self, role: Role, chosen: str = "") -> ModelEntry:
        """The entry that is tried first, as in `chain`."""
        return self.get(self.chain(role, chosen)[0]) or OFFLINE

    def get(self, name: str) -> ModelEntry | None:
        """The entry of this name; the offline model under its own."""
        found = next((entry for entry in self.entries if entry.name == name), None)
        return found or (OFFLINE if name == OFFLINE.name else None)


def registry_of(file: RegistryFile) -> ModelRegistry:
    """Return what the file says, as services read it."""
    as_set = {model.name: entry_of(model) for model in file.models}
    return ModelRegistry(
        entries=tuple(applied(entry, file.learned.get(name, ())) for name, entry in as_set.items()),
        default=file.default,
        roles=file.roles,
        with_key=frozenset(model.name for model in file.models if model.secret),
        tested={model.name: model.tested for model in file.models if model.tested is not None},
        waiting=file.waiting,
        learned=file.learned,
        as_set={name: entry for name, entry in as_set.items() if name in file.learned},
        aliases=file.aliases,
    )


def entry_of(model: FileModel) -> ModelEntry:
    """The entry with what its endpoint caches and takes in filled in, as far as its person did not say it."""
    own = model.cache.model_dump(exclude_none=True)
    found = default_profile(model.provider, model.model, model.base_url, thinks=bool(model.extra.get("thinking")))
    profile = found if model.profile == "found" else PROFILES[model.profile]
    profile = replace(profile, **own)
    chosen = () if model.profile == "found" else ("profile", *FACTS)
    given = () if model.context_tokens is None else ("context_tokens",)
    told = 0 if given else model.told_tokens or 0  # an answer takes no more than half of it
    return ModelEntry(
        name=model.name,
        provider=model.provider,
        model=model.model,
        base_url=model.base_url,
        ca=model.ca,
        secret=model.secret,
        context_tokens=model.context_tokens or model.told_tokens or assumed_window(profile, found),
        max_output_tokens=min(model.max_output_tokens, told // 2) if told else model.max_output_tokens,
        max_rounds=model.max_rounds,
        timeout_s=model.timeout_s,
        streams=model.streams,
        tools=model.tools and not model.drops_tools,
        parallel_calls=model.parallel_calls,
        sees=model.sees,
        price=Price(**model.price.model_dump()),
        profile=profile,
        typed=(*own, *chosen, *given),
        engine=model.engine,
        first_s=LOCAL_FIRST_S if profile.strength == "weak" and model.timeout_s == TIMEOUT_S else None,
        drops_tools=model.drops_tools,
        slots=model.told.slots or 0,
        extra_params=tuple((key, json.dumps(value)) for key, value in sorted(model.extra.items())),
    )


def default_profile(provider: str, model: str, base_url: str, *, thinks: bool = False) -> Profile:
    """Return what the endpoint's cache does and whether it declares tools late, as far as address and model tell."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:  # typed, and not an address yet
        host = ""
    found = shipped(provider, model, host, is_inside=bool(host) and is_inside(host))
    can_declare = found.caches and is_native(provider, model, host, thinks=thinks)
    return replace(found, late_tools="native") if can_declare else found


def place_of(entry: ModelEntry) -> ModelPlace:
    """Tell where a model answers: in this house, at a provider, or nowhere, as the demo does."""
    if entry.provider == OFFLINE.provider:
        return "none"
    try:
        host = urlsplit(entry.base_url).hostname or ""
    except ValueError:
        return "out"
    is_passed_on = entry.model.endswith(("-cloud", ":cloud"))  # Ollama sends these to its makers
    return "home" if host and is_inside(host) and not is_passed_on else "out"


_FROM = " (from "  # no own name has parentheses: none can mean two models


def shared_name(model: str, owner: str) -> str:
    """Return what a model of this owner is called with others."""
    return f"{model}{_FROM}{owner})"


def with_given(own: ModelRegistry, given: Sequence[GivenModel], files: Mapping[str, RegistryFile]) -> ModelRegistry:
    """The registry with what its user has been given behind their own models.

    files: owner's id -> their registry file; a gift whose model is not there any more is passed over.
    """
    entries = [_given_entry(gift, files.get(gift.owner_id), own) for gift in given]
    return replace(own, entries=(*own.entries, *(entry for entry in entries if entry is not None)), given=tuple(given))


def gone_text(gone: Sequence[str], next_name: str) -> str:
    """Return what a person reads whose models were taken back or removed; `next_name` "" = there is no other."""
    told = f"{gone[0]} is {'not shared with you' if _FROM in gone[0] else 'not among your models'} any more"
    if next_name:
        return f"{told}: continuing with {next_name}."
    return f"{told}, and you have no other model. Add one of your own on the Models page, or ask an admin to share one."


def _given_entry(gift: GivenModel, file: RegistryFile | None, own: ModelRegistry) -> ModelEntry | None:
    """The model as its owner has it, with what its owner's use and the reader's own showed."""
    model = next((one for one in file.models if one.name == gift.model), None) if file is not None else None
    if model is None:
        return None
    name = shared_name(gift.model, gift.owner)
    entry = applied(entry_of(model), file.learned.get(model.name, ()) if file is not None else ())
    return replace(applied(entry, own.learned.get(name, ())), name=name, owner_id=gift.owner_id, owner=gift.owner)
