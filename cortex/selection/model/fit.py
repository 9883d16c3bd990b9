"""`cortex train`: fits the model of `weights.py` on utterances, judges it on those it has not seen, and says how well.

One-sided least squares, one column a tool, category and kind (`ridge.py`). The calibrations are fitted on what each
utterance scores when its fifth is left out. Deterministic. Needs numpy, the extra `train`: loaded late.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cortex.selection.model import ridge
from cortex.selection.model.calibrations import KINDS, LEAST, SHARPNESS, TOPS, Calibrations
from cortex.selection.model.ridge import Floats
from cortex.selection.model.utterances import LabelledUtterance, examples_hash
from cortex.selection.model.weights import GRAM_SHARE, NEED, Weights
from cortex.selection.types import META, Snapshot
from cortex.selection.words import known_words, quoted, text
from cortex.selection.words.grams import BUCKETS, grams, words

RIDGE = 1.0
MOST_WORTH = 2.0
LEAST_TEXTS = 3  # a third fewer features than from 2 on, and no figure moves (2026-11-27)
STEPS = 12  # of Newton
SHRINKAGE = 1e-3
WEB = "web"

Places = NDArray[np.int32]


class FittedChances(Struct, frozen=True, kw_only=True, eq=False):
    """`TextChances` of n texts: `tools` (n, n_tools), `wish` and `work` (n,)."""

    tools: Floats
    wish: Floats
    work: Floats


class FittedModel(Struct, frozen=True, kw_only=True, eq=False):
    """The model, and what it makes of each utterance when that one is left out.

    `scores` and `labels` (n, n_columns); `chances` of the n utterances.
    """

    weights: Weights
    told: tuple[LabelledUtterance, ...]
    scores: Floats
    labels: Floats
    chances: FittedChances


def fit(snapshot: Snapshot, told: Sequence[LabelledUtterance], made: str = "") -> FittedModel:
    """The model of these utterances over the snapshot's tools. `made`: a note of when and from what."""
    domains = [domain.name for domain in snapshot.domains if domain.name != META]
    taught = {name for row in told for name in row.tools}
    learning = [entry for entry in snapshot.entries if entry.name in taught and not entry.is_meta]
    entries = sorted(learning, key=lambda entry: domains.index(entry.category))
    tools = tuple(entry.name for entry in entries)
    categories = tuple(name for name in domains if any(entry.category == name for entry in entries))
    home = np.array([categories.index(entry.category) for entry in entries], dtype=np.int32)
    texts = [row.text for row in told]
    places, idf, rows = _features([quoted.wish_of(said) for said in texts])
    labels = _labels(told, tools, categories, home)
    bias = (labels * 2 - 1).mean(axis=0, dtype=np.float64).astype(np.float32)
    targets, worth = labels * 2 - 1 - bias, RIDGE / _worth(labels[:, len(tools) :])
    unseen = ridge.left_out(rows, len(idf), targets, worth) + bias
    matrix, scale = quantised(ridge.fitted(rows, len(idf), targets, worth))
    found = _calibrations(told, unseen, labels, home, np.array([entry.category == WEB for entry in entries]))
    weights = Weights(
        tools=tools,
        categories=categories,
        rows=places.data,
        idf=idf.data,
        matrix=matrix.data,
        scale=scale.data,
        bias=bias.data,
        home=home.data,
        calibrations=found,
        known=known_words.of_texts(texts),
        examples=examples_hash(told),
        made=made,
    )
    chances = _judged(found, texts, unseen, home, len(categories))
    return FittedModel(weights=weights, told=tuple(told), scores=unseen, labels=labels, chances=chances)


def _calibrations(
    told: Sequence[LabelledUtterance], scores: Floats, labels: Floats, home: Places, is_web: NDArray[np.bool_]
) -> Calibrations:
    """Return what these scores of utterances that were left out, (n, n_columns), are worth.

    The web's tools are neither right nor wrong for `open` wishes.
    """
    n_categories, wanted = int(home.max()) + 1, labels[:, : len(home)]
    kinds = np.array([row.kind for row in told])
    features = tool_features(scores, home, n_categories)
    scored = (kinds != "open")[:, None] | ~is_web
    tool = _calibrated(features[scored], wanted[scored])
    gates = gate_features([row.text for row in told], scores, chance(tool, features), n_categories)
    beyond_web = wanted[:, ~is_web].max(axis=1) > 0
    asked, worked = np.isin(kinds, ["", "chat"]), (kinds == "llm") | (kinds == "open") | beyond_web
    lines = (tool, _calibrated(gates[asked], kinds[asked] == ""), _calibrated(gates[worked], beyond_web[worked]))
    return Calibrations(**dict(zip(("tool", "wish", "work"), (line.data for line in lines), strict=True)))


def _judged(
    found: Calibrations, texts: Sequence[str], scores: Floats, home: Places, n_categories: int
) -> FittedChances:
    """Return what `Calibrations.judged` makes of each of these texts by its scores, (n_texts, n_columns)."""
    tools = chance(np.asarray(found.tool), tool_features(scores, home, n_categories))
    gates = gate_features(texts, scores, tools, n_categories)
    wish, work = (chance(np.asarray(line), gates) for line in (found.wish, found.work))
    return FittedChances(tools=tools, wish=wish, work=work)


def chance(line: Floats, features: Floats) -> Floats:
    """Probabilities of rows (..., n_features)."""
    score = np.vecdot(features, line[:-1]) + line[-1]  # what a matmul makes of a row depends on how many there are
    return np.asarray(1 / (1 + np.exp(-score)), dtype=np.float32)


