"""Whose message is tried, and for which model: a person's rights and settings, a model's cache and window.

Serves the command line and the page Try a message, which say what they assumed. No model is asked.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import NotFound, UserError
from cortex.base.model import PROFILES, ModelEntry, Profile, assumed_window, kind_of
from cortex.base.role import ToolMode
from cortex.base.user import Rank, User
from cortex.services.accounts.accounts import Accounts
from cortex.services.models.models import Models
from cortex.services.models.profiles import Profiles
from cortex.services.roles.preferences import DEFAULT_ROLE, PreferencesService
from cortex.services.roles.roles import Roles

DEFAULT_PROFILE = "none"
SOMEBODY = User(id="somebody", name="somebody", rank="admin")  # without files: what is shown is what ships


class Whom(Struct, frozen=True, kw_only=True):
    """The person and chat to plan for, as far as named; "" and None: as it holds. `rank`: as if the person had it.

    Without `user` it is somebody without files and settings of their own, and `model` is anybody's.
    """

    user: str = ""
    rank: Rank | None = None
    role: str = ""
    mode: ToolMode | None = None
    model: str = ""
    profile: str = ""


class Assumed(Struct, frozen=True, kw_only=True):
    """The assumptions of a plan. `is_person`: an account, not somebody made up.

    `entry`: the model with the profile to plan for; its name is "" where none was meant.
    """

    user: User
    is_person: bool
    role: str
    mode: ToolMode
    entry: ModelEntry

    @property
    def facts(self) -> dict[str, Any]:
        """For programs; user and model "" where none was meant, the window in tokens."""
        return {
            "user": self.user.name if self.is_person else "",
            "rank": self.user.rank,
            "role": self.role,
            "model": self.entry.name,
            "profile": kind_of(self.entry.profile),
            "window_tokens": self.entry.context_tokens,
        }

    @property
    def sentence(self) -> str:
        """For people."""
        facts = self.facts
        who = f"{facts['user']} ({facts['rank']})" if facts["user"] else f"somebody of rank {facts['rank']}"
        model = f"the model {facts['model']}" if facts["model"] else "a model"
        none = "" if self.entry.tools else " No tools are sent: this model is set to take none."
        return (
            f"Planned for {who} in the role {self.role}, and {model} of profile {facts['profile']} "
            f"that takes {facts['window_tokens']:,} tokens.{none}"
        )


class Assumptions(Struct, frozen=True, kw_only=True):
    """Turns names into what they stand for. Each unknown one is a UserError that lists what there is."""

    accounts: Accounts
    roles: Roles
    preferences: PreferencesService
    models: Models
    profiles: Profiles

    async def of(self, whom: Whom) -> Assumed:
        """Return what these names mean here."""
        user = await self._person(whom.user) if whom.user else SOMEBODY
        user = replace(user, rank=whom.rank) if whom.rank else user
        chosen = await self.preferences.get(user) if whom.user else None
        role = whom.role or (chosen.role if chosen else DEFAULT_ROLE)
        await self._check_role(user, role, is_person=bool(whom.user))
        mode = whom.mode or (chosen.mode or (await self.roles.role(user, role)).mode if chosen else "auto")
        entry = await self._entry(user, role, whom)
        if whom.profile:
            profile = profile_named(whom.profile)
            window = entry.context_tokens if "context_tokens" in entry.typed else assumed_window(profile)
            entry = replace(entry, profile=profile, context_tokens=min(entry.context_tokens, window))
        return Assumed(user=user, is_person=bool(whom.user), role=role, mode=mode, entry=entry)

    async def _person(self, name: str) -> User:
        try:
            return await self.accounts.named(name)
        except NotFound as error:
            names = [user.name for user in await self.accounts.users()]
            raise UserError(f"There is no account {name[:60]!r}; {_there_are(names)}.", field="user") from error

    async def _check_role(self, user: User, role: str, *, is_person: bool) -> None:
        names = await self.roles.names(user)
        if role not in names:
            who = user.name if is_person else f"a person of rank {user.rank}"
            raise UserError(f"There is no role {role[:80]!r} for {who}; {_there_are(names)}.", field="role")

    async def _entry(self, user: User, role: str, whom: Whom) -> ModelEntry:
        """The model that was named, else the person's first for the role, else one of which only the profile is known.

        Its profile is the one in force, with what its owner's use taught.
        """
        if not whom.user and not whom.model:
            return unnamed(profile_named(whom.profile or DEFAULT_PROFILE))
        owners = [user] if whom.user else await self.accounts.users()
        known = [(owner, await self.models.shown(owner)) for owner in owners]
        if whom.model:
            found = [(owner, entry) for owner, models in known if (entry := models.get(whom.model))]
        else:
            found = [(owner, models.first(await self.roles.role(owner, role))) for owner, models in known]
        if not found:
            names = sorted({entry.name for _, models in known for entry in models.entries})
            whose = f" of {user.name}" if whom.user else ""
            raise UserError(f"There is no model {whom.model[:60]!r}{whose}; {_there_are(names)}.", field="model")
        own = [(owner, entry) for owner, entry in found if not entry.owner_id] or found[:1]
        if len({entry for _, entry in own}) > 1:  # the offline model is everybody's
            names = [owner.name for owner, _ in own]
            raise UserError(
                f"Several people have a model {whom.model!r}: say whose, of {', '.join(names)}.", field="user"
            )
        owner, entry = own[0]
        return replace(entry, profile=(await self.profiles.profile_of(owner, entry)).profile)


def unnamed(profile: Profile) -> ModelEntry:
    """A model of which only the profile is known."""
    return ModelEntry(name="", provider="", profile=profile, context_tokens=assumed_window(profile))


def profile_named(name: str) -> Profile:
    """The profile of this name."""
    found = next((profile for known, profile in PROFILES.items() if known == name), None)
    if found is None:
        raise UserError(f"There is no profile {name[:60]!r}; {_there_are([*PROFILES])}.", field="profile")
    return found


def _there_are(names: Sequence[str]) -> str:
    return f"there are {', '.join(names)}" if names else "there is none yet"
