"""The shape of `model_registry.json` and of the Models page's form, checked by pydantic.

Pure: reading and writing the file, secrets and connections are the business of `services/models/models.py`.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from cortex.base.address import with_scheme
from cortex.base.errors import UserError
from cortex.base.form_words import what_is_wrong
from cortex.base.model import OFFLINE, TIMEOUT_S
from cortex.base.settings import MAX_ROUNDS_CAP
from cortex.base.trust import Certificates
from cortex.base.web_address import web_place

FILE = "model_registry.json"
FILE_CHARACTERS = 250_000
MODELS_MOST = 1_000
ALIASES_MOST = 100
Kind = Literal["openai", "anthropic"]
OWN_HOSTS = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._:/-]{0,59}$")]
ChainName = Annotated[str, Field(min_length=1, max_length=160)]  # also of a model that somebody else shares
_WORDS = {  # where more can be said than of any form
    "missing": "it is needed",
    "string_pattern_mismatch": "use letters, digits, spaces and . _ : / -, starting with a letter or digit",
}
B = TypeVar("B", bound=BaseModel)
Dollars = Annotated[float, Field(ge=0, le=10_000)]


def _web_address(url: str) -> str:
    if not url.strip():
        return ""
    url = with_scheme(url.strip())
    try:
        web_place(url)
        parts = urlsplit(url)
    except ValueError as error:
        raise ValueError(f"write an address like https://host/v1: {error}") from None
    if parts.username is not None or parts.password is not None:
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
    """The differences from the defaults of `base/model.py` `Profile`."""

    caches: bool | None = None
    read_factor: Annotated[float, Field(ge=0, le=2)] | None = None
    write_factor: Annotated[float, Field(ge=0, le=4)] | None = None
    minimum_tokens: Annotated[int, Field(ge=0, le=100_000)] | None = None
    life_s: Annotated[int, Field(ge=1, le=604_800)] | None = None
    late_tools: Literal["native", "bridge", "stubs", "rewrite"] | None = None
    strength: Literal["strong", "weak"] | None = None


class FileTest(StrictModel):
    """The result of the last test of a model."""

    at: datetime
    is_ok: bool
    lines: Annotated[tuple[str, ...], Field(max_length=8)] = ()


Engine = Annotated[str, Field(pattern=r"^[a-z0-9-]{0,40}$")]


class FileTold(StrictModel):
    """A model's facts besides its window, as its server last said them, as in `ports/model_lists.py: ServerFacts`.

    `is_overruled`: its person wants tools sent whatever is said of the template.
    """

    tools: bool | None = None
    is_overruled: bool = False
    slots: Annotated[int, Field(ge=1, le=10_000)] | None = None


class ServerAddress(StrictModel):
    """The address of a server, and the authorities of its certificate where it is a private one (PEM).

    `engine`: what it is, as in `base/model.py: ModelEntry`, where somebody said or found it.
    """

    provider: Kind = "openai"
    base_url: WebAddress = ""
    ca: Certificates = ""
    engine: Engine = ""


FactKind = Literal["context_tokens", "max_output_tokens", "tools", "sees", "streams", "parameter", "tool"]
FACTS_MOST = 60


class FileFact(StrictModel):
    """A refusal of a model's server, and when. `value`: the tokens that it takes, or the parameter or tool; else ""."""

    what: FactKind
    value: Annotated[str, Field(max_length=80)] = ""
    at: datetime


class FileConnection(ServerAddress):
    """A server whose key is stored while no model of it is chosen yet."""

    secret: Annotated[str, Field(max_length=120)]


