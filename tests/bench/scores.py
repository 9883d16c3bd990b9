"""The figures of a set: from what each row was given to the bench's JSON. Keys that don't apply stay out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log2
from statistics import mean

from tests.bench.figure import percentile
from tests.bench.rows import Groups, Utterance

LEAST_ROWS = 20
Scores = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRow:
    """What a row was given. `needs`: its groups, unknown names left out; () = nothing of it can be judged.

    found: what a search adds where one is declared; rescued: what the rescue round does where nothing needed was sent.
    """

    row: Utterance
    needs: Groups
    categories: frozenset[str]
    names: frozenset[str]
    has_nonweb: bool
    tokens: int
    ms: float
    found: frozenset[str] | None = None
    rescued: frozenset[str] | None = None

    @property
    def is_met(self) -> bool:
        """Whether every group has a tool among those sent."""
        return met(self.needs, self.names)

    @property
    def is_met_after_discover(self) -> bool:
        """... or among what one discovery adds."""
        return met(self.needs, self.names | (self.found or frozenset()))

    @property
    def is_met_after_rescue(self) -> bool:
        """... or, without a search, among what comes after an answer that is none and is known for it."""
        return met(self.needs, self.names | (self.rescued or frozenset()))


def met(needs: Groups, names: frozenset[str]) -> bool:
    """Whether every group has one of the names."""
    return all(not names.isdisjoint(group) for group in needs)


def routing(rows: Sequence[ScoredRow], all_tokens: int, *, can_discover: bool, can_rescue: bool = False) -> Scores:
    """The figures of a routing or multi-turn set."""
    tool = [one for one in rows if one.row.kind == "tool" and one.needs]
    chat = [one for one in rows if one.row.kind == "chat"]
    llm = [one for one in rows if one.row.kind == "llm"]
    found: Scores = {}
    if tool:
        found["recall"] = share(one.is_met for one in tool)
        worst = _worst(tool)
        if worst is not None:
            found["worst_category_recall"] = worst
        if can_discover:
            found["recall_after_discover"] = share(one.is_met_after_discover for one in tool)
        if can_rescue:
            found["recall_after_rescue"] = share(one.is_met_after_rescue for one in tool)
        found["tools_mean"] = round(mean(len(one.names) for one in tool), 2)
        found["tokens_mean"] = round(mean(one.tokens for one in tool), 1)
        found["tokens_share"] = round(mean(one.tokens for one in tool) / all_tokens, 4)
    if chat:
        found["chat_any"] = share(bool(one.names) for one in chat)
        found["chat_tokens_share"] = round(mean(one.tokens for one in chat) / all_tokens, 4)
    if llm:
        found["llm_nonweb"] = share(one.has_nonweb for one in llm)
    return {**found, **times([one.ms for one in rows])}


def share(marks: Iterable[bool]) -> float:
    """How many of the marks are set, to four digits."""
    marked = list(marks)
    return round(sum(marked) / len(marked), 4)


def times(taken_ms: Sequence[float]) -> Scores:
    """Median and 99th percentile."""
    return {key: round(percentile(taken_ms, part), 3) for key, part in (("p50_ms", 0.5), ("p99_ms", 0.99))}


def retrieval(ranked: Sequence[tuple[Groups, tuple[str, ...]]]) -> Scores:
    """Recall at 5 and 10 (share of the groups that are met), and nDCG at 10 (a group gains at its first hit)."""
    return {
        "r5": round(mean(_found(groups, names[:5]) for groups, names in ranked), 4),
        "r10": round(mean(_found(groups, names[:10]) for groups, names in ranked), 4),
        "ndcg10": round(mean(_ndcg(groups, names[:10]) for groups, names in ranked), 4),
    }


def _found(groups: Groups, names: tuple[str, ...]) -> float:
    return sum(not set(names).isdisjoint(group) for group in groups) / len(groups)


def _ndcg(groups: Groups, names: tuple[str, ...]) -> float:
    """Each group gains once, where the first of its names stands; two groups on one place count as two."""
    gained = 0.0
    for group in groups:
        places = [at for at, name in enumerate(names) if name in group]
        gained += 1 / log2(places[0] + 2) if places else 0.0
    best = sum(1 / log2(at + 2) for at in range(min(len(groups), 10)))
    return min(1.0, gained / best)


def _worst(rows: Sequence[ScoredRow]) -> float | None:
    """The lowest recall of a category with enough rows; a row counts for each category that its needs name."""
    marks: dict[str, list[bool]] = {}
    for one in rows:
        for category in one.categories:
            marks.setdefault(category, []).append(one.is_met)
    return min((share(found) for found in marks.values() if len(found) >= LEAST_ROWS), default=None)
