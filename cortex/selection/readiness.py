"""Has ready, ahead of the first message, what plans over a snapshot stand on. Chooses nothing.

Called off the event loop, by what keeps a server's tools ready (`services/tools/readiness.py`). What only a search
needs is made at the first one: a hundredth of a second, a tenth for 10,000 tools.
"""

from cortex.base.memory import give_back
from cortex.selection.evidence import learned
from cortex.selection.index import index_of
from cortex.selection.skill_search import rarity
from cortex.selection.types import Snapshot

ASKED = "what can you do for me"


def make_ready(snapshot: Snapshot) -> None:
    """Index the snapshot and judge a text by it; two seconds of a processor for 10,000 new tools."""
    index = index_of(snapshot)
    index.build()
    learned(index, ASKED)
    rarity(ASKED)
    give_back()  # what building took, several times what stays
