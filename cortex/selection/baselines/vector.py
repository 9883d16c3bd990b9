"""Thresholds of the centroid way: what is taken, what it brings along, how strongly a call is asked for, labels.

The thresholds are of its own sentence encoder. On the default one (hashed n-grams) likenesses are lower: see the
figures in docs/decisions.md. They are kept as they are: a recipe is compared with its own parameters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cortex.selection import text
from cortex.selection.types import ToolEntry

LEAST, MOST = 0.3, 15
NOISY, NOISY_LEAST = frozenset({"aether", "session"}), 0.6
BRINGS_GROUP = 0.55
FORCE, OPTIONAL = 0.8, 0.3
MISSING_LEAST = 0.85
SIMPLE_WORDS, MODERATE_WORDS, MODERATE_STEPS = 12, 40, 2
_STEPS = frozenset(text.words("and then after afterwards also finally next first second"))
_DESTRUCTIVE = frozenset(
    text.words("delete remove erase wipe drop kill overwrite reset uninstall restart reboot purge")
)
_SENSITIVE = frozenset(text.words("password passwords token tokens secret secrets credential credentials iban pin"))
# Categories whose tools share no prefix of their own, or share it with another category.
_NAMED_GROUPS = frozenset({"web", "aether", "aether_db", "ae_tasks", "agents", "notes", "notifications", "coding"})

Strategy = Literal["force", "optional", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorChoice:
    """What is taken, with its reason, best first, then what groups brought; `out`: why the others are not."""

    taken: Mapping[str, str]
    out: Mapping[str, str]
    strategy: Strategy


def choose(scores: Mapping[str, float], entries: Sequence[ToolEntry], strictness: float = 1.0) -> VectorChoice:
    """The choice among these tools by their likeness to the message; `strictness` multiplies its thresholds."""
    homes = {entry.name: entry.category for entry in entries}
    bars = {name: strictness * least(home) for name, home in homes.items()}
    passed = sorted(
        (name for name in homes if scores.get(name, 0.0) >= bars[name]), key=lambda name: (-scores[name], name)
    )
    taken = {name: f"like its example queries ({scores[name]:.2f} of {bars[name]:.2f})" for name in passed[:MOST]}
    leaders: dict[str, str] = {}
    for name in taken:
        if scores[name] >= strictness * BRINGS_GROUP:
            leaders.setdefault(_group(name, homes[name]), name)
    for entry in entries:
        group = _group(entry.name, entry.category)
        if group in leaders and entry.name not in taken:
            taken[entry.name] = f"of the group {group}, which {leaders[group]} brought"
    out = {
        name: f"{MOST} tools were more alike"
        if name in passed
        else f"too unlike its example queries ({scores.get(name, 0.0):.2f} of {bars[name]:.2f})"
        for name in homes
        if name not in taken
    }
    return VectorChoice(taken=taken, out=out, strategy=strategy(scores[passed[0]] if passed else 0.0))


def least(category: str) -> float:
    """From which likeness a tool of this category is taken."""
    return NOISY_LEAST if category in NOISY else LEAST


def strategy(top: float) -> Strategy:
    """How strongly a call is asked for, by the best likeness of what is taken."""
    return "force" if top >= FORCE else "optional" if top >= OPTIONAL else "none"


def _group(name: str, category: str) -> str:
    """The named group of a tool, else its prefix."""
    return category if category in _NAMED_GROUPS else name.partition("_")[0]


# --- labels -------------------------------------------------------------------------------------------------------


def complexity(message: str) -> str:
    """simple, moderate or complex, by length and by words that join steps; rides in the receipt."""
    said = text.words(message)
    steps = sum(word in _STEPS for word in said)
    if len(said) <= SIMPLE_WORDS and not steps:
        return "simple"
    return "moderate" if len(said) <= MODERATE_WORDS and steps <= MODERATE_STEPS else "complex"


def safety(message: str) -> str:
    """destructive, sensitive or ordinary, by its words; rides in the receipt, grants and refuses nothing."""
    said = frozenset(text.words(message))
    if said & _DESTRUCTIVE:
        return "destructive"
    return "sensitive" if said & _SENSITIVE else "ordinary"
