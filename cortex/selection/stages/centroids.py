"""Likeness of the message to the centroid of each tool's example queries, and the tools that the user named.

Names count in the user's own words alone. An answer that lacked a tool is held against those not sent yet.
"""

from collections.abc import Sequence

from cortex.base import scan
from cortex.base.errors import EncoderFailed
from cortex.selection import sentence_models, text
from cortex.selection.baselines import vector
from cortex.selection.draft import PlanDraft, Vote, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput, ToolEntry

NAMED_P = 0.95
BLANK = Vote(stage="centroids", p=0.0, why="the message is blank")


def centroids(given: PlanInput, index: Index, draft: PlanDraft, *, strictness: float = 1.0) -> PlanDraft:
    """The draft with named tools in order of mention, then by likeness, then what their groups brought.

    `strictness` multiplies this way's thresholds.
    """
    business = [entry for entry in draft.permitted if not entry.is_meta]
    if not given.message.strip():
        return marked(draft, dropped={each.name: BLANK for each in business}, labels={"strategy": "none"})
    scores, failed = _scores(given, given.message, given.embedding)
    choice = vector.choose(scores, business, strictness)
    names = text.named(given.message, frozenset(entry.name for entry in business))
    pins = {name: Vote(stage="pins", p=NAMED_P, why="you named it") for name in names}
    pins |= {name: vote for name, vote in _missing(given, business).items() if name not in choice.taken}
    wanted = tuple(dict.fromkeys((*names, *choice.taken, *pins)))
    return marked(
        draft,
        pins=pins,
        chances={name: _vote(scores[name], why) for name, why in choice.taken.items()},
        wanted=wanted,
        dropped={name: _vote(scores[name], why) for name, why in choice.out.items() if name not in wanted},
        threshold=strictness * vector.LEAST,
        tool_choice="required" if choice.strategy == "force" and given.round == 1 else "auto",
        labels={
            "strategy": choice.strategy,
            "complexity": vector.complexity(given.message),
            "safety": vector.safety(given.message),
            **(sentence_models.skipped(failed) if failed else {}),
        },
    )


def _missing(given: PlanInput, business: list[ToolEntry]) -> dict[str, Vote]:
    """What an answer of this turn lacked: unsent tools that its words fit well, and those that came so before."""
    memory = given.memory
    is_same_turn = memory.turn == given.turn and memory.recipe == given.recipe
    came = {item.name: item.reason for item in memory.sent if is_same_turn and item.stage == "missing"}
    found = {name: Vote(stage="missing", p=vector.MISSING_LEAST, why=why) for name, why in came.items()}
    if not given.missing.strip():
        return found
    sent = {item.name for item in memory.sent}
    near, _ = _scores(given, given.missing, ())
    for entry in business:
        score = near[entry.name]
        if entry.name not in sent and score >= vector.MISSING_LEAST:
            why = f"the answer said that it lacks this ({score:.2f} of {vector.MISSING_LEAST:.2f})"
            found[entry.name] = Vote(stage="missing", p=score, why=why)
    return found


def _scores(given: PlanInput, said: str, embedding: Sequence[float]) -> tuple[dict[str, float], str]:
    """Likenesses by the sentence model, else by n-grams; and why not by the model, where there should be one."""
    centroid_index, failed = scan.load("cortex.selection.baselines.centroid_index"), given.encoder_skipped
    found: dict[str, float]
    if given.snapshot.encoder and not failed:
        try:
            found = centroid_index.similarities(given.snapshot, said, embedding, is_semantic=True)
        except EncoderFailed as error:
            failed = error.message
        else:
            return found, ""
    found = centroid_index.similarities(given.snapshot, said, () if failed else embedding)
    return found, failed


def _vote(score: float, why: str) -> Vote:
    return Vote(stage="centroids", p=min(max(score, 0.0), 1.0), why=why)
