"""Regimes of cost: what the backend caches, how fast messages follow, what kind of work is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from msgspec import structs

from cortex.base.model import Profile
from cortex.base.role import Channel
from tests.bench.ground import CACHED, LOCAL
from tests.bench.talks import Talk

Work = Literal["chats", "long", "tasks", "jobs"]
SOON_S, LATER_S, ROUND_S = 40, 1_800, 6
CHATS_IN_A_LONG_ONE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """`gap_s`: from answer to next message. `tools`: how many the registry is grown to, 0 = as it ships.

    `output_factor`: the price of an output token; 0 where the prefill of a local model is all that counts.
    """

    profile: Profile
    work: Work = "chats"
    gap_s: int = SOON_S
    channel: Channel = "chat"
    tools: int = 0
    output_factor: float = 1.0


REGIMES: Mapping[str, Regime] = MappingProxyType(
    {
        "none": Regime(profile=Profile()),
        "cold": Regime(profile=CACHED, gap_s=LATER_S),
        "warm10": Regime(profile=CACHED),
        "warm30": Regime(profile=CACHED, work="long"),
        "half_price": Regime(profile=structs.replace(CACHED, read_factor=0.5, write_factor=1.0)),
        "one_task_10_rounds": Regime(profile=CACHED, work="tasks"),
        "cron": Regime(profile=CACHED, work="jobs", channel="cron"),
        "local_slot": Regime(profile=LOCAL, output_factor=0.0),
        "local_cold": Regime(profile=LOCAL, gap_s=LATER_S, output_factor=0.0),
        "warm_120_tools": Regime(profile=CACHED, tools=120),
    }
)


def on_backend(regime: Regime, profile: Profile) -> Regime:
    """The regime's work and pauses behind another backend; where reading again is free, its output costs nothing."""
    return replace(regime, profile=profile, output_factor=1.0 if profile.read_factor else 0.0)


def long_talks(chats: Sequence[Talk]) -> tuple[Talk, ...]:
    """Chats put one behind the other, each beginning one long talk: all messages appear equally often."""
    count = len(chats)
    return tuple(
        tuple(turn for step in range(CHATS_IN_A_LONG_ONE) for turn in chats[(at + step) % count])
        for at in range(0, count, 2)
    )
