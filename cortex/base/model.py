"""Facts about one model: how it is reached, what it costs, what its provider caches. No network here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

Strength = Literal["strong", "weak"]
ModelPlace = Literal["home", "out", "none"]  # where a model answers: in the house, at a provider, no model at all
# What a model takes in where nobody said it. Local servers cut silently what is too long, and often begin at 4,096.
WINDOW_TOKENS, LOCAL_WINDOW_TOKENS = 128_000, 8_192
# How long an answer is waited for. A local server first reads the whole prompt, on a small machine 30 tokens a second.
TIMEOUT_S, LOCAL_FIRST_S = 120.0, 900.0


class Profile(Struct, frozen=True, kw_only=True):
    """A backend's cache: what it keeps and at what price, relative to a plain input token.

    `read_factor` c and `write_factor` w of `selection/plan/cache_economics.py`; `minimum_tokens` below which nothing is
    cached; `life_s` after which the cache is cold. `late_tools`: the first way it has to add a tool mid-conversation.
    """

    caches: bool = False
    read_factor: float = 1.0
    write_factor: float = 1.0
    minimum_tokens: int = 1024
    life_s: int = 300
    late_tools: Literal["native", "bridge", "stubs", "rewrite"] = "rewrite"
    strength: Strength = "strong"


# What a person may say instead of an address. `anthropic`: a strong model of the kind most people use.
ProfileName = Literal["anthropic", "openai", "local", "none"]
_STRONG = Profile(caches=True, read_factor=0.1, late_tools="bridge")
PROFILES: Mapping[ProfileName, Profile] = MappingProxyType(
    {
        "anthropic": replace(_STRONG, write_factor=1.25),
        "openai": _STRONG,
        "local": Profile(
            caches=True, read_factor=0.0, minimum_tokens=1, life_s=600, late_tools="stubs", strength="weak"
        ),
        "none": Profile(),
    }
)


def kind_of(profile: Profile) -> ProfileName:
    """The named profile that this one is like; figures such as its life may differ."""
    if not profile.caches:
        return "none"
    if profile.read_factor == 0:
        return "local"
    return "anthropic" if profile.write_factor > 1 else "openai"


def assumed_window(profile: Profile, found: Profile | None = None) -> int:
    """The tokens that a model of this profile takes in, where neither a person nor its server said it.

    found: what its address speaks for, where a person chose the profile: a local server that keeps nothing is local.
    """
    is_local = profile.strength == "weak" or (found is not None and not profile.caches and found.strength == "weak")
    return LOCAL_WINDOW_TOKENS if is_local else WINDOW_TOKENS


class Price(Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens; None where unknown (shown as unknown, never as free)."""

    input_usd: float | None = None
    output_usd: float | None = None
    cached_usd: float | None = None
    written_usd: float | None = None


class ModelEntry(Struct, frozen=True, kw_only=True):
    """One model of a user's registry. `provider` is a file of `providers/`; `secret` names an encrypted secret.

    As its person set it. `sees`: whether it takes pictures; None where nobody knows. `ca`: certificate authorities
    (PEM) that are trusted for its server besides the usual ones. `typed`: what was set of the profile's fields, which
    no usage overrules, the profile as a whole (`profile`) and `context_tokens`. `owner_id`, `owner`: the account whose
    model it is and whose key pays, by id and name, where that is somebody else; "" for the user's own.

    As its server says. `engine`: the row of `providers/servers.py` that it was found to be, where its address does not
    say it. `slots`: how many requests it answers at once; 0 where nobody knows. `drops_tools`: the model's template has
    no place for tools. `first_s`: seconds until the first piece of an answer, None for `timeout_s`.

    As its server showed, by what it refused (`services/models/learned.py`). `refused`: parameters that are left out.
    `left_out`: tools whose form it does not take. `learned`: the kinds of what was seen, whatever was set.
    """

    name: str
    provider: str
    model: str = ""
    base_url: str = ""
    ca: str = ""
    secret: str = ""
    context_tokens: int = WINDOW_TOKENS
    max_output_tokens: int = 4_096
    max_rounds: int | None = None
    timeout_s: float = TIMEOUT_S
    streams: bool = True
    tools: bool = True
    parallel_calls: bool = True
    sees: bool | None = None
    price: Price = Price()
    profile: Profile = Profile()
    typed: tuple[str, ...] = ()
    extra_params: tuple[tuple[str, str], ...] = ()
    owner_id: str = ""
    owner: str = ""
    engine: str = ""
    slots: int = 0
    drops_tools: bool = False
    first_s: float | None = None
    refused: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()

    @property
    def request_tokens(self) -> int:
        """The tokens that a request may be planned for: its context, less the answer where its server counts that."""
        return self.context_tokens - (self.max_output_tokens if "context_tokens" in self.learned else 0)

    @property
    def is_slow(self) -> bool:
        """Tell whether its first words may take minutes: a weak model, on hardware of one's own."""
        return self.profile.strength == "weak"

    @property
    def takes_pictures(self) -> bool:
        """Tell whether pictures are sent to it: where nobody knows they are tried, and its server answers."""
        return self.sees if self.sees is not None else self.provider != "offline"


def no_tools(entry: ModelEntry) -> dict[str, str]:
    """The model by name where it takes no tools, with the page on which its own person changes that.

    `why`: "template" where its server says that the model's template has no place for them.
    """
    if entry.tools:
        return {}
    why = {"why": "template"} if entry.drops_tools else {}
    return {"model": entry.name, "page": "" if entry.owner_id else page_of(entry.name), **why}


def page_of(model: str) -> str:
    """The page of an own model; that of all models for another's, whose name has its owner in brackets, and for ""."""
    return f"/models/edit?{urlencode({'name': model})}" if model and "(" not in model else "/models"


OFFLINE = ModelEntry(
    name="offline",
    provider="offline",
    model="offline",
    context_tokens=32_000,
    price=Price(input_usd=0.0, output_usd=0.0, cached_usd=0.0, written_usd=0.0),
)