class FileModel(StrictModel):
    """One model of the file; the form adds the key to it. `by_hand`: what its person set, which no test overrules.

    `context_tokens`: None where nobody gave it. `told_tokens`, `told`: what its server last said of it. `engine`: what
    its server was found to be, as in `base/model.py: ModelEntry`. `profile`: what it
    caches, by name, with `cache` over it; found: as its address and family are known to.
    """

    name: Name
    provider: Kind
    model: Annotated[str, Field(min_length=1, max_length=200)]
    base_url: WebAddress = ""
    ca: Certificates = ""
    secret: Annotated[str, Field(max_length=120)] = ""
    context_tokens: Annotated[int, Field(ge=1_000, le=20_000_000)] | None = None
    told_tokens: Annotated[int, Field(ge=1)] | None = None
    engine: Engine = ""
    told: FileTold = FileTold()
    max_output_tokens: Annotated[int, Field(ge=16, le=1_000_000)] = 4_096
    max_rounds: Annotated[int, Field(ge=1, le=MAX_ROUNDS_CAP)] | None = None
    timeout_s: Annotated[float, Field(ge=1, le=3_600)] = TIMEOUT_S
    streams: bool = True
    tools: bool = True
    parallel_calls: bool = True
    sees: bool | None = None
    price: FilePrice = FilePrice()
    profile: Literal["found", "anthropic", "openai", "local", "none"] = "found"
    cache: FileCache = FileCache()
    extra: Annotated[dict[str, Any], Field(max_length=20)] = Field(default_factory=dict)
    tested: FileTest | None = None
    by_hand: Annotated[tuple[Literal["streams", "tools"], ...], Field(max_length=2)] = ()

    @property
    def drops_tools(self) -> bool:
        """Tell whether its server says that the template takes no tools, and nobody wants them sent all the same."""
        return self.told.tools is False and not self.told.is_overruled

    @field_validator("name")
    @classmethod
    def _not_reserved(cls, name: str) -> str:
        if name.lower() == OFFLINE.name:
            raise ValueError("this name is reserved for the offline demo model")
        return name


class ModelForm(FileModel):
    """The form that the page sends. An empty `api_key` keeps the stored one; `forget_key` removes it."""

    api_key: SecretStr = SecretStr("")
    forget_key: bool = False


class FileAlias(StrictModel):
    """A name that other programs ask for. `model`: whose name it stands for; `*` as a name: for every unknown one.

    `embeds`: the model of that one's server that makes embeddings, "" where the name is for answers.
    """

    name: Annotated[str, Field(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9 ._:/@-]{0,119})$")]
    model: ChainName
    embeds: Annotated[str, Field(max_length=200)] = ""


class RegistryFile(StrictModel):
    """The whole file. `default`: the chain tried when a role names none; empty = every model in order.

    `waiting`: a server that was connected by a key, of which no model is chosen yet. `learned`: what was seen of each
    model that this person uses, those of others among them.
    `aliases`: further names, by which other programs ask for models.
    """

    models: Annotated[tuple[FileModel, ...], Field(max_length=MODELS_MOST)] = ()
    default: tuple[ChainName, ...] = ()
    roles: dict[str, tuple[ChainName, ...]] = Field(default_factory=dict)
    waiting: FileConnection | None = None
    learned: dict[ChainName, Annotated[tuple[FileFact, ...], Field(max_length=FACTS_MOST)]] = Field(
        default_factory=dict, max_length=MODELS_MOST
    )
    aliases: Annotated[tuple[FileAlias, ...], Field(max_length=ALIASES_MOST)] = ()

    @field_validator("models")
    @classmethod
    def _names_differ(cls, models: tuple[FileModel, ...]) -> tuple[FileModel, ...]:
        twice = next((name for name, count in Counter(model.name for model in models).items() if count > 1), "")
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

    def ca_for(self, place: "ServerAddress | FileModel") -> str:
        """The authorities that are stored for the server of `place`; "" when there are none."""
        return next((one.ca for one in self._held if one.ca and origin_of(one) == origin_of(place)), "")

    def engine_for(self, place: "ServerAddress | FileModel") -> str:
        """Return what the server of `place` was found to be; "" where nobody knows."""
        return next((one.engine for one in self._held if one.engine and origin_of(one) == origin_of(place)), "")

    @property
    def _held(self) -> "Sequence[FileConnection | FileModel]":
        return [*([self.waiting] if self.waiting else []), *self.models]

    def with_key(self, old: str, new: str) -> "RegistryFile":
        """The file with another key in the place of `old`, for every model that used that one."""
        models = [one.model_copy(update={"secret": new}) if one.secret == old else one for one in self.models]
        return self.model_copy(update={"models": tuple(models)})


def read(text: str) -> RegistryFile:
    """The file's content; UserError that names every slip."""
    if len(text) > FILE_CHARACTERS:
        raise UserError(
            f"{FILE} has {len(text):,} characters; at most {FILE_CHARACTERS:,} are read. Nothing was changed. Correct "
            "the file."
        )
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


