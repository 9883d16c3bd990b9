"""Which cache profile is in force for a model: what a person typed, else what its usage taught, else what ships.

Called by `services/turns/planning.py` for each plan and by the usage page, which shows how many samples it rests on.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from cortex.base.model import ModelEntry
from cortex.base.user import User
from cortex.selection.cache_profiles import LearnedProfile, Sample, learned
from cortex.services.models.models import Models
from cortex.storage.db import Database
from cortex.storage.rounds import RoundsRepository

SAMPLES_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A model of the user's with its cache as it is planned with; `entry.profile` is what held before any usage."""

    entry: ModelEntry
    learned: LearnedProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """Learns from the user's own ledger."""

    db: Database
    models: Models

    async def profile_of(self, user: User, entry: ModelEntry) -> LearnedProfile:
        """The profile in force for this model, with what it rests on."""
        seen = await self.db.repository(RoundsRepository, user.id).seen(endpoint_of(entry), SAMPLES_MOST)
        samples = [
            Sample(
                idle_s=one.idle_s,
                kept_tokens=one.kept_tokens,
                cached_tokens=one.cached_tokens,
                written_tokens=one.written_tokens,
            )
            for one in seen
        ]
        return learned(entry.profile, samples, entry.typed)

    async def all(self, user: User) -> tuple[Backend, ...]:
        """Every model of the registry with its cache."""
        entries = (await self.models.shown(user)).entries
        return tuple([Backend(entry=entry, learned=await self.profile_of(user, entry)) for entry in entries])


def endpoint_of(entry: ModelEntry) -> str:
    """What a model's cache belongs to: wire, host and model; its name in the registry may change."""
    if entry.owner_id:  # where it is and what it is called there is its owner's matter
        return f"{entry.provider} of {entry.owner_id} {entry.name}"
    return f"{entry.provider} {urlsplit(entry.base_url).netloc} {entry.model}"
