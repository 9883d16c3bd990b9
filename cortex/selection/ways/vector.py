"""The vector classifier: likeness to the centroid of each tool's example queries, and the tools that the user named.

Its thresholds are of its own sentence encoder, and kept: a recipe is compared with its own parameters. By hashed
n-grams, which need no download, likenesses are lower (docs/decisions).
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from cortex.base.errors import EncoderFailed
from cortex.selection.index import sentence_models
from cortex.selection.index.index import Index
from cortex.selection.plan.draft import PlanDraft, Vote
from cortex.selection.stage import stage
from cortex.selection.types import PlanInput, ToolEntry
from cortex.selection.ways.centroid_index import similarities
from cortex.selection.words import quoted, text

LEAST, MOST = 0.3, 15
NOISY, NOISY_LEAST = frozenset({"aether", "session"}), 0.6
BRINGS_GROUP = 0.55
FORCE = 0.8
MISSING_LEAST = 0.85
NAMED_P = 0.95
SIMPLE_WORDS, MODERATE_WORDS, MODERATE_STEPS = 12, 40, 2
_STEPS = frozenset(text.words("and then after afterwards also finally next first second"))
_DESTRUCTIVE = frozenset(
    text.words("delete remove erase wipe drop kill overwrite reset uninstall restart reboot purge")
)
_SENSITIVE = frozenset(text.words("password passwords token tokens secret secrets credential credentials iban pin"))
# Categories whose tools share no prefix of their own, or share it with another category.
_NAMED_GROUPS = frozenset({"web", "aether", "aether_db", "ae_tasks", "agents", "notes", "notifications", "coding"})


class VectorChoice(NamedTuple):
    """The tools taken, each with its reason, best first, then what groups brought; `out`: why the others are not."""

    taken: Mapping[str, str]
    out: Mapping[str, str]
    strategy: Literal["force", "optional", "none"]


@stage("tools by their likeness to example requests")
def centroids(given: PlanInput, index: Index, draft: PlanDraft, *, strictness: float = 1.0) -> PlanDraft:
    """The draft with named tools in order of mention, then by likeness, then what their groups brought.

    `strictness` multiplies this way's thresholds.
    """
    business = draft.rights.business
    if not given.message.strip():
        blank = dict.fromkeys(draft.rights.listed, _vote(0.0, "the message is blank"))
        return replace(draft, dropped=blank, labels={"strategy": "none"})
    scores, failed = likenesses(given, given.message)
    choice = choose(scores, business, strictness)
    names = text.named(quoted.wish_of(given.message), draft.rights.names)
    pins = dict.fromkeys(names, Vote(stage="pins", p=NAMED_P, why="you named it"))
    pins |= {name: vote for name, vote in _missing(given, business).items() if name not in choice.taken}
    wanted = tuple(dict.fromkeys((*names, *choice.taken, *pins)))
    return replace(
        draft,
        pins=pins,
        chances={name: _vote(scores[name], why) for name, why in choice.taken.items()},
        wanted=wanted,
        dropped={name: _vote(scores[name], why) for name, why in choice.out.items() if name not in wanted},
        threshold=strictness * LEAST,
        tool_choice="required" if choice.strategy == "force" and given.round == 1 else "auto",
        labels={
            "strategy": choice.strategy,
            **_labels(given.message),
            **(sentence_models.skipped(failed) if failed else {}),
        },
    )


def choose(scores: Mapping[str, float], entries: Sequence[ToolEntry], strictness: float = 1.0) -> VectorChoice:
    """The choice among these tools by their likeness to the message; `strictness` multiplies its thresholds."""
    bars = {entry.name: strictness * (NOISY_LEAST if entry.category in NOISY else LEAST) for entry in entries}
    groups = {e.name: e.category if e.category in _NAMED_GROUPS else e.name.partition("_")[0] for e in entries}
    passed = sorted((name for name, bar in bars.items() if scores[name] >= bar), key=lambda name: (-scores[name], name))
    taken = {name: f"like its example queries ({scores[name]:.2f} of {bars[name]:.2f})" for name in passed[:MOST]}
    strong = [name for name in taken if scores[name] >= strictness * BRINGS_GROUP]
    leaders = {groups[name]: name for name in reversed(strong)}
    for name, group in groups.items():
        if group in leaders:
            taken.setdefault(name, f"of the group {group}, which {leaders[group]} brought")
    crowded, unlike = f"{MOST} tools were more alike", "too unlike its example queries ({:.2f} of {:.2f})"
    out = {name: unlike.format(scores[name], bars[name]) for name in bars if name not in taken}
    out |= dict.fromkeys((name for name in passed if name in out), crowded)
    top = scores[passed[0]] if passed else 0.0
    return VectorChoice(taken, out, "force" if top >= FORCE else "optional" if top >= LEAST else "none")


def _missing(given: PlanInput, business: Sequence[ToolEntry]) -> dict[str, Vote]:
    """Return what an answer of this turn lacked: unsent tools that fit its words, and those that came so before."""
    memory = given.memory
    is_same_turn = memory.turn == given.turn and memory.recipe == given.recipe
    came = {item.name: item.reason for item in memory.sent if is_same_turn and item.stage == "missing"}
    found = {name: Vote(stage="missing", p=MISSING_LEAST, why=why) for name, why in came.items()}
    sent = {item.name for item in memory.sent}
    near = likenesses(given, given.missing)[0] if given.missing.strip() else {}
    for name in (entry.name for entry in business if entry.name not in sent):
        if near.get(name, 0.0) >= MISSING_LEAST:
            why = f"the answer said that it lacks this ({near[name]:.2f} of {MISSING_LEAST:.2f})"
            found[name] = Vote(stage="missing", p=near[name], why=why)
    return found


def likenesses(given: PlanInput, said: str) -> tuple[Mapping[str, float], str]:
    """Likenesses by the sentence model, else by n-grams; and why not by the model, where there should be one."""
    failed = given.encoder_skipped
    if given.snapshot.encoder and not failed:
        try:
            return similarities(given.snapshot, said, is_semantic=True), ""
        except EncoderFailed as error:
            failed = error.message
    return similarities(given.snapshot, said), failed


def _vote(score: float, why: str) -> Vote:
    return Vote(stage="centroids", p=min(max(score, 0.0), 1.0), why=why)


def _labels(message: str) -> dict[str, str]:
    """Complexity by length and words that join steps, safety by words: they ride in the receipt and grant nothing."""
    said = text.words(message)
    steps, words = sum(word in _STEPS for word in said), frozenset(said)
    is_simple = len(said) <= SIMPLE_WORDS and not steps
    is_moderate = len(said) <= MODERATE_WORDS and steps <= MODERATE_STEPS
    return {
        "complexity": "simple" if is_simple else "moderate" if is_moderate else "complex",
        "safety": "destructive" if words & _DESTRUCTIVE else "sensitive" if words & _SENSITIVE else "ordinary",
    }
