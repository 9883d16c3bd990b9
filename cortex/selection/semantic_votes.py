"""What a text says about tools by its meaning: likenesses, votes, or why there are none.

By the snapshot's sentence model, else by the shipped table. A long text is cut for a model, whose time grows with every
word; a likeness is not taken by clause, which brought nothing on public catalogues (docs/decisions.md). What fails
here leaves the choice to the other evidence.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cortex.base import scan
from cortex.base.errors import EncoderFailed
from cortex.selection import evidence, talk
from cortex.selection.draft import Vote
from cortex.selection.index import CANDIDATES, Index, index_of
from cortex.selection.types import PlanInput, Snapshot

if TYPE_CHECKING:
    from cortex.selection.semantic_index import Curves

LEAST = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Likeness in meaning, (n_slots,) float32. `failed`: why it is the table's in place of the sentence model's."""

    row: Any
    failed: str = ""
    is_table: bool = False


def likeness(index: Index, asked: str, skipped: str = "") -> Likeness:
    """How like each tool the text is in meaning. `skipped`: why the sentence model is left out."""
    failed = skipped
    if index.snapshot.encoder and not failed:
        try:
            return Likeness(row=_by_model(index, asked))
        except EncoderFailed as error:
            failed = error.message
    return Likeness(row=_by_table(index, asked), failed=failed, is_table=True)


def curves(index: Index, found: Likeness) -> "Curves | None":
    """What these likenesses are worth; None where that is not known, or not yet."""
    try:
        return index.table_curves if found.is_table else index.curves
    except EncoderFailed:
        return None


def prepared(snapshot: Snapshot) -> bool:
    """Have the snapshot's tools read; whether it is known what a likeness is worth. EncoderFailed until they are."""
    index = index_of(snapshot)
    return bool(index.semantic and index.curves)


def votes(index: Index, asked: str, names: frozenset[str], skipped: str = "") -> tuple[dict[str, Vote], str]:
    """Votes for these tools, each as much as its likeness is worth; and why the sentence model was left out."""
    found = likeness(index, asked, skipped)
    worth = curves(index, found)
    if worth is None and not found.is_table:
        found = likeness(index, asked, "what its likenesses are worth is not known")
        worth = curves(index, found)
    if worth is None:
        return {}, found.failed
    by = index.table if found.is_table else index.semantic
    best = by.likely(found.row, shares(index, asked), worth, index.mask(names), LEAST, CANDIDATES)
    why = "close in meaning to what it is for"
    return {index.tools.keys[slot]: Vote(stage="vectors", p=round(p, 4), why=why) for slot, p in best}, found.failed


def in_time(given: PlanInput) -> PlanInput:
    """The input as it is, or with the reason why its plan has to do without the sentence model.

    Asked ahead of the plan, so that the answer is at hand or the failure is recorded, and a replay is the same.
    """
    if not given.snapshot.encoder or given.encoder_skipped or given.mode != "auto":
        return given
    index = index_of(given.snapshot)
    failed = ""
    if given.recipe == "cortex" and needs(index, given.message, index.names):
        failed = likeness(index, given.message).failed
    elif given.recipe == "vector" and given.message.strip():
        failed = scan.load("cortex.selection.baselines.centroid_index").failure(
            given.snapshot, (given.message, given.missing)
        )
    return replace(given, encoder_skipped=failed) if failed else given


def needs(index: Index, asked: str, names: frozenset[str]) -> frozenset[str]:
    """Those of the names that are judged by meaning: business tools that the fitted model does not know."""
    if talk.is_small_talk(asked):
        return frozenset()
    found = index.unlearned(names)
    return found if found.isdisjoint(index.metas) else found - index.metas


def shares(index: Index, asked: str) -> Any:
    """(n_slots,): what each tool's words cover of the text's weight, or of its clause that they cover best."""
    search = scan.load("cortex.selection.search")
    whole, *parts = evidence.clauses(asked)
    found = index.shares(whole)
    for part in parts:
        found = search.highest(found, index.shares(part))
    return found


@lru_cache(maxsize=16)
def _by_model(index: Index, asked: str) -> Any:
    return index.semantic.likeness(asked[: evidence.TEXT_CHARACTERS])


@lru_cache(maxsize=64)
def _by_table(index: Index, asked: str) -> Any:
    return index.table.likeness(asked)