def read_form(kind: type[B], values: Mapping[str, Any]) -> B:
    """A form's values, text as a browser sends it; Slips that name every field that is wrong."""
    try:
        return kind.model_validate({key: value for key, value in values.items() if value not in ("", None)})
    except ValidationError as error:
        raise Slips(error) from error


def slips(error: ValidationError) -> str:
    """Return what is wrong, field by field."""
    return "; ".join(f"{place}: {words}" if place else words for place, words in placed_slips(error))


def placed_slips(error: ValidationError) -> list[tuple[str, str]]:
    """Return what is wrong: the field's dotted place ("" for the whole), and why."""
    told = []
    for each in error.errors(include_input=False, include_url=False):
        said = _WORDS.get(each["type"]) or what_is_wrong(each)
        told.append((".".join(str(step) for step in each["loc"]), said[:1].lower() + said[1:]))
    return told


def host_of(provider: str, base_url: str) -> str:
    """The server as a person reads it: its host, with the port where there is one."""
    return urlsplit(base_url).netloc or OWN_HOSTS.get(provider, provider)


def origin_of(model: ServerAddress | FileModel) -> tuple[str, str, int]:
    """Where the model's key travels to: kind, host, port. A stored key is never sent to another place."""
    parts = urlsplit(model.base_url)
    default = 443 if parts.scheme in ("https", "") else 80
    return model.provider, (parts.hostname or "").lower(), parts.port or default


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


_NOT_TYPED = {"api_key", "forget_key", "secret", "tested", "by_hand", "told_tokens", "told", "engine"}


def stored_as(form: ModelForm, old: FileModel | None, secret: str) -> FileModel:
    """The model as the file holds it: the form's values, and of the old one what the form does not show."""
    values = form.model_dump(exclude=_NOT_TYPED)
    known = {name: getattr(old, name) for name in ("streams", "tools") if old and name not in old.by_hand}
    if old is not None and old.drops_tools:  # the page showed it as off: nobody chose that
        values["tools"] = form.tools or old.tools
        known |= {"tools": form.tools} if "tools" in known else {}
    values["by_hand"] = [name for name in ("streams", "tools") if known.get(name) != getattr(form, name)]
    if old is not None:
        values |= {"cache": form.cache if "cache" in form.model_fields_set else old.cache}
        values |= {"extra": form.extra if "extra" in form.model_fields_set else old.extra}
        values["price"] = {"written_usd": old.price.written_usd, **form.price.model_dump(exclude_unset=True)}
        values |= {"profile": form.profile if "profile" in form.model_fields_set else old.profile}
        if is_same_place(form, old):
            told = old.told.model_copy(update={"is_overruled": True}) if old.drops_tools and form.tools else old.told
            values |= {"tested": old.tested, "told_tokens": old.told_tokens, "told": told, "engine": old.engine}
    return FileModel(**values, secret=secret)


def is_same_place(one: FileModel, other: FileModel) -> bool:
    """Tell whether both are the same model of the same server."""
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
    old = next((each for each in file.models if each.name == previous), None)
    learned = {name: facts for name, facts in file.learned.items() if name != previous}
    if model is not None and old is not None and is_same_place(model, old) and previous in file.learned:
        learned[model.name] = _still(file.learned[previous], model, old)
    aliases = [one.model_copy(update={"model": name}) for one in file.aliases for name in renamed((one.model,))]
    return RegistryFile(
        models=tuple(models),
        default=renamed(file.default),
        roles={role: names for role, names in roles.items() if names},
        waiting=file.waiting,
        learned={name: facts for name, facts in learned.items() if facts},
        aliases=tuple(aliases),
    )


def _still(facts: tuple[FileFact, ...], model: FileModel, old: FileModel) -> tuple[FileFact, ...]:
    """Return what stays learned after a change: a field that was set anew counts as it was set."""
    changed = {name for name in FileModel.model_fields if getattr(model, name) != getattr(old, name)}
    changed |= {"context_tokens"} if "told_tokens" in changed else set()
    changed |= set(model.by_hand) - set(old.by_hand)
    return tuple(fact for fact in facts if fact.what not in changed)
