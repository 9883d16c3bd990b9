"""What recipes are held against: the goals, by kind of set and key, and by regime."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


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


_ROUTING = {
    "recall": _least(0.97),
    "worst_category_recall": _least(0.95),
    "recall_after_discover": _least(0.99),
    "tools_mean": _most(6),
    "tokens_share": _most(0.10),
    "chat_any": _most(0.05),
    "chat_tokens_share": _most(0.03),
    "llm_nonweb": _most(0.20),
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
COSTS: Mapping[str, Goal] = MappingProxyType(
    {
        "none": _most(48),
        "cold": _most(48),
        "warm10": _most(60),
        "warm30": _most(60),
        "half_price": _most(100),
        "one_task_10_rounds": _most(100),
        "cron": _most(100),
        "local_slot": _most(100),
        "local_cold": _most(48),
        "warm_120_tools": _most(60),
    }
)
