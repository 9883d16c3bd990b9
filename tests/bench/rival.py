"""The simple way that Cortex is held against: TF-IDF and logistic regression on the utterances that ship.

Words in ones and twos and letters in threes to fives, a classifier for each tool, two more for whether anything is
wanted and whether it is more than words or the web. No clauses, no memory, no phrases: what a line of Cortex is worth
is what it finds beyond this. The same utterances give the same chances.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion

from cortex.selection.model.utterances import utterances_of
from cortex.selection.types import Snapshot
from cortex.selection.votes.evidence import WEB
from tests.bench import external, files, routing
from tests.bench.files import RoutingSet
from tests.bench.goals import OURS
from tests.bench.ground import BenchGround
from tests.bench.routing import JudgedSet, KnownNames
from tests.bench.selector import SelectorAnswer
from tests.bench.timing import timed

SEED, STEPS, TOLERANCE, LOOSENESS = 20261121, 200, 1e-2, 10.0
ENOUGH_WISH, ENOUGH_WORK = 0.5, 0.2  # from here on a gate takes nothing
WISH_POWER, WORK_POWER = 4, 2
BARE, GATED = "tf-idf", "tf-idf gated"
USUAL = "house"  # its own cases, by which the bar is set where a set has no message that needs a tool

Chances = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """The fitted classifiers: one a tool, then `wish` and `work`. `is_web`: which tools no lack of work stops."""

    tools: tuple[str, ...]
    is_web: NDArray[np.bool_]
    read: FeatureUnion
    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    def chances(self, texts: Sequence[str]) -> tuple[Chances, Chances]:
        """(n_texts, n_tools) as the classifiers say it, and the same behind the soft gates."""
        found = 1 / (1 + np.exp(-(self.read.transform(texts) @ self.weights + self.bias)))
        bare, wish, work = found[:, :-2], found[:, -2:-1], found[:, -1:]
        gate = np.minimum(1, wish / ENOUGH_WISH) ** WISH_POWER
        gates = np.where(self.is_web, gate, gate * np.minimum(1, work / ENOUGH_WORK) ** WORK_POWER)
        return bare, bare * gates

    def chosen(self, chances: Chances, bar: float) -> list[tuple[str, ...]]:
        """For each text the tools from the bar up, the best first."""
        order = np.argsort(-chances, axis=1, kind="stable")
        return [
            tuple(self.tools[at] for at in best if row[at] >= bar) for row, best in zip(chances, order, strict=True)
        ]


def fitted(snapshot: Snapshot) -> Rival:
    """The classifiers of the snapshot's utterances; a minute or two of one core."""
    told = utterances_of(snapshot)
    homes = {entry.name: entry.category for entry in snapshot.entries}
    tools = tuple(sorted({name for row in told for name in row.tools}))
    read = FeatureUnion(
        [
            ("words", TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b", sublinear_tf=True)),
            ("letters", TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=2, sublinear_tf=True)),
        ]
    )
    features = read.fit_transform([row.text for row in told])
    wanted = [[name in row.tools for row in told] for name in tools]
    wanted.append([bool(row.tools) for row in told])
    wanted.append([any(homes[name] != WEB for name in row.tools) for row in told])
    fits = [_classifier().fit(features, np.array(labels)) for labels in wanted]
    return Rival(
        tools=tools,
        is_web=np.array([homes[name] == WEB for name in tools]),
        read=read,
        weights=np.column_stack([one.coef_[0] for one in fits]),
        bias=np.array([one.intercept_[0] for one in fits]),
    )


def _classifier() -> LogisticRegression:
    return LogisticRegression(C=LOOSENESS, solver="liblinear", tol=TOLERANCE, max_iter=STEPS, random_state=SEED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalWay:
    """The rival as a way that stands beside the recipes (`external.py`), behind its gates or without.

    `usual`: the bar for a set without a message that needs a tool.
    """

    rival: Rival
    is_gated: bool
    usual: float = 1.0

    def __call__(
        self, one: RoutingSet, names: KnownNames, ground: BenchGround, others: Mapping[str, JudgedSet]
    ) -> JudgedSet:
        """Its figures where it sends as many tools as Cortex does on this set."""
        given, bar = [], self.bar(one, others[OURS])
        for row in one.rows:  # each alone, as it would come
            both, ms = timed(partial(self.rival.chances, [row.text]))
            (tools,) = self.rival.chosen(both[self.is_gated], bar)
            given.append(SelectorAnswer(tools=tools, ms=ms))
        return external.judged(one, names, ground, given)

    def bar(self, one: RoutingSet, ours: JudgedSet) -> float:
        """The bar above which the rows that need tools are sent as many in all as by `ours`."""
        needing = [each for each in ours.rows if each.needs and each.row.kind == "tool"]
        sent = sum(len(each.names) for each in needing)
        if not sent:
            return self.usual
        chances = self.rival.chances([each.row.text for each in needing])[self.is_gated]
        ordered = np.sort(chances, axis=None)[::-1]
        return float(ordered[min(sent, ordered.size) - 1])


def ways(rival: Rival, over: BenchGround) -> Mapping[str, RivalWay]:
    """The rival without a gate and behind its gates."""
    house = next(one for one in files.read(files.CASES, lambda _: None).routing if one.name == USUAL)
    rows = routing.given(house, routing.known(house.rows, over), over, OURS)
    ours = JudgedSet(scores={}, rows=tuple(rows))
    found = {BARE: RivalWay(rival=rival, is_gated=False), GATED: RivalWay(rival=rival, is_gated=True)}
    return {name: replace(way, usual=way.bar(house, ours)) for name, way in found.items()}
