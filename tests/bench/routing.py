"""Plans every row of a routing file through the real pipeline; conversations in order, the planner's memory kept."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from msgspec.structs import replace

from cortex.selection.discover import Ranking
from cortex.selection.pipeline import plan
from cortex.selection.types import PastTurn, PlanInput, PlannerMemory, ToolPlan
from tests.bench import scores
from tests.bench.files import RoutingSet
from tests.bench.ground import START, BenchGround
from tests.bench.rows import Groups, Utterance
from tests.bench.scores import ScoredRow, Scores, met
from tests.bench.timing import settled, timed

WEB = frozenset({"web"})
DISCOVER, RESCUES = "tools_discover", "cortex"
REFUSAL = "I can't do that."  # what it says is not read
FOUND = 5
TURN_S = 40
PAST_TURNS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """What the registry knows of the names in a set. `unknown`: how often each name stands there that it lacks."""

    categories: Mapping[str, str]
    unknown: Mapping[str, int]

    def needs(self, row: Utterance) -> Groups:
        """The row's groups by known names alone; () when one of them has none, since nobody could meet it."""
        groups = tuple(tuple(name for name in group if name in self.categories) for group in row.need_tools)
        return groups if all(groups) else ()

    def homes(self, row: Utterance, needs: Groups) -> frozenset[str]:
        """The categories that the row speaks of: as it says, else those of its tools."""
        if row.need_categories:
            return frozenset(name for group in row.need_categories for name in group)
        return frozenset(self.categories[name] for group in needs for name in group)


