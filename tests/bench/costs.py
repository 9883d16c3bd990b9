"""`make bench ARGS=cost`: every regime under every recipe, as a share of what sending all tools costs (100)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cortex.base.errors import UserError
from cortex.base.model import Profile
from cortex.selection.recipes import RECIPES, recipe
from tests.bench import talks
from tests.bench.ground import BenchGround, Tell
from tests.bench.made import grown
from tests.bench.regimes import REGIMES, Regime, Work, long_talks, on_backend
from tests.bench.replay import Tally, replay
from tests.bench.talks import Talk

CONTROL = "all"
Told = dict[str, dict[str, Any]]  # regime -> recipe -> figure


def measured(
    regimes: Sequence[str],
    recipes: Sequence[str],
    ground: BenchGround,
    seed: int,
    report: Tell,
    *,
    backend: Profile | None = None,
) -> dict[str, Any]:
    """The costs by regime and recipe, and the details behind them; UserError for an unknown name.

    backend: in place of each regime's own; its work and pauses stay. `floors`: what the same talks cost with no tool
    declared at all. `above_floor`: of what a choice of tools can change, the percentage that is left.
    """
    unknown = sorted(set(regimes) - set(REGIMES))
    if unknown:
        raise UserError(f"There is no regime {unknown[0]!r}; known: {', '.join(REGIMES)}.")
    names = list(recipes) or sorted(RECIPES)
    for name in names:
        recipe(name)
    work = _work(ground, report)
    shares: Told = {}
    details: Told = {}
    floors: dict[str, float] = {}
    for name in regimes or list(REGIMES):
        regime = on_backend(REGIMES[name], backend) if backend else REGIMES[name]
        over = _ground(ground, regime, seed)
        tallies = {}
        for each in dict.fromkeys((CONTROL, *names)):
            report(f"{name}: {len(work[regime.work])} conversations, {each}")
            tallies[each] = _tally(work[regime.work], regime, over, each)
        whole = tallies[CONTROL].cost
        floors[name] = round(100 * _tally(work[regime.work], regime, over, CONTROL, is_bare=True).cost / whole, 1)
        shares[name] = {each: round(100 * tallies[each].cost / whole, 1) for each in names}
        details[name] = {each: _detail(tallies[each], len(work[regime.work])) for each in names}
    above = {
        regime: {name: above_floor(share, floors[regime]) for name, share in found.items()}
        for regime, found in shares.items()
    }
    return {"regimes": shares, "floors": floors, "above_floor": above, "details": details}


def above_floor(cost: float, floor: float) -> float:
    """(cost - floor) / (100 - floor), as a percentage: 0 where tools cost nothing, 100 for sending all."""
    return round(100 * (cost - floor) / (100 - floor), 1)


def _work(ground: BenchGround, report: Tell) -> Mapping[Work, tuple[Talk, ...]]:
    """The scripted conversations; a round that needs a tool which the registry lacks is left out, and told."""
    known = {entry.name for entry in ground.snapshot.entries}
    read = {stem: talks.read(talks.FOLDER / f"{stem}.jsonl") for stem in ("chats", "tasks", "jobs")}
    lacking = {
        call.tool for each in read.values() for talk in each for turn in talk for calls in turn.rounds for call in calls
    } - known
    if lacking:
        report(f"rounds with tools that are not in the registry are left out: {', '.join(sorted(lacking))}")
    chats, tasks, jobs = (tuple(_without(talk, lacking) for talk in each) for each in read.values())
    return {"chats": chats, "long": long_talks(chats), "tasks": tasks, "jobs": jobs}


def _without(talk: Talk, lacking: set[str]) -> Talk:
    return tuple(
        replace(turn, rounds=tuple(calls for calls in turn.rounds if not any(call.tool in lacking for call in calls)))
        for turn in talk
    )


def _ground(ground: BenchGround, regime: Regime, seed: int) -> BenchGround:
    """The registry and the backend of this regime."""
    snapshot = grown(ground.snapshot, regime.tools, seed) if regime.tools else ground.snapshot
    return ground.over(snapshot, profile=regime.profile, channel=regime.channel)


def _tally(work: Iterable[Talk], regime: Regime, ground: BenchGround, name: str, *, is_bare: bool = False) -> Tally:
    tally = Tally()
    for talk in work:
        replay(talk, regime, ground, name, tally, is_bare=is_bare)
    return tally


def _detail(tally: Tally, conversations: int) -> dict[str, float]:
    """What stands behind a share. `recall`: rounds whose tools were all there at once; the rest per conversation."""
    return {
        "recall": round(tally.had / tally.wanted, 4) if tally.wanted else 1.0,
        "tokens": round(tally.cost / conversations),
        "requests": round(tally.requests / conversations, 2),
        "extra_requests": round(tally.extra / conversations, 2),
        "asked_again": round(tally.asked_again / conversations, 2),
        "rewrites": round(tally.rewrites / conversations, 2),
    }
