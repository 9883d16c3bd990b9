"""The names by which other programs ask for models: `cortex`, the person's models, and further names that they set.

Many programs insist on a name such as gpt-4o. A further name stands for a model, or for one that makes embeddings at a
model's server; it is kept in the person's registry file, and a model of the same name goes before it.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import NotFound, UserError
from cortex.base.model import ModelEntry, Price
from cortex.base.user import User
from cortex.services.api.requests import MODEL
from cortex.services.models.files import ALIASES_MOST, FileAlias, read_form
from cortex.services.models.models import Models
from cortex.services.models.registry import ModelRegistry

ANY = "*"
TAG = ":latest"  # which Ollama's clients put behind a name without a tag
NO_EMBEDDINGS = (
    "No model named {name!r} makes embeddings here. In Cortex, under Account, Tokens, Names for models, give it this "
    "name and say which model of one of your servers makes the embeddings."
)


class OfferedModel(Struct, frozen=True, kw_only=True):
    """A model as programs may ask for it. `target`: what the name stands for; `entry`: None for `cortex`."""

    name: str
    target: str
    entry: ModelEntry | None = None


class ModelNames(Struct, frozen=True, kw_only=True):
    """Sets, lists and resolves them."""

    models: Models

    async def list(self, user: User) -> tuple[FileAlias, ...]:
        """The further names, as they were set."""
        return (await self.models.shown(user)).aliases

    async def targets(self, user: User) -> tuple[str, ...]:
        """Return what a name may stand for."""
        return (MODEL, *(entry.name for entry in (await self.models.shown(user)).entries))

    async def add(self, user: User, values: Mapping[str, Any]) -> FileAlias:
        """Set a name; one of the same name is replaced. UserError, Slips."""
        alias = read_form(FileAlias, values)
        file, version = await self.models.store.read(user.id)
        registry = await self.models.registry(user)
        if alias.name == MODEL or registry.get(alias.name) is not None:
            raise UserError(f"{alias.name} is the name of a model already.", field="name")
        entry = registry.get(alias.model)
        if entry is None and alias.model != MODEL:
            raise UserError(f"There is no model {alias.model!r}.", field="model")
        if alias.embeds:
            _must_embed(entry)
        kept = tuple(one for one in file.aliases if one.name != alias.name)
        if len(kept) >= ALIASES_MOST:
            raise UserError(f"At most {ALIASES_MOST} names. Remove one that no program asks for.")
        await self.models.store.write(user.id, file, file.model_copy(update={"aliases": (*kept, alias)}), version)
        return alias

    async def remove(self, user: User, name: str) -> None:
        """Forget a name. NotFound."""
        file, version = await self.models.store.read(user.id)
        kept = tuple(one for one in file.aliases if one.name != name)
        if len(kept) == len(file.aliases):
            raise NotFound(f"There is no name {name[:80]!r}.")
        await self.models.store.write(user.id, file, file.model_copy(update={"aliases": kept}), version)

    async def offered(self, user: User) -> tuple[OfferedModel, ...]:
        """Return what programs may ask to answer them: names for embeddings are left out."""
        registry = await self.models.registry(user)
        own = [OfferedModel(name=entry.name, target=entry.name, entry=entry) for entry in registry.entries]
        further = [
            OfferedModel(name=alias.name, target=alias.model, entry=registry.get(alias.model))
            for alias in registry.aliases
            if alias.name != ANY and not alias.embeds and registry.get(alias.name) is None
        ]
        return (OfferedModel(name=MODEL, target=MODEL), *own, *further)

    async def target(self, user: User, name: str) -> str:
        """The model that a program asks for by this name. NotFound, with what there is, where it stands for none."""
        registry = await self.models.registry(user)
        alias = _alias(registry, name)
        if alias is not None:
            if alias.embeds:
                raise UserError(f"{alias.name} makes embeddings; it can't answer.", field="model")
            name = alias.model
        for one in (name, name.removesuffix(TAG)):
            if one in ("", MODEL) or registry.get(one) is not None:
                return one or MODEL
        there_are = ", ".join(one.name for one in await self.offered(user))
        raise NotFound(f"There is no model {name[:80]!r}. Available: {there_are}.")

    async def embedder(self, user: User, name: str) -> ModelEntry:
        """The model to ask for embeddings by this name, an own one. NotFound where nothing is set up, UserError."""
        registry = await self.models.registry(user)
        alias = _alias(registry, name, embeds=True)
        bare = name.removesuffix(TAG)
        entry = registry.get(alias.model if alias else bare)
        if entry is None:
            raise NotFound(NO_EMBEDDINGS.format(name=name[:80]))
        _must_embed(entry)
        if alias is None or alias.embeds in ("", entry.model):
            return entry
        return replace(entry, model=alias.embeds, price=Price())


def _alias(registry: ModelRegistry, name: str, *, embeds: bool = False) -> FileAlias | None:
    """The name as it was set, else the one for all unknown names; None for that of a model, which goes first."""
    names = (name, name.removesuffix(TAG))
    if any(one == MODEL or registry.get(one) is not None for one in names):
        return None
    fitting = [one for one in registry.aliases if one.name in names]
    rest = [one for one in registry.aliases if one.name == ANY and bool(one.embeds) == embeds]
    return next(iter([*fitting, *rest]), None)


def _must_embed(entry: ModelEntry | None) -> None:
    """UserError for a model whose server is not asked for embeddings."""
    if entry is None:
        raise UserError("Choose one of your models: its server makes the embeddings.", field="model")
    if entry.owner_id:
        raise UserError(f"{entry.owner} shares {entry.name} for answers only, not for embeddings.", field="model")
    if entry.provider != "openai":
        raise UserError(f"The server of {entry.name} makes no embeddings that Cortex can ask for.", field="model")
