"""Which cache profile is in force for a model: what a person typed, else what its usage taught, else what ships.

Called by `services/turns/planning.py` for each plan and by the usage page, which shows how many samples it rests on.
"""

from urllib.parse import urlsplit

from msgspec import Struct

from cortex.base.model import PROFILES, ModelEntry, Profile, kind_of
from cortex.base.user import User
from cortex.selection.plan.cache_economics import has_bridge
from cortex.services.models.endpoint_caches import LearnedProfile, learned
from cortex.services.models.models import Models
from cortex.storage.db import Database
from cortex.storage.rounds import RoundsRepository

SAMPLES_MOST = 200
PROFILE_NAMES = tuple(PROFILES)


class Backend(Struct, frozen=True, kw_only=True):
    """A model of the user's with its cache as it is planned with; `entry.profile` is what held before any usage."""

    entry: ModelEntry
    learned: LearnedProfile


class Profiles(Struct, frozen=True, kw_only=True):
    """Learns from the user's own ledger."""

    db: Database
    models: Models

    async def profile_of(self, user: User, entry: ModelEntry) -> LearnedProfile:
        """The profile in force for this model, with what it rests on."""
        seen = await self.db.repository(RoundsRepository, user.id).seen(endpoint_of(entry), SAMPLES_MOST)
        return learned(entry.profile, seen, entry.typed)

    async def all(self, user: User) -> tuple[Backend, ...]:
        """Every model of the registry with its cache."""
        entries = (await self.models.shown(user)).entries
        return tuple([Backend(entry=entry, learned=await self.profile_of(user, entry)) for entry in entries])

    async def told(self, user: User, entry: ModelEntry) -> str:
        """The profile in force in words, with what it rests on where usage taught it."""
        found = await self.profile_of(user, entry)
        taught = f" Your last {found.samples} calls showed it." if found.changed else ""
        return f"{in_words(found.profile)}{taught}"


def chosen_of(entry: ModelEntry) -> str:
    """The named profile that its person chose for it; found where nobody did."""
    return kind_of(entry.profile) if "profile" in entry.typed else "found"


def in_words(profile: Profile) -> str:
    """Say what the profile means: what is kept, for how long, at what price, and how late tools travel."""
    if not profile.caches:
        return "It keeps nothing: each request is read anew in full."
    least = f" of {profile.minimum_tokens:,} tokens or more" if profile.minimum_tokens > 1 else ""
    again = f"costs {profile.read_factor:.0%} of the price" if profile.read_factor else "is free"
    kept = f", keeping it costs {profile.write_factor - 1:.0%} more" if profile.write_factor > 1 else ""
    told = f"It keeps a started prompt{least} for {_span(profile.life_s)}; reading it again {again}{kept}."
    if profile.late_tools == "native":
        late = "are added by the provider without reading the rest again"
    else:
        late = "are called through tool_call" if has_bridge(profile) else "join the list, which is then read again"
    few = " It is sent few tools at a time." if profile.strength == "weak" else ""
    return f"{told} Tools that come late {late}.{few}"


def _span(life_s: int) -> str:
    for size_s, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if life_s >= size_s and life_s % size_s == 0:
            return f"{life_s // size_s} {word}{'s' if life_s > size_s else ''}"
    return f"{life_s} seconds"


def endpoint_of(entry: ModelEntry) -> str:
    """Return what a model's cache belongs to: wire, host and model; its name in the registry may change."""
    if entry.owner_id:  # where it is and what it is called there is its owner's matter
        return f"{entry.provider} of {entry.owner_id} {entry.name}"
    return f"{entry.provider} {urlsplit(entry.base_url).netloc} {entry.model}"