def known(rows: Iterable[Utterance], ground: BenchGround) -> KnownNames:
    """What the registry knows of the rows' names."""
    categories = {entry.name: entry.category for entry in ground.snapshot.entries}
    unknown: dict[str, int] = {}
    for row in rows:
        for name in (name for group in row.need_tools for name in group):
            if name not in categories:
                unknown[name] = unknown.get(name, 0) + 1
    return KnownNames(categories=categories, unknown=dict(sorted(unknown.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSet:
    """The figures of a way to choose on a set, and the rows behind them."""

    scores: Scores
    rows: tuple[ScoredRow, ...]


def measured(one: RoutingSet, names: KnownNames, ground: BenchGround, recipe: str, rank: Ranking | None) -> JudgedSet:
    """The recipe's figures on this set."""
    ground.planned(ground.asked("what is there to do today?", recipe))  # builds what is searched
    with settled():
        return _judged(one, names, ground, recipe, rank, whole_tokens(ground))


def whole_tokens(ground: BenchGround) -> int:
    """What a request costs that carries every tool, of which the others are a share."""
    return ground.tool_tokens(plan(ground.asked("everything", "all")))


def _judged(
    one: RoutingSet, names: KnownNames, ground: BenchGround, recipe: str, rank: Ranking | None, all_tokens: int
) -> JudgedSet:
    """Single messages each alone; conversations twice: with the file's calls remembered, and with the planner's own."""
    rows = given(one, names, ground, recipe, rank)
    found = scores.routing(
        rows, all_tokens, can_discover=rank is not None, can_rescue=rank is not None and recipe == RESCUES
    )
    if not one.is_multiturn:
        return JudgedSet(scores=found, rows=tuple(rows))
    talks = conversations(one.rows)
    own = [each for talk in talks for each in _talk(talk, names, ground, recipe, None, is_own=True)]
    alone = scores.routing(own, all_tokens, can_discover=False)
    found |= {"recall_own": alone["recall"]} if "recall" in alone else {}
    return JudgedSet(scores=found, rows=tuple(rows))


def given(
    one: RoutingSet, names: KnownNames, ground: BenchGround, recipe: str, rank: Ranking | None = None
) -> list[ScoredRow]:
    """What each row is given: single messages each alone, conversations with the file's calls remembered."""
    if not one.is_multiturn:
        return [_first(row, names, ground, recipe, rank) for row in one.rows]
    return [
        found for talk in conversations(one.rows) for found in _talk(talk, names, ground, recipe, rank, is_own=False)
    ]


def conversations(rows: Sequence[Utterance]) -> list[list[Utterance]]:
    """The rows by conversation, in the order of their turns; a row without one stands alone."""
    talks: dict[str, list[Utterance]] = {}
    for number, row in enumerate(rows):
        key = f"c {row.conversation}" if row.conversation is not None else f"row {number}"
        talks.setdefault(key, []).append(row)
    return [sorted(talk, key=lambda row: row.turn) for talk in talks.values()]


def _first(row: Utterance, names: KnownNames, ground: BenchGround, recipe: str, rank: Ranking | None) -> ScoredRow:
    """A row as the first message of a new conversation."""
    asked = ground.asked(row.text, recipe)
    made, ms = timed(partial(ground.planned, asked))
    return _given(row, names, ground, asked, made, ms, rank)


def _talk(
    rows: Sequence[Utterance],
    names: KnownNames,
    ground: BenchGround,
    recipe: str,
    rank: Ranking | None,
    *,
    is_own: bool,
) -> list[ScoredRow]:
    """The rows of one conversation, the memory of each plan handed to the next.

    `is_own`: earlier calls are those that the planner's own sets allowed; else the file's.
    """
    memory = PlannerMemory()
    called: dict[str, tuple[str, ...]] = {}
    found: list[ScoredRow] = []
    for row in rows:
        asked = ground.asked(row.text, recipe)
        history = sum(ground.message_tokens(speaker, text) for speaker, text in row.history)
        asked = replace(
            asked,
            past=past_turns(row, called)[-PAST_TURNS:],
            memory=memory,
            now=(START + timedelta(seconds=TURN_S * row.turn)).isoformat(),
            turn=f"t{row.turn}",
            fixed_tokens=asked.fixed_tokens + history,
            history_tokens=history,
        )
        made, ms = timed(partial(ground.planned, asked))
        given = _given(row, names, ground, asked, made, ms, rank)
        memory = made.memory
        called[row.text] = _calls(given, is_own=is_own)
        found.append(given)
    return found


def past_turns(row: Utterance, called: Mapping[str, tuple[str, ...]]) -> tuple[PastTurn, ...]:
    """The row's history as the planner gets it; `called`: the calls of earlier turns by what the user wrote."""
    turns: list[PastTurn] = []
    for speaker, text in row.history:
        if speaker == "user":
            turns.append(PastTurn(user=text, called=called.get(text, ())))
        elif turns:
            turns[-1] = replace(turns[-1], assistant=f"{turns[-1].assistant}\n{text}".strip())
        else:
            turns.append(PastTurn(user="", assistant=text))
    return tuple(turns)


def _calls(given: ScoredRow, *, is_own: bool) -> tuple[str, ...]:
    """What a turn called: the first tool of each group, or the first that the planner had sent."""
    if given.row.kind != "tool":
        return ()
    if not is_own:
        return tuple(dict.fromkeys(group[0] for group in given.needs))
    had = (next((name for name in group if name in given.names), "") for group in given.needs)
    return tuple(dict.fromkeys(name for name in had if name))


def _given(
    row: Utterance,
    names: KnownNames,
    ground: BenchGround,
    asked: PlanInput,
    made: ToolPlan,
    ms: float,
    rank: Ranking | None,
) -> ScoredRow:
    needs = names.needs(row)
    sent = ground.carried(made)
    found: frozenset[str] | None = None
    rescued: frozenset[str] | None = None
    if rank is not None and row.kind == "tool" and needs and not met(needs, sent):
        if any(item.name == DISCOVER for item in made.sent):
            found = frozenset(hit.name for hit in rank(row.text, ground.snapshot, made.reachable, FOUND))
        if asked.recipe == RESCUES and not any(met((group,), sent) for group in needs):
            rescued = _rescued(ground, asked, made)
    return ScoredRow(
        row=row,
        needs=needs,
        categories=names.homes(row, needs),
        names=sent,
        has_nonweb=is_beyond_web(names, sent),
        tokens=ground.tool_tokens(made),
        ms=ms,
        found=found,
        rescued=rescued,
    )


def _rescued(ground: BenchGround, asked: PlanInput, made: ToolPlan) -> frozenset[str]:
    """What the rescue round brings, taken that the model uses no tool, refuses and is understood."""
    again = replace(asked, missing=REFUSAL, round=2, memory=made.memory)
    return ground.carried(ground.planned(again))


def is_beyond_web(names: KnownNames, sent: Iterable[str]) -> bool:
    """Whether any of these tools is not of the web."""
    return any(names.categories[name] not in WEB for name in sent)
