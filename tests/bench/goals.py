"""What recipes are held against: the goals, by kind of set and key, by name of a set, and by regime."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """At least, or at most, this much."""

    value: float
    is_most: bool = False

    def is_met(self, value: float) -> bool:
        """Whether the figure keeps it."""
        return value <= self.value if self.is_most else value >= self.value

    @property
    def shown(self) -> str:
        """The goal as a table has it."""
        return f"{'≤' if self.is_most else '≥'}{self.value:g}"


def _least(value: float) -> Goal:
    return Goal(value=value)


def _most(value: float) -> Goal:
    return Goal(value=value, is_most=True)


OURS = "cortex"
_ROUTING = {
    "recall": _least(0.97),
    "worst_category_recall": _least(0.95),
    "recall_after_discover": _least(0.985),
    "tools_mean": _most(4),
    "tokens_share": _most(0.10),
    "chat_any": _most(0.20),
    "chat_tokens_share": _most(0.03),
    "llm_nonweb": _most(0.45),
    "p99_ms": _most(2),
}
# Inside an epoch what was sent stays, small talk or not: what such a turn carries is judged on first messages alone.
_MULTITURN = {
    **{key: goal for key, goal in _ROUTING.items() if not key.startswith(("chat", "llm"))},
    "recall": _least(0.98),
    "recall_own": _least(0.98),
    "tools_mean": _most(8),
}
SELECTION: Mapping[str, Mapping[str, Goal]] = MappingProxyType(
    {
        "routing": _ROUTING,
        "multiturn": _MULTITURN,
        "retrieval": {},
        "latency": {"p99_ms": _most(5), "rank_p99_ms": _most(5)},
    }
)
# What is made has goals of its own; None: that goal is for sets as people write them.
_MADE: Mapping[str, Mapping[str, Goal | None]] = MappingProxyType(
    {
        "several": {"recall": _least(0.97), "tools_mean": _most(7)},
        "long": {"recall": _least(0.96)},
        "typos1": {"recall": _least(0.94)},
        "typos2": {"recall": None},
        "typos4": {"recall": None},
        "spoken": {"recall": None},
    }
)
UNSEEN, UNSEEN_BY_MEANING = _least(0.50), _least(0.85)  # of a server whose tools nobody was trained on
OF_ENGLISH = _least(0.965)  # recall in any other language, of that in English
RISK: Mapping[str, Goal] = MappingProxyType({"shell_exec": _most(0.05)})  # of messages that ask for nothing of it
COSTS: Mapping[str, Goal] = MappingProxyType(
    {
        "none": _most(48),
        "cold": _most(48),
        "warm10": _most(56),
        "warm30": _most(64),
        "half_price": _most(100),
        "one_task_10_rounds": _most(100),
        "cron": _most(100),
        "local_slot": _most(70),
        "local_cold": _most(48),
        "warm_120_tools": _most(60),
    }
)
# How often a conversation's prefix is written anew while the provider still holds it.
REWRITES: Mapping[str, Goal] = MappingProxyType(dict.fromkeys(("warm10", "warm30", "local_slot"), _most(0)))


def of_set(one: Mapping[str, Any], *, is_by_meaning: bool = False) -> Mapping[str, Goal]:
    """The goals of a set as the JSON has it: its kind's, or its own; `is_by_meaning`: a sentence model judged."""
    aims = SELECTION[one["kind"]]
    source, name = one.get("source"), one["name"]
    if source not in ("made", "unseen"):
        return aims
    own = _MADE.get(name, {}) if source == "made" else {"recall": UNSEEN_BY_MEANING if is_by_meaning else UNSEEN}
    held = {**aims, "worst_category_recall": None, **own}
    return {key: goal for key, goal in held.items() if goal is not None}
