"""The shape of `model_registry.json` and of the Models page's form, checked by pydantic; cache defaults.

Pure: reading and writing the file, secrets and connections are the business of `services/models/models.py`.
"""

import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from cortex.base.errors import UserError
from cortex.base.form_words import what_is_wrong
from cortex.base.model import OFFLINE, ModelEntry, Price, Profile
from cortex.base.role import Role
from cortex.base.settings import MAX_ROUNDS_CAP
from cortex.selection.cache_profiles import shipped
from cortex.selection.late_tools import is_native
from cortex.storage.shared_models import GivenModel

FILE = "model_registry.json"
Kind = Literal["openai", "anthropic"]
OWN_HOSTS = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._:/-]{0,59}$")]
ChainName = Annotated[str, Field(min_length=1, max_length=160)]  # also of a model that somebody else shares
_WORDS = {  # where more can be said than of any form
    "missing": "it is needed",
    "string_pattern_mismatch": "use letters, digits, spaces and . _ : / -, starting with a letter or digit",
}
Dollars = Annotated[float, Field(ge=0, le=10_000)]


def _web_address(url: str) -> str:
    if not url:
        return ""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise ValueError("write an address like https://host/v1, without a name and password in it")
    if parts.query or parts.fragment:
        raise ValueError("remove everything from ? or # on")
    return url.rstrip("/")


WebAddress = Annotated[str, Field(max_length=400), AfterValidator(_web_address)]


class StrictModel(BaseModel):
    """Outside data: no field that is not known, nothing quoted in an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True, hide_input_in_errors=True)


class FilePrice(StrictModel):
    """US dollars for a million tokens."""

    input_usd: Dollars | None = None
    output_usd: Dollars | None = None
    cached_usd: Dollars | None = None
    written_usd: Dollars | None = None


class FileCache(StrictModel):
    """What differs from the defaults of `base/model.py` `Profile`."""

    caches: bool | None = None
    read_factor: Annotated[float, Field(ge=0, le=2)] | None = None
    write_factor: Annotated[float, Field(ge=0, le=4)] | None = None
    minimum_tokens: Annotated[int, Field(ge=0, le=100_000)] | None = None
    life_s: Annotated[int, Field(ge=1, le=604_800)] | None = None
    late_tools: Literal["native", "bridge", "stubs", "rewrite"] | None = None
    strength: Literal["strong", "weak"] | None = None


class FileTest(StrictModel):
    """What the last test of a model found."""

    at: datetime
    is_ok: bool
    lines: Annotated[tuple[str, ...], Field(max_length=8)] = ()


class ServerAddress(StrictModel):
    """Which server."""

    provider: Kind = "openai"
    base_url: WebAddress = ""


class FileConnection(ServerAddress):
    """A server whose key is stored while no model of it is chosen yet."""

    secret: Annotated[str, Field(max_length=120)]


class FileModel(StrictModel):
    """One model of the file; the form adds the key to it. `by_hand`: what its person set, which no test overrules."""

    name: Name
    provider: Kind
    model: Annotated[str, Field(min_length=1, max_length=200)]
    base_url: WebAddress = ""
    secret: Annotated[str, Field(max_length=120)] = ""
    context_tokens: Annotated[int, Field(ge=1_000, le=20_000_000)] = 128_000
    max_output_tokens: Annotated[int, Field(ge=16, le=1_000_000)] = 4_096
    max_rounds: Annotated[int, Field(ge=1, le=MAX_ROUNDS_CAP)] | None = None
    timeout_s: Annotated[float, Field(ge=1, le=3_600)] = 120.0
    streams: bool = True
    tools: bool = True
    parallel_calls: bool = True
    sees: bool | None = None
    price: FilePrice = FilePrice()
    cache: FileCache = FileCache()
    extra: Annotated[dict[str, Any], Field(max_length=20)] = Field(default_factory=dict)
    tested: FileTest | None = None
    by_hand: Annotated[tuple[Literal["streams", "tools"], ...], Field(max_length=2)] = ()

    @field_validator("name")
    @classmethod
    def _not_reserved(cls, name: str) -> str:
        if name.lower() == OFFLINE.name:
            raise ValueError("this name is reserved for the offline demo model")
        return name


class ModelForm(FileModel):
    """What the page sends. An empty `api_key` keeps the stored one; `forget_key` removes it."""

    api_key: SecretStr = SecretStr("")
    forget_key: bool = False


class RegistryFile(StrictModel):
    """The whole file. `default`: the chain tried when a role names none; empty = every model in order.

    `waiting`: a server that was connected by a key, of which no model is chosen yet.
    """

    models: tuple[FileModel, ...] = ()
    default: tuple[ChainName, ...] = ()
    roles: dict[str, tuple[ChainName, ...]] = Field(default_factory=dict)
    waiting: FileConnection | None = None

    @field_validator("models")
    @classmethod
    def _names_differ(cls, models: tuple[FileModel, ...]) -> tuple[FileModel, ...]:
        names = [model.name for model in models]
        twice = next((name for name in names if names.count(name) > 1), "")
        if twice:
            raise ValueError(f"the name {twice!r} is used twice")
        return models

    @property
    def secrets(self) -> frozenset[str]:
        """The names of the stored keys that the file refers to."""
        return frozenset(one.secret for one in self._held if one.secret)

    def key_for(self, place: "ServerAddress | FileModel") -> str:
        """The name of the key that is stored for the server of `place`; "" when there is none."""
        return next((one.secret for one in self._held if one.secret and origin_of(one) == origin_of(place)), "")

    @property
    def _held(self) -> "Sequence[FileConnection | FileModel]":
        return [*([self.waiting] if self.waiting else []), *self.models]

    def with_key(self, old: str, new: str) -> "RegistryFile":
        """The file with another key in the place of `old`, for every model that used that one."""
        models = [one.model_copy(update={"secret": new}) if one.secret == old else one for one in self.models]
        return self.model_copy(update={"models": tuple(models)})


def read(text: str) -> RegistryFile:
    """The file's content; UserError that names every slip."""
    try:
        return RegistryFile.model_validate_json(text or "{}")
    except ValidationError as error:
        raise UserError(f"{FILE} can't be read: {slips(error)}. Nothing was changed. Correct the file.") from error


