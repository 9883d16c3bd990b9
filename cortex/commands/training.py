"""`cortex train`: fits the shipped model on the shipped utterances, and says how it does on those it has not seen.

Every figure is of an utterance that was left out of the fit (in closed form, `selection/model/fit.py`), judged by the
stages and thresholds that real messages meet. Says also whether a file of weights is current.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cortex.base import scan
from cortex.base.errors import UserError
from cortex.commands.reliability import TOLD_FROM, ReliabilityCurve, curve, rows
from cortex.selection.index.index import index_of
from cortex.selection.model import weights
from cortex.selection.model.utterances import examples_hash, utterances_of
from cortex.selection.plan.draft import ModelChances, PlanDraft
from cortex.selection.stage import Stage
from cortex.selection.stages.basics import gate, mode, pins
from cortex.selection.stages.fuse import fuse
from cortex.selection.types import PlanInput, Snapshot
from cortex.selection.votes.evidence import WEB

if TYPE_CHECKING:
    from cortex.selection.model.fit import FittedModel

KINDS = ("chat", "llm", "open")
SEVERAL = "several"
AHEAD: tuple[Stage, ...] = (gate, mode, pins)  # the rest speaks for unknown tools, of the past, of own words
NO_FILE = "there is no such file"
MEND = "run `make train`"
EXTRA = "Fitting needs numpy, the extra `train`: it is not installed. What chooses tools does not need it."
Rows = Sequence[Sequence[str]]


class Wish(Struct, frozen=True, kw_only=True):
    """An utterance that was left out: its category or kind, what it needs, what it would have been sent."""

    group: str
    needed: frozenset[str]
    sent: frozenset[str]
    is_beyond_web: bool


class TrainingResult(Struct, frozen=True, kw_only=True):
    """The fit with its judgement: what became of each utterance, and whether the chances are what they say."""

    fitted: "FittedModel"
    wishes: tuple[Wish, ...]
    curves: tuple[ReliabilityCurve, ...]


def trained(first: PlanInput) -> TrainingResult:
    """The model of the snapshot's utterances, with its judgement; half a minute of one processor.

    `first`: the first round of a conversation, in which each utterance is judged as its message.
    """
    try:
        fit = scan.load("cortex.selection.model.fit")
    except ModuleNotFoundError as error:
        raise UserError(EXTRA) from error
    told = utterances_of(first.snapshot)
    tools = {name for row in told for name in row.tools}
    return judged(first, fit.fit(first.snapshot, told, made=f"{len(told):,} utterances, {len(tools)} tools"))


def judged(first: PlanInput, fitted: "FittedModel") -> TrainingResult:
    """A fit with what it does to the utterances that it was made of, each left out in its turn."""
    category = {entry.name: entry.category for entry in first.snapshot.entries}
    return TrainingResult(
        fitted=fitted, wishes=tuple(_wishes(first, fitted, category)), curves=tuple(_curves(fitted, category))
    )


def stale(snapshot: Snapshot, data: bytes) -> str:
    """Why these weights are not those of the snapshot's utterances; "" for weights that are."""
    if not data:
        return NO_FILE
    try:
        found = weights.from_bytes(data)
    except ValueError as error:
        return f"they cannot be read ({error})"
    lacking = {entry.name for entry in snapshot.entries if not entry.is_meta} - set(found.tools)
    if lacking:
        return f"they know nothing of {', '.join(sorted(lacking))}"
    if found.examples != examples_hash(utterances_of(snapshot)):
        return "the utterances are others than those that they were fitted on"
    return ""


def report(found: TrainingResult) -> str:
    """Everything as tables for a terminal."""
    parts = [aligned(table) for table in (needing(found), needless(found), rows(found.curves))]
    return "\n\n".join((*parts, "\n".join(errors(found)), size(found)))


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The rows as lines, the first column to the left, all others to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def needing(found: TrainingResult) -> Rows:
    """By category: utterances, the share that was sent everything it needs, and how many tools that took."""
    groups = _groups(wish for wish in found.wishes if wish.needed)
    heads = ["category", "utterances", "recall", "tools sent"]
    return [heads, *(_needing(name, groups[name]) for name in sorted(groups)), _needing("all", _all(groups))]


