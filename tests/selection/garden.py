"""A made-up garden whose tools a model was fitted on: five tools, a hundred utterances, fitted in a blink."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

from msgspec.structs import replace

from cortex.ports.encoder import Vector
from cortex.selection.model import fit, weights
from cortex.selection.model.utterances import utterances_of
from cortex.selection.types import Domain, Example, Snapshot
from tests.selection.made import entry
from tests.small_encoder import SmallModel

KEY = "garden"


def _said(tool: str, starts: str, ends: str) -> tuple[Example, ...]:
    return tuple(
        Example(text=f"{start.strip()} {end.strip()}", tools=(tool,))
        for start, end in product(starts.split(","), ends.split(","))
    )


GARDEN = Snapshot(
    version="garden-1",
    entries=(
        entry("pump_start", "pumps", "Start a pump", ("pump",)),
        entry("pump_stop", "pumps", "Stop a pump", ("pump",)),
        entry("seed_sow", "seeds", "Sow seeds in a bed", ("seed", "bed")),
        entry("seed_list", "seeds", "List the seeds in store"),
        entry("web_search", "web", "Search the web", ("query",)),
        entry("tools_discover", "meta", "Find a tool", ("query",), is_meta=True, tokens_full=60),
    ),
    domains=(
        Domain(
            name="pumps",
            summary="pumps",
            tokens=4,
            examples=(
                *_said(
                    "pump_start", "start, turn on, switch on, run, please fire up", "the pump, the pond pump, the water"
                ),
                *_said(
                    "pump_stop",
                    "stop, turn off, switch off, shut down, please kill",
                    "the pump, the pond pump, the water",
                ),
            ),
        ),
        Domain(
            name="seeds",
            summary="seeds",
            tokens=4,
            examples=(
                *_said("seed_sow", "sow, plant, put in, scatter", "some carrots, the peas today, a row of beans"),
                *_said(
                    "seed_list", "which, what, how many, list the", "seeds are left, seeds do I have, seeds in the shed"
                ),
            ),
        ),
        Domain(
            name="web",
            summary="the web",
            tokens=4,
            examples=_said(
                "web_search", "look up, search for, google", "frost dates, slug traps, the weather, a plum jam"
            ),
        ),
    ),
    several=(
        Example(text="start the pump and sow some carrots", tools=("pump_start", "seed_sow")),
        Example(text="turn off the water, then plant the peas today", tools=("pump_stop", "seed_sow")),
    ),
    none=(
        *_said("chat", "hello, hi, thanks a lot, good morning", "my friend, you old oak, dear machine"),
        *_said("llm", "write me, tell me, compose", "a poem about rain, a tale of a mole, some words for my aunt"),
        *_said("open", "book me, order, buy", "a table for two, a taxi, new boots"),
    ),
)


@lru_cache(maxsize=1)
def fitted() -> fit.FittedModel:
    """The garden's model, with what it makes of each utterance when it is left out."""
    return fit.fit(GARDEN, utterances_of(GARDEN), made="the garden")


class SmallEncoder:
    """The small sentence model as selection sees one, without time limit and memory."""

    key = "garden's"

    def kept(self, texts: Sequence[str]) -> Sequence[Vector]:
        return SmallModel().encode(texts)

    asked = kept


def garden(version: str = "garden-fitted", **changes: object) -> Snapshot:
    """The garden judged by its model, which is brought to where plans are made."""
    weights.keep(KEY, fitted().weights)
    return replace(GARDEN, version=version, weights=KEY, **changes)