def written(file: RegistryFile) -> str:
    """The file's text, defaults left out."""
    return json.dumps(file.model_dump(mode="json", exclude_defaults=True), indent=2, ensure_ascii=False) + "\n"


class Slips(UserError):
    """A form's slips. `fields`: dotted place of the field -> what is wrong with it, as a sentence."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__(f"{slips(error)}.")
        self.fields = {place: f"{words[:1].upper()}{words[1:]}." for place, words in placed_slips(error)}


def checked(values: Mapping[str, Any]) -> ModelForm:
    """The form's values, text as a browser sends it; Slips that name every field that is wrong."""
    try:
        return ModelForm.model_validate({key: value for key, value in values.items() if value not in ("", None)})
    except ValidationError as error:
        raise Slips(error) from error


def slips(error: ValidationError) -> str:
    """What is wrong, field by field."""
    return "; ".join(f"{place}: {words}" if place else words for place, words in placed_slips(error))


def placed_slips(error: ValidationError) -> list[tuple[str, str]]:
    """What is wrong: the field's dotted place ("" for the whole), and why."""
    told = []
    for each in error.errors(include_input=False, include_url=False):
        said = _WORDS.get(each["type"]) or what_is_wrong(each)
        told.append((".".join(str(step) for step in each["loc"]), said[:1].lower() + said[1:]))
    return told


def entry_of(model: FileModel) -> ModelEntry:
    """The entry with the cache defaults of its endpoint filled in."""
    own = model.cache.model_dump(exclude_none=True)
    return ModelEntry(
        name=model.name,
        provider=model.provider,
        model=model.model,
        base_url=model.base_url,
        secret=model.secret,
        context_tokens=model.context_tokens,
        max_output_tokens=model.max_output_tokens,
        max_rounds=model.max_rounds,
        timeout_s=model.timeout_s,
        streams=model.streams,
        tools=model.tools,
        parallel_calls=model.parallel_calls,
        sees=model.sees,
        price=Price(**model.price.model_dump()),
        profile=replace(
            default_profile(model.provider, model.model, model.base_url, thinks=bool(model.extra.get("thinking"))),
            **own,
        ),
        typed=tuple(own),
        extra_params=tuple((key, json.dumps(value)) for key, value in sorted(model.extra.items())),
    )


def default_profile(provider: str, model: str, base_url: str, *, thinks: bool = False) -> Profile:
    """What the endpoint's cache does and whether it declares tools late, as far as address and model tell."""
    host = urlsplit(base_url).hostname or ""
    found = shipped(provider, model, host, is_inside=bool(host) and is_inside(host))
    can_declare = found.caches and is_native(provider, model, host, thinks=thinks)
    return replace(found, late_tools="native") if can_declare else found


