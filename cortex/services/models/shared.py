"""Models of one account as another one has them: under a name that says whose they are, with the owner's key. Pure.

An own model's name has no parentheses, so that no name can mean two models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cortex.base.model import ModelEntry
from cortex.services.models.files import RegistryFile
from cortex.services.models.learned import applied
from cortex.services.models.registry import ModelRegistry, entry_of
from cortex.storage.shared_models import GivenModel

_FROM = " (from "


def shared_name(model: str, owner: str) -> str:
    """Return what a model of this owner is called with others."""
    return f"{model}{_FROM}{owner})"


def with_given(own: ModelRegistry, given: Sequence[GivenModel], files: Mapping[str, RegistryFile]) -> ModelRegistry:
    """The registry with what its user has been given behind their own models.

    files: owner's id -> their registry file; a gift whose model is not there any more is passed over.
    """
    entries = [_entry(gift, files.get(gift.owner_id), own) for gift in given]
    return replace(own, entries=(*own.entries, *(entry for entry in entries if entry is not None)), given=tuple(given))


def gone_text(gone: Sequence[str], next_name: str) -> str:
    """Return what a person reads whose models were taken back or removed; `next_name` "" = there is no other."""
    told = f"{gone[0]} is {'not shared with you' if _FROM in gone[0] else 'not among your models'} any more"
    if next_name:
        return f"{told}: continuing with {next_name}."
    return f"{told}, and you have no other model. Add one of your own on the Models page, or ask an admin to share one."


def _entry(gift: GivenModel, file: RegistryFile | None, own: ModelRegistry) -> ModelEntry | None:
    """The model as its owner has it, with what its owner's use and the reader's own showed."""
    model = next((one for one in file.models if one.name == gift.model), None) if file is not None else None
    if model is None:
        return None
    name = shared_name(gift.model, gift.owner)
    entry = applied(entry_of(model), file.learned.get(model.name, ()) if file is not None else ())
    return replace(applied(entry, own.learned.get(name, ())), name=name, owner_id=gift.owner_id, owner=gift.owner)
