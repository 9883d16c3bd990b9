"""What a text says about tools by its meaning: likenesses, votes, or why there are none.

By the snapshot's sentence model, else by the shipped table. A long text is cut for a model, whose time grows with every
word; a likeness is not taken by clause, which brought nothing on public catalogues (docs/decisions), but the share
of words is: a wish in a frame of talk is found in .72, not .63. What fails here leaves the choice to other evidence.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from cortex.base import scan
from cortex.base.errors import EncoderFailed
from cortex.selection.index.index import CANDIDATES, Index, index_of
from cortex.selection.index.search import Scores, highest
from cortex.selection.plan.draft import Vote
from cortex.selection.types import PlanInput, Snapshot
from cortex.selection.votes import evidence
from cortex.selection.words import talk, text
from cortex.selection.words.thesaurus import in_english

LEAST = 0.01


class Likeness(NamedTuple):
    """Likeness in meaning, by slot. `failed`: why it is the table's in place of the sentence model's."""

    row: Sequence[float]
    failed: str = ""
    is_table: bool = False


def likeness(index: Index, asked: str, skipped: str = "") -> Likeness:
    """Return how like each tool the text is in meaning. `skipped`: why the sentence model is left out."""
    failed = skipped
    if index.snapshot.encoder and not failed:
        try:
            return Likeness(index.semantic.likeness(asked[: evidence.TEXT_CHARACTERS]))
        except EncoderFailed as error:
            failed = error.message
    return Likeness(_by_table(index, text.ends(asked)), failed, is_table=True)


def prepared(snapshot: Snapshot) -> bool:
    """Have the snapshot's tools read; whether it is known what a likeness is worth. EncoderFailed until they are."""
    index = index_of(snapshot)
    return bool(index.semantic and index.curves)


def votes(index: Index, asked: str, names: frozenset[str], skipped: str = "") -> tuple[dict[str, Vote], str]:
    """Votes for these tools, each as much as its likeness is worth; and why the sentence model was left out."""
    found, curves = likeness(index, asked, skipped), None
    if not found.is_table:
        with suppress(EncoderFailed):
            curves = index.curves
        found = found if curves else likeness(index, asked, "what its likenesses are worth is not known")
    if found.is_table:
        curves = index.table_curves
    if curves is None:
        return {}, found.failed
    by = index.table if found.is_table else index.semantic
    best = by.likely(found.row, _shares(index, asked), curves, names, LEAST, CANDIDATES)
    why = "close in meaning to what it is for"
    return {index.tools.keys[slot]: Vote(stage="vectors", p=round(p, 4), why=why) for slot, p in best}, found.failed


def in_time(given: PlanInput) -> PlanInput:
    """The input as it is, or with the reason why its plan has to do without the sentence model.

    Asked ahead of the plan, so that the answer is at hand or the failure is recorded, and a replay is the same.
    """
    if not given.snapshot.encoder or given.encoder_skipped or given.mode != "auto":
        return given
    index, failed = index_of(given.snapshot), ""
    if given.recipe == "cortex" and needs(index, given.message, index.names):
        failed = likeness(index, given.message).failed
    elif given.recipe == "vector" and given.message.strip():
        asked = scan.load("cortex.selection.ways.vector").likenesses
        failed = next(filter(None, (asked(given, said)[1] for said in (given.message, given.missing) if said)), "")
    return replace(given, encoder_skipped=failed) if failed else given


def needs(index: Index, asked: str, names: frozenset[str]) -> frozenset[str]:
    """Those of the names that are judged by meaning: business tools that the fitted model does not know."""
    found = frozenset() if talk.is_small_talk(asked) else index.unlearned(names)
    return found if found.isdisjoint(index.metas) else found - index.metas  # the same set keeps its hash: 10,000 names


def _shares(index: Index, asked: str) -> Scores:
    """Return what each tool's words cover of the text's weight, or of its clause that they cover best, by slot."""
    return highest(map(index.shares, evidence.clauses(asked)))


@lru_cache(maxsize=8)
def _by_table(index: Index, asked: str) -> Sequence[float]:
    return index.table.likeness(in_english(asked, index.tools.words.has))