def is_inside(host: str) -> bool:
    """Whether the host's name alone says that it stands in this house or network."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".internal", ".home.arpa", ".localhost"))


def host_of(provider: str, base_url: str) -> str:
    """The server as a person reads it: its host, with the port where there is one."""
    return urlsplit(base_url).netloc or OWN_HOSTS.get(provider, provider)


def origin_of(model: ServerAddress | FileModel) -> tuple[str, str, int]:
    """Where the model's key travels to: kind, host, port. A stored key is never sent to another place."""
    parts = urlsplit(model.base_url)
    default = 443 if parts.scheme in ("https", "") else 80
    return model.provider, (parts.hostname or "").lower(), parts.port or default


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRegistry:
    """A user's models as they stand, their own first. `default`: the chain of roles that name none.

    `with_key`: own ones that have a stored key. `given`: what others share with the user, whose entries name an owner.
    `tested`: what the last test of each own model found. `waiting`: a server whose models are still to be chosen.
    """

    entries: tuple[ModelEntry, ...] = ()
    default: tuple[str, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    with_key: frozenset[str] = frozenset()
    given: tuple[GivenModel, ...] = ()
    tested: Mapping[str, FileTest] = field(default_factory=dict)
    waiting: FileConnection | None = None

    def key_mates(self, name: str) -> tuple[str, ...]:
        """The own models that use the same stored key as this one."""
        secret = next((entry.secret for entry in self.own if entry.name == name), "")
        return tuple(one.name for one in self.own if secret and one.secret == secret and one.name != name)

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

    def first(self, role: Role, chosen: str = "") -> ModelEntry:
        """The entry that is tried first, as in `chain`."""
        return self.get(self.chain(role, chosen)[0]) or OFFLINE

    def get(self, name: str) -> ModelEntry | None:
        """The entry of this name; the offline model under its own."""
        found = next((entry for entry in self.entries if entry.name == name), None)
        return found or (OFFLINE if name == OFFLINE.name else None)


def registry_of(file: RegistryFile) -> ModelRegistry:
    """What the file says, as services read it."""
    return ModelRegistry(
        entries=tuple(entry_of(model) for model in file.models),
        default=file.default,
        roles=file.roles,
        with_key=frozenset(model.name for model in file.models if model.secret),
        tested={model.name: model.tested for model in file.models if model.tested is not None},
        waiting=file.waiting,
    )


def kept_key(form: ModelForm, old: FileModel | None, file: RegistryFile) -> str:
    """The name of the stored key that goes on being used: the model's, for a new one that of its provider.

    UserError when the address it was given for has changed.
    """
    if form.forget_key or form.api_key.get_secret_value().strip():
        return ""
    if old is None:
        return file.key_for(form)
    if not old.secret:
        return ""
    if origin_of(old) != origin_of(form):
        raise UserError("The address changed, so the stored key is not sent there. Enter the key again.")
    return old.secret


def stored_as(form: ModelForm, old: FileModel | None, secret: str) -> FileModel:
    """The model as the file holds it: the form's values, and of the old one what the form does not show."""
    values = form.model_dump(exclude={"api_key", "forget_key", "secret", "tested", "by_hand"})
    known = {name: getattr(old, name) for name in ("streams", "tools") if old and name not in old.by_hand}
    values["by_hand"] = [name for name in ("streams", "tools") if known.get(name) != getattr(form, name)]
    if old is not None:
        values |= {"cache": form.cache if "cache" in form.model_fields_set else old.cache}
        values |= {"extra": form.extra if "extra" in form.model_fields_set else old.extra}
        values["price"] = {"written_usd": old.price.written_usd, **form.price.model_dump(exclude_unset=True)}
        values["tested"] = old.tested if is_same_place(form, old) else None
    return FileModel(**values, secret=secret)


def is_same_place(one: FileModel, other: FileModel) -> bool:
    """Whether both are the same model of the same server."""
    return (origin_of(one), one.base_url, one.model) == (origin_of(other), other.base_url, other.model)


def placed(file: RegistryFile, model: FileModel | None, previous: str) -> RegistryFile:
    """The file with the model in the place of `previous` (at the end if there is none), or without it."""
    put = [model] if model is not None else []
    if any(each.name == previous for each in file.models):
        models = [new for each in file.models for new in (put if each.name == previous else [each])]
    else:
        models = [*file.models, *put]

    def renamed(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(new for name in names for new in ([m.name for m in put] if name == previous else [name]))

    roles = {role: renamed(names) for role, names in file.roles.items()}
    return RegistryFile(
        models=tuple(models),
        default=renamed(file.default),
        roles={role: names for role, names in roles.items() if names},
        waiting=file.waiting,
    )
