"""Where a set comes from, and whether anything of `cortex` was chosen by it: what a reader of the figures must know."""

from collections.abc import Collection, Iterable
from typing import Literal

from cortex.base.errors import UserError

Source = Literal["ours", "languages", "made", "unseen", "chosen on", "held out", "other"]
# Constants were chosen by these public sets and by our cases in all languages (docs/decisions): how clauses
# count and what they may add, what a low wish or work takes, which talk is taught. The weights saw none of them.
CHOSEN_ON = ("clinc", "sgd", "snips", "homellm", "tldr", "llm_dev")
HEADS: dict[Source, str] = {
    "ours": "ours, constants chosen on it",
    "languages": "ours, constants chosen on it",
    "made": "made of ours",
    "unseen": "ours, unknown tools",
    "chosen on": "constants chosen on it",
    "held out": "held out",
    "other": "not said",
}


def source_of(name: str, held_out: Collection[str]) -> Source:
    """What a set from a file of other people is; `held_out`: the names of those that nothing was ever chosen by."""
    if name in held_out:
        return "held out"
    return "chosen on" if name.startswith(CHOSEN_ON) else "other"


def names_of(stems: Iterable[str], sets: Collection[str]) -> tuple[str, ...]:
    """The sets of these file stems, `routing_x` being the set x; UserError for one that there is not."""
    names = tuple(stem.removeprefix("routing_") for stem in stems)
    unknown = next((name for name in names if name not in sets), None)
    if unknown is not None:
        raise UserError(f"No file is called {unknown!r}, so it cannot be held out; known: {', '.join(sorted(sets))}.")
    return names