def tool_features(scores: Floats, home: Places, n_categories: int) -> Floats:
    """(n_texts, n_tools, 8): a tool's score, its category's, what speaks for none, and the crowd it stands in.

    The crowd is of all tools, of those of its category, and of the categories. `home` rises: the tools of a category
    stand together.
    """
    n_tools = len(home)
    own, categories = scores[:, :n_tools], scores[:, n_tools : n_tools + n_categories]
    kinds = scores[:, n_tools + n_categories :][:, : len(KINDS)]
    tools, homes = np.exp(SHARPNESS * own), np.exp(SHARPNESS * categories)
    siblings = np.add.reduceat(tools, np.searchsorted(home, np.arange(n_categories)), axis=1)
    crowd = [np.log(each) for each in (tools.sum(axis=1)[:, None], siblings[:, home], homes.sum(axis=1)[:, None])]
    parts = (own, categories[:, home], kinds.max(axis=1)[:, None], kinds[:, :1], kinds[:, 1:2], *crowd)
    return np.stack([np.broadcast_to(part, own.shape) for part in parts], axis=-1, dtype=np.float32)


def gate_features(texts: Sequence[str], scores: Floats, chances: Floats, n_categories: int) -> Floats:
    """(n_texts, 9): the two best categories, the kinds of no tool, the need of any, the two best chances, length."""
    n_tools = chances.shape[1]
    homes = np.sort(scores[:, n_tools : n_tools + n_categories], axis=1)[:, -TOPS:]
    kinds = scores[:, n_tools + n_categories :]
    best = np.log(np.sort(chances, axis=1)[:, -TOPS:] + LEAST)
    length = np.log1p([[len(text.words(said))] for said in texts])  # small talk is short
    return np.concatenate([homes, kinds, best, length], axis=1, dtype=np.float32)


def quantised(dense: NDArray[Any]) -> tuple[NDArray[np.int8], Floats]:
    """Weights (n_rows, n_columns) in eight bits, and the scale of each column."""
    scale = np.maximum(np.abs(dense).max(axis=0) / 127, np.float32(1e-9)).astype(np.float32)
    return np.rint(dense / scale).astype(np.int8), scale


def _features(texts: Sequence[str]) -> tuple[Places, Floats, list[ridge.Row]]:
    """Bucket -> feature, each feature's idf, and the texts as rows of features: words, then letters."""
    bags = [(Counter(words(said)), Counter(grams(said))) for said in texts]
    spread = Counter(bucket for bag in bags for half in bag for bucket in half)
    kept = sorted(bucket for bucket, count in spread.items() if count >= LEAST_TEXTS)
    places = np.full(BUCKETS, -1, dtype=np.int32)
    places[kept] = np.arange(len(kept), dtype=np.int32)
    idf = np.log((len(texts) + 1) / (np.array([spread[bucket] for bucket in kept]) + 0.5))
    idf = idf.astype(np.float16).astype(np.float32)
    return places, idf, [_row(bag, places, idf) for bag in bags]


def _row(bag: Sequence[Counter[int]], places: Places, idf: Floats) -> ridge.Row:
    features, values = [], []
    for half, share in zip(bag, (1.0, GRAM_SHARE), strict=True):
        found = places[np.fromiter(half.keys(), dtype=np.int32, count=len(half))]
        counts = np.fromiter(half.values(), dtype=np.float32, count=len(half))[found >= 0]
        found = found[found >= 0]
        weight = (1 + np.log(counts)) * idf[found]
        features.append(found)
        values.append(share * weight / (np.sqrt(np.square(weight).sum()) or 1.0))
    return np.concatenate(features), np.concatenate(values).astype(np.float32)


def _labels(
    told: Sequence[LabelledUtterance], tools: tuple[str, ...], categories: tuple[str, ...], home: Places
) -> Floats:
    """(n_texts, n_columns) of 0 and 1: tools, their categories, kinds, need."""
    columns = {name: at for at, name in enumerate((*tools, *(f"[{name}]" for name in categories), *KINDS, NEED))}
    labels = np.zeros((len(told), len(columns)), dtype=np.float32)
    for at, row in enumerate(told):
        own = [columns[name] for name in row.tools]
        labels[at, [*own, *(len(tools) + home[own]), columns[row.kind or NEED]]] = 1
    return labels


def _calibrated(features: Floats, labels: NDArray[Any]) -> Floats:
    """Logistic regression by Newton's method, slightly shrunk."""
    rows, wanted = features.astype(np.float64), labels.astype(np.float64)
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    scaled = np.column_stack([(rows - mean) / spread, np.ones(len(rows))])
    found = np.zeros(scaled.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-(scaled @ found)))
        slope = scaled.T @ (p - wanted) / len(wanted) + SHRINKAGE * found
        curve = (scaled * (p * (1 - p))[:, None]).T @ scaled / len(wanted)
        found -= np.linalg.solve(curve + SHRINKAGE * np.eye(len(found)), slope)
    scale = found[:-1] / spread
    return np.append(scale, found[-1] - scale @ mean).astype(np.float32)


def _worth(labels: Floats) -> Floats:
    """Return how much each text counts, one column: those of small categories and kinds more, else they are outvoted.

    The root of how much rarer its rarest label is than the middle one, within MOST_WORTH.
    """
    sizes = labels.sum(axis=0)
    rarest = np.where(labels > 0, sizes, np.inf).min(axis=1, keepdims=True)
    worth = np.clip(np.sqrt(np.median(sizes) / rarest), 1 / MOST_WORTH, MOST_WORTH)
    return np.asarray(worth, dtype=np.float32)