def needless(found: TrainingResult) -> Rows:
    """By kind of needing none: utterances, the share that was sent a tool, and one that is not of the web."""
    groups = _groups(wish for wish in found.wishes if not wish.needed)
    heads = ["needs no tool", "utterances", "any tool", "beyond the web", "tools sent"]
    return [heads, *(_needless(kind, groups[kind]) for kind in KINDS if kind in groups)]


def errors(found: TrainingResult) -> list[str]:
    """Return how far the chances lie from the shares that came true, a line a curve."""
    return [
        f"{each.name} ({each.of}): expected calibration error {each.error():.4f}, over chances from {TOLD_FROM:.2f} "
        f"up {each.error(TOLD_FROM):.3f}"
        for each in found.curves
    ]


def size(found: TrainingResult) -> str:
    """Return what was fitted, in a line."""
    weights = found.fitted.weights
    return f"{weights.made} in {len(weights.categories)} categories; {len(weights.matrix):,} features."


def _wishes(first: PlanInput, fitted: "FittedModel", category: Mapping[str, str]) -> Iterator[Wish]:
    """Return what the first request of a conversation would carry for each utterance."""
    index = index_of(first.snapshot)
    tools = fitted.weights.tools
    columns = (fitted.chances.tools.tolist(), fitted.chances.wish.tolist(), fitted.chances.work.tolist())
    for row, chances, wish, work in zip(fitted.told, *columns, strict=True):
        given, draft = replace(first, message=row.text), PlanDraft()
        for stage in AHEAD:
            draft = stage(given, index, draft)
        learned = ModelChances(chances=dict(zip(tools, chances, strict=True)), wish=wish, work=work)
        sent = fuse(given, index, replace(draft, learned=learned)).wanted
        homes = {category[name] for name in row.tools}
        yield Wish(
            group=row.kind or (SEVERAL if len(homes) > 1 else homes.pop()),
            needed=frozenset(row.tools),
            sent=frozenset(sent),
            is_beyond_web=any(category[name] != WEB for name in sent),
        )


def _curves(fitted: "FittedModel", category: Mapping[str, str]) -> Iterator[ReliabilityCurve]:
    """Each chance against what it is a chance of; the web is neither right nor wrong for `open` wishes."""
    is_web = [category[name] == WEB for name in fitted.weights.tools]
    judged, wanted = fitted.chances, fitted.labels[:, : len(is_web)]
    told = list(zip(fitted.told, judged.tools.tolist(), wanted.tolist(), strict=True))
    pairs = (
        (p, needed > 0)
        for row, chances, needs in told
        for p, needed, web in zip(chances, needs, is_web, strict=True)
        if not (web and row.kind == "open")
    )
    yield curve("tool", "a tool is needed", pairs)
    gates = list(zip(fitted.told, judged.wish.tolist(), judged.work.tolist(), strict=True))
    wishes = ((wish, not row.kind) for row, wish, _ in gates if row.kind in ("", "chat"))
    yield curve("wish", "anything is wanted", wishes)
    beyond = [any(category[name] != WEB for name in row.tools) for row in fitted.told]
    works = zip(gates, beyond, strict=True)
    sure = ((work, is_work) for (row, _, work), is_work in works if is_work or row.kind in ("llm", "open"))
    yield curve("work", "more than words or the web", sure)


def _groups(wishes: Iterator[Wish]) -> dict[str, list[Wish]]:
    found: dict[str, list[Wish]] = {}
    for wish in wishes:
        found.setdefault(wish.group, []).append(wish)
    return found


def _all(groups: Mapping[str, Sequence[Wish]]) -> list[Wish]:
    return [wish for each in groups.values() for wish in each]


def _needing(name: str, wishes: Sequence[Wish]) -> list[str]:
    met = sum(wish.needed <= wish.sent for wish in wishes)
    return [name, f"{len(wishes):,}", f"{met / len(wishes):.3f}", _mean(wishes)]


def _needless(name: str, wishes: Sequence[Wish]) -> list[str]:
    counts = Counter(any=sum(bool(wish.sent) for wish in wishes), beyond=sum(wish.is_beyond_web for wish in wishes))
    shares = (f"{counts[key] / len(wishes):.3f}" for key in ("any", "beyond"))
    return [name, f"{len(wishes):,}", *shares, _mean(wishes)]


def _mean(wishes: Sequence[Wish]) -> str:
    return f"{sum(len(wish.sent) for wish in wishes) / len(wishes):.2f}"
